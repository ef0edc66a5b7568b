"""Which provider a bare model name suggests, as data. A guess of last resort: explicit specs never come here."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

INFERENCE: Final[tuple[tuple[str, str], ...]] = (
    ("claude-*", "openrouter"),
    ("gemini-*", "openrouter"),
    ("gpt-*", "openai"),
    ("deepseek-*", "deepseek"),
    ("glm-*", "zai-cn"),
    ("*grok*", "xai"),
    ("*", "openai"),
)
"""(pattern over the lower-cased name, provider id); the first match counts, and the last row matches everything."""

VENDOR_PREFIXED: Final = "openrouter"
"""The provider whose model ids carry their vendor (``anthropic/claude-x``), so that a bare name must be completed."""


def infer(name: str) -> str:
    """Return the id of the provider that the bare *name* suggests, configured or not."""
    folded = name.lower()
    return next(provider for pattern, provider in INFERENCE if fnmatchcase(folded, pattern))
