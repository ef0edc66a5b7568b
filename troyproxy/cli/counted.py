"""Where the body of a request ends, without a parser: one of declared length is counted, and its bytes pass untouched.

httptools would copy each piece, for nothing: between the head of such a request and the next one there is no framing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import httptools

_LENGTH: Final = b"content-length"
_CODING: Final = b"transfer-encoding"
_LAST: Final = b"GET / HTTP/1.0\r\n\r\n"


def declared(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """Return how long a body with *headers* is, in bytes; None for one that is framed otherwise.

    Their names are in lower case. That the length is said once, and in digits, httptools has seen to.
    """
    fields = dict(headers)
    return int(fields[_LENGTH]) if _LENGTH in fields and _CODING not in fields else None


def parser_of(listener: object) -> httptools.HttpRequestParser:
    """Return a parser that stands before a head."""
    parser = httptools.HttpRequestParser(listener)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it
    return parser


def parser_behind_the_last() -> httptools.HttpRequestParser:
    """Return a parser that stands behind a request after which nothing is read: it tells nobody of anything."""
    parser = parser_of(object())
    parser.feed_data(_LAST)
    return parser
