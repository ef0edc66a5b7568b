"""Bytes that several field cases have in common, exactly as the cases write them, and ways to cut them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

OK: Final = b'data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":null}]}\n\n'
ROLE: Final = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
STOP: Final = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE: Final = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}\n\n'
DONE: Final = b"data: [DONE]\n\n"
LONG_PROMPT: Final = (
    b'{"error":{"message":"prompt has 250001 tokens, limit is 128000",'
    b'"type":"invalid_request_error","code":"context_length_exceeded"}}'
)
ASK_USAGE: Final[dict[str, object]] = {"stream_options": {"include_usage": True}}
TOOLS: Final = [{"type": "function", "function": {"name": "w", "parameters": {"type": "object"}}}]


def said(text: bytes, finish: bytes = b"null", **more: bytes) -> bytes:
    """Return an event with *text* inside its content string, as JSON escapes it; *more* goes beside ``choices``."""
    tail = b"".join(b',"%b":%b' % (name.encode(), value) for name, value in more.items())
    return b'data: {"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":%b}]%b}\n\n' % (text, finish, tail)


def splits(body: bytes) -> Iterator[tuple[bytes, ...]]:
    """Yield *body* cut into two reads, at every place."""
    yield from ((body[:at], body[at:]) for at in range(1, len(body)))


def each_byte(body: bytes) -> tuple[bytes, ...]:
    """Return *body* as reads of one byte."""
    return tuple(body[at : at + 1] for at in range(len(body)))


def with_line_ends(reads: Iterable[bytes], end: bytes) -> tuple[bytes, ...]:
    """Return the same events with other line ends."""
    return tuple(read.replace(b"\n", end) for read in reads)
