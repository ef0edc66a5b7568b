"""What spans call things: one table of the names of OpenTelemetry's conventions, and ours for what they have none for.

Two editions of the GenAI conventions are spoken: 1.36, which backends have learned, and, where
``OTEL_SEMCONV_STABILITY_OPT_IN`` holds ``gen_ai_latest_experimental``, the latest. HTTP names are the stable ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LATEST: Final = "gen_ai_latest_experimental"
OPT_IN: Final = "OTEL_SEMCONV_STABILITY_OPT_IN"

GEN_AI: Final[Mapping[str, tuple[str, str]]] = {
    "operation": ("gen_ai.operation.name", "gen_ai.operation.name"),
    "provider": ("gen_ai.system", "gen_ai.provider.name"),
    "request_model": ("gen_ai.request.model", "gen_ai.request.model"),
    "response_model": ("gen_ai.response.model", "gen_ai.response.model"),
    "stream": ("troy.stream", "gen_ai.request.stream"),
    "first_output_s": ("troy.first_output_s", "gen_ai.response.time_to_first_chunk"),
    "input": ("gen_ai.usage.input_tokens", "gen_ai.usage.input_tokens"),
    "output": ("gen_ai.usage.output_tokens", "gen_ai.usage.output_tokens"),
    "cached": ("troy.usage.cached_tokens", "gen_ai.usage.cache_read.input_tokens"),
    "reasoning": ("troy.usage.reasoning_tokens", "gen_ai.usage.reasoning.output_tokens"),
}
"""Fact → its name in 1.36, and in the latest edition."""

OPERATIONS: Final[Mapping[str, str]] = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "text_completion",
    "/v1/embeddings": "embeddings",
}
"""Route → ``gen_ai.operation.name``. The others have no name there; theirs is the first part of their path."""

PROVIDERS: Final[Mapping[str, str]] = {
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""Provider id → ``gen_ai.provider.name``, where the conventions spell it otherwise."""


def is_latest(opt_in: str) -> bool:
    """Whether the value of ``OTEL_SEMCONV_STABILITY_OPT_IN`` asks for the latest GenAI names."""
    return LATEST in {word.strip() for word in opt_in.split(",")}


def operation_of(route: str) -> str:
    """Return what a request to *route* asks of a model."""
    return OPERATIONS.get(route) or route.removeprefix("/v1/").partition("/")[0]


def provider_of(provider: str) -> str:
    """Return what the conventions call a provider."""
    return PROVIDERS.get(provider, provider)
