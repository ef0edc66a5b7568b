"""The form in which model text is compared, and the markers of the older guard."""

from __future__ import annotations

from typing import Final

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
    _UPPER + "\uff5c\u2016\u2502\u2581\uff1c\uff1e\u00a0\u200b\ufeff",
    _UPPER.lower() + "|||_<>   ",
)


def canonical(text: str) -> str:
    """Return a copy to compare on; it has the length of *text*, so offsets stay valid.

    One character becomes one: ASCII lower case, full-width bars and angle brackets, odd blanks. Never `lower()`,
    `casefold()` or NFKC, which change lengths. Names and arguments are read from the original, never from here.
    """
    return text.lower() if text.isascii() else text.translate(_FOLD)  # in ASCII, `lower` does the same and faster


def spellings(character: str) -> set[str]:
    """Return the characters that `canonical` makes into *character*."""
    return {character} | {chr(code) for code, folded in _FOLD.items() if chr(folded) == character}
