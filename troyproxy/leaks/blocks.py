"""From the blocks `leak:` of a configuration to the options of one answer. They were validated when they came in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from troyproxy.leaks.options import Exhausted, Options, Scope, Strictness, Unrepairable, Validate

LIMITS: Final[Mapping[str, str]] = {"header": "header_chars", "whole": "whole_chars", "call": "call_chars"}
_FLAGS: Final = ("echo_check", "orphan_closers", "scrub_when_none", "scrub_with_history", "coerce")
_WORDS: Final[Mapping[str, type[StrEnum]]] = {
    "strictness": Strictness,
    "scope": Scope,
    "validate": Validate,
    "repair_scope": Scope,
    "on_unrepairable": Unrepairable,
    "on_exhausted": Exhausted,
}


def merged(blocks: Iterable[Mapping[str, object] | None]) -> dict[str, object]:
    """Return one block of *blocks*, of which a later one wins, option by option and limit by limit."""
    found: dict[str, object] = {}
    for block in blocks:
        for name, value in (block or {}).items():
            before = found.get(name)
            nested = isinstance(value, Mapping) and isinstance(before, Mapping)
            found[name] = {**before, **value} if nested else value  # type: ignore[dict-item]  # both are mappings
    return found


def options_of(block: Mapping[str, object]) -> Options:
    """Return the options that *block* describes; what is none of them (``mode``, ``locked``) is left out.

    A value of the wrong shape counts as not given: what is stored was checked when it came in, and breaks no request.
    """
    given: dict[str, object] = {name: block[name] for name in _FLAGS if isinstance(block.get(name), bool)}
    for name, kind in _WORDS.items():
        word = "off" if block.get(name) is False else block.get(name)  # a bare `off` of YAML
        if isinstance(word, str) and word in set(kind):
            given[name] = kind(word)
    limits = block.get("limits")
    for short, name in LIMITS.items() if isinstance(limits, Mapping) else ():
        if isinstance(limits, Mapping) and isinstance(limits.get(short), int):
            given[name] = limits[short]
    if (formats := _texts(block.get("formats"))) is not None:
        given["formats"] = frozenset(formats)
    if (openers := _texts(block.get("extra_openers"))) is not None:
        given["extra_openers"] = openers
    if (excluded := _texts(block.get("repair_exclude"))) is not None:
        given["repair_exclude"] = frozenset(excluded)
    return Options(**given)  # type: ignore[arg-type]  # fields by name


def _texts(value: object) -> tuple[str, ...] | None:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else None
