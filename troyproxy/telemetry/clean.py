"""What may be written into a log or a trace: text without anything that looks like a credential, on one line.

A second net. Nothing that we write is meant to hold a secret or a prompt; a vendor's error or a client's model name
can still bring one along, or a line break that forges a log entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TextIO

MASK: Final = "***"
Mask = Callable[[str], str]
"""Takes secrets out of a text. Never raises."""

_SLACK: Final = 512  # masked before it is cut, so that a cut does not leave the head of a key
_RULES: Final = (
    (re.compile(r"(?i)\b(bearer)\s+[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {MASK}"),
    (re.compile(r"(?<![A-Za-z0-9])(?:sk|pk|rk|gsk|xai|csk|nvapi|pplx|hf|r8|ghp|tgp)[-_][A-Za-z0-9_-]{10,}"), MASK),
    (re.compile(r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{16,}"), MASK),
    (
        re.compile(
            r"(?i)((?:api[-_]?key|access[-_]?token|(?<![a-z])token|authorization|password|secret|[?&]key)"
            r"[\"']?\s{0,8}[=:]\s{0,8}[\"']?)[^\s\"'&,;]{4,}"
        ),
        rf"\1{MASK}",
    ),
    (re.compile(r"(://)[^\s/@]{1,256}@"), rf"\1{MASK}@"),
)


def mask_keys(text: str) -> str:
    """Return *text* with whatever is shaped like a credential replaced by stars."""
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return text


def clean(text: str, *, limit: int, mask: Mask = mask_keys) -> str:
    """Return *text* masked, on one line, and at most *limit* characters long (escapes may lengthen it)."""
    return one_line(masked(text, limit=limit, mask=mask))


def masked(text: str, *, limit: int, mask: Mask = mask_keys) -> str:
    """Return the first *limit* characters of *text*, masked; an ellipsis shows a cut."""
    shown = mask(text[: limit + _SLACK])
    return shown if len(shown) <= limit else shown[:limit] + "…"


def one_line(text: str) -> str:
    """Escape what does not print: line breaks of every kind, terminal controls, direction marks, half characters."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def writable(text: str, stream: TextIO) -> str:
    """Return *text* with what the encoding of *stream* lacks escaped, so that writing it cannot fail for that."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
