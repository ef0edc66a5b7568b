"""Token usage as upstreams report it: OpenAI's spelling, Groq's place, DeepSeek's and Anthropic's names.

A report in a stream is cumulative, so reports are never added up: ``fuller`` keeps the best one. Limits, budgets and
the ledger are elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_MAX_TOKENS: Final = 10**12  # more is junk; a database integer holds it and every sum of it
_BYTES_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request. *cached* is part of *input*; *reasoning* and *audio* are details, not additions."""

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    audio: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        """Input and output together."""
        return self.input + self.output


def read_usage(value: object) -> Usage | None:
    """Return the usage that a body or stream event reports, or None.

    Only an object with a number for input, output or total is a report: null, empty and details-only objects are not.
    Numbers that cannot be (negative, text, fractions, beyond 10**12) are ignored. Never raises.
    """
    if not isinstance(value, dict):
        return None
    places = (value.get("usage"), _dict(value.get("x_groq")).get("usage"), *_in_choices(value.get("choices")))
    reports = (_report(place) for place in places if isinstance(place, dict))
    return next((usage for usage in reports if usage is not None), None)


def fuller(old: Usage | None, new: Usage | None) -> Usage | None:
    """Return what is known after the report *new*: each number from the last report that had it, never a sum.

    A real report replaces an estimate whole, and an estimate never touches a real report.
    """
    if old is None or new is None:
        return new or old
    if old.estimated != new.estimated:
        return old if new.estimated else new
    return Usage(
        input=new.input or old.input,
        output=new.output or old.output,
        cached=new.cached or old.cached,
        reasoning=new.reasoning or old.reasoning,
        audio=new.audio or old.audio,
        estimated=new.estimated,
    )


def estimate(input_tokens: int, output_chars_or_bytes: int) -> Usage:
    """Return a flagged guess for an upstream that reported nothing, at four characters or bytes a token."""
    output = math.ceil(max(0, output_chars_or_bytes) / _BYTES_PER_TOKEN)
    return Usage(max(0, input_tokens), output, estimated=True)


def _report(usage: Mapping[str, object]) -> Usage | None:
    given, output = _input(usage), _first(usage, "completion_tokens", "output_tokens")
    total = _first(usage, "total_tokens")
    if given is None and output is None and total is None:
        return None
    if given is None:
        given = max(0, (total or 0) - (output or 0))
    of_input = _details(usage, "prompt_tokens_details", "input_tokens_details")
    of_output = _details(usage, "completion_tokens_details", "output_tokens_details")
    audio = (_first(of_input, "audio_tokens") or 0) + (_first(of_output, "audio_tokens") or 0)
    return Usage(
        input=given,
        output=output or 0,
        cached=min(given, _cached(usage, of_input)),
        reasoning=_first(of_output, "reasoning_tokens") or _first(usage, "reasoning_tokens") or 0,
        audio=audio,
    )


def _input(usage: Mapping[str, object]) -> int | None:
    """Return the input tokens, cached ones included.

    Anthropic's ``input_tokens`` leave out what was read from and written to the cache; OpenAI's include it.
    """
    if (prompt := _first(usage, "prompt_tokens")) is not None:
        return prompt
    if (fresh := _first(usage, "input_tokens")) is None:
        return None
    cache = ("cache_read_input_tokens", "cache_creation_input_tokens")
    return fresh + sum(_first(usage, key) or 0 for key in cache)


def _cached(usage: Mapping[str, object], of_input: Mapping[str, object]) -> int:
    spellings = ("prompt_cache_hit_tokens", "cache_read_input_tokens", "cached_tokens")
    return _first(of_input, "cached_tokens") or _first(usage, *spellings) or 0


def _first(usage: Mapping[str, object], *keys: str) -> int | None:
    """Return the first of *keys* that holds a token count; a positive one is preferred to zero."""
    counts = [count for count in (_count(usage.get(key)) for key in keys) if count is not None]
    return next((count for count in counts if count), counts[0] if counts else None)


def _count(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= _MAX_TOKENS else None


def _details(usage: Mapping[str, object], *keys: str) -> Mapping[str, object]:
    return next((found for found in (_dict(usage.get(key)) for key in keys) if found), {})


def _dict(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _in_choices(choices: object) -> list[object]:
    """Return the reports inside choices, where one vendor puts them."""
    return [_dict(choice).get("usage") for choice in choices] if isinstance(choices, list) else []
