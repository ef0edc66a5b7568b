"""The spellings of a textual tool call, as data.

To guard one more format, add a row (and, if what follows its opener has a new shape, a grammar with its stage in
`stages.py`). Nothing here decides; the rows are read by the detector. Texts are in canonical form.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

HEADER_CHARS: Final = 512  # from the start of the content to the end of the tool's name, blanks included
WHOLE_CHARS: Final = 64 * 1024  # where the name may come last: JSON whose first key is the arguments object


class Tier(StrEnum):
    """How sure a marker alone makes us."""

    SPECIAL = "S"  # the spelling of a special token: nobody types it by hand
    MARKUP = "X"  # looks like ordinary markup: the tool must be a declared one


class Grammar(StrEnum):
    """What has to follow a marker."""

    NAME = "name"  # a declared tool name and a character that ends it
    WRAPPER = "wrapper"  # blanks, then JSON with a name, an inner marker, or a name
    ANYTHING = "anything"  # any character that is not blank
    RESTART = "restart"  # nothing: the text starts again behind it (a closer)


@dataclass(frozen=True, slots=True)
class Marker:
    """One spelling; *format* is the id under which a leak is counted."""

    format: str
    text: str
    tier: Tier
    grammar: Grammar


OPENERS: Final = (
    Marker("F01", "<function=", Tier.MARKUP, Grammar.NAME),
    Marker("F02", "<function(", Tier.MARKUP, Grammar.NAME),
    Marker("F03", "<tool_call>", Tier.MARKUP, Grammar.WRAPPER),
    Marker("F06", "<|python_tag|>", Tier.SPECIAL, Grammar.ANYTHING),
)

# A server that parsed the call away may leave the empty shell; what follows it is the start of the content again.
CLOSERS: Final = (
    Marker("F03", "</tool_call>", Tier.MARKUP, Grammar.RESTART),
    Marker("F01", "</function>", Tier.MARKUP, Grammar.RESTART),
)

# Models mix dialects, so a wrapper accepts the inner markers of every family.
INNER: Final = (
    Marker("F04", "<function=", Tier.MARKUP, Grammar.NAME),
    Marker("F04", "<function(", Tier.MARKUP, Grammar.NAME),
    Marker("F42", "<function name=", Tier.MARKUP, Grammar.NAME),
    Marker("F43", "<invoke name=", Tier.MARKUP, Grammar.NAME),
    Marker("F03", "<tool_call>", Tier.MARKUP, Grammar.WRAPPER),
    *CLOSERS,
)

# What may be left in the content beside structured calls; a longer spelling stands before its prefix.
RESIDUE: Final = (
    ("<tool_call>", "F03"),
    ("</tool_call>", "F03"),
    ("<function>", "F02"),
    ("<function=", "F01"),
    ("<function(", "F02"),
    ("</function>", "F01"),
    ("<function", "F01"),
    ("<tool_call", "F03"),
    ("<|python_tag|>", "F06"),
)

# The list of the older guard (no check of name or continuation); only `strip_textual_tool_call` uses it.
CLASSIC_MARKERS: Final = (
    "<function=",
    "<function(",
    "<function>",
    "<tool_call>",
    "<|python_tag|>",
    "<|tool_call|>",
    "functools[",
)

_UPPER: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FOLD: Final = str.maketrans(
    _UPPER + "\uff5c\u2581\uff1c\uff1e\u00a0\u200b\ufeff",
    _UPPER.lower() + "|_<>   ",
)


def canonical(text: str) -> str:
    """Return a copy to compare on; it has the length of *text*, so offsets stay valid.

    One character becomes one: ASCII lower case, full-width bars and angle brackets, odd blanks. Never `lower()`,
    `casefold()` or NFKC, which change lengths. Names and arguments are read from the original, never from here.
    """
    return text.translate(_FOLD)


def residue(text: str) -> str | None:
    """Return the format of *text* when it is nothing but markers and blanks, else None."""
    rest, found = canonical(text).strip(), None
    while rest:
        hit = next(((marker, name) for marker, name in RESIDUE if rest.startswith(marker)), None)
        if hit is None:
            return None
        found = found or hit[1]
        rest = rest.removeprefix(hit[0]).lstrip()
    return found
