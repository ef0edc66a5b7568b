"""Token usage as upstreams report it: OpenAI's spelling, Groq's place, DeepSeek's and Anthropic's names.

A report in a stream is cumulative, so reports are never added up: ``fuller`` keeps the best one. Limits, budgets and
the ledger are elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import msgspec

_MAX_TOKENS: Final = 10**12  # more is junk; a database integer holds it and every sum of it
_BYTES_PER_TOKEN: Final = 4
_BARE: Final = frozenset({"prompt_tokens", "completion_tokens", "total_tokens"})
"""Of a report without details, as most are."""
_NOTHING: Final[Mapping[str, object]] = {}


class Usage(msgspec.Struct, frozen=True, gc=False):
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
    usage = value.get("usage")
    if isinstance(usage, dict) and (found := _report(usage)) is not None:
        return found
    usage = _dict(value.get("x_groq")).get("usage") if "x_groq" in value else None
    if isinstance(usage, dict) and (found := _report(usage)) is not None:
        return found
    return _in_choices(value.get("choices"))


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
    given, output = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if (
        (type(given) is int and 0 <= given <= _MAX_TOKENS)
        and (type(output) is int and 0 <= output <= _MAX_TOKENS)
        and usage.keys() <= _BARE
    ):
        return Usage(given, output)
    return _report_in_detail(usage)


def _report_in_detail(usage: Mapping[str, object]) -> Usage | None:
    given, output = _input(usage), _first(usage, "completion_tokens", "output_tokens")
    total = _first(usage, "total_tokens") if given is None else None
    if given is None and output is None and total is None:
        return None
    if given is None:
        given = max(0, (total or 0) - (output or 0))
    of_input = _details(usage, "prompt_tokens_details", "input_tokens_details")
    of_output = _details(usage, "completion_tokens_details", "output_tokens_details")
    reasoning, audio = _first(usage, "reasoning_tokens"), 0
    if of_input or of_output:
        reasoning = _first(of_output, "reasoning_tokens") or reasoning
        audio = (_first(of_input, "audio_tokens") or 0) + (_first(of_output, "audio_tokens") or 0)
    return Usage(
        input=given,
        output=output or 0,
        cached=min(given, _cached(usage, of_input)),
        reasoning=reasoning or 0,
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
    found = _first(of_input, "cached_tokens") if of_input else None
    return found or _first(usage, "prompt_cache_hit_tokens", "cache_read_input_tokens", "cached_tokens") or 0


def _first(usage: Mapping[str, object], *keys: str) -> int | None:
    """Return the first of *keys* that holds a token count; a positive one is preferred to zero."""
    found: int | None = None
    for key in keys:
        count = usage.get(key)
        if count is not None and (count := _count(count)) is not None:
            if count:
                return count
            found = 0
    return found


def _count(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= _MAX_TOKENS else None


def _details(usage: Mapping[str, object], *keys: str) -> Mapping[str, object]:
    for key in keys:
        found = usage.get(key)
        if found and isinstance(found, dict):
            return found
    return _NOTHING


def _dict(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else _NOTHING


def _in_choices(choices: object) -> Usage | None:
    """Return the report inside a choice, where one vendor puts it."""
    for choice in choices if isinstance(choices, list) else ():
        usage = choice.get("usage") if isinstance(choice, dict) else None
        if isinstance(usage, dict) and (found := _report(usage)) is not None:
            return found
    return None
