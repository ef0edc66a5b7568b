"""The header ``traceparent`` of W3C Trace Context, read and written. It draws no ids: whoever has chance does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

_FORM: Final = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})-(?!0{16})(?P<span>[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?",
    re.ASCII | re.DOTALL,
)
FIRST: Final = "00"
SAMPLED: Final = 1
"""The flag that says that the caller may have recorded its part."""


@dataclass(frozen=True, slots=True)
class TraceParent:
    """Who called: the trace (32 hexadecimal digits), the span in it (16), and whether that one was recorded."""

    trace_id: str
    span_id: str
    sampled: bool


def parent_of(header: str) -> TraceParent | None:
    """Return what *header* says, or None where it is not valid. Never raises.

    Of a version that is to come only what this one knows is read (W3C Trace Context, section 4.3).
    """
    found = _FORM.fullmatch(header.strip(" \t"))
    if found is None or (found["version"] == FIRST and found["more"]):
        return None
    return TraceParent(found["trace"], found["span"], bool(int(found["flags"], 16) & SAMPLED))


def trace_id_of(header: str) -> str | None:
    """Return the trace id, 32 hexadecimal digits, or None where *header* is not valid. Never raises."""
    found = parent_of(header)
    return None if found is None else found.trace_id


def written(parent: TraceParent) -> bytes:
    """Return the header that tells the next one of *parent*."""
    return f"{FIRST}-{parent.trace_id}-{parent.span_id}-{int(parent.sampled):02x}".encode("ascii")


def child_id(span_id: str, number: int) -> str:
    """Return the id of the *number*-th child of a span: the same whoever asks, so nobody has to carry it along."""
    return blake2b(f"{span_id}/{number}".encode("ascii"), digest_size=8).hexdigest()
