"""JSON as it is found in the wild: the fast codec first, the standard library where that refuses.

NaN, Infinity, lone surrogate escapes and exponents out of range are common in what clients and upstreams send; a
gateway must neither fail on them nor lose them. Last duplicate key wins, in both decoders. This module knows nothing
about chat bodies; to change a body without re-encoding it see ``splice``.
"""

from __future__ import annotations

import json
from typing import Final

import msgspec

BOM: Final = b"\xef\xbb\xbf"


class MalformedJSON(ValueError):
    """The text is not JSON, or not JSON we can hold; the message is a short reason, without any of the text."""


def decode(data: bytes) -> object:
    """Return the value of *data*; a UTF-8 byte order mark is skipped.

    Raises MalformedJSON and nothing else: for text that both decoders refuse, for nesting beyond the interpreter's
    stack ("too deep"), and for integers beyond its digit limit ("integer too large").
    """
    if data[:3] == BOM:
        data = data[3:]
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return _decode_odd(data)
    except RecursionError:
        raise MalformedJSON("too deep") from None


def decoded(data: bytes) -> object:
    """Return the value of *data*, or None where `decode` finds none."""
    try:
        return decode(data)
    except MalformedJSON:
        return None


def _decode_odd(data: bytes) -> object:
    if not data.strip():
        raise MalformedJSON("empty")
    try:
        value: object = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise MalformedJSON("not UTF-8") from None
    except json.JSONDecodeError as exc:
        raise MalformedJSON(f"{exc.msg} at character {exc.pos}") from None
    except RecursionError:
        raise MalformedJSON("too deep") from None
    except ValueError:  # the interpreter's limit on digits, the only other one
        raise MalformedJSON("integer too large") from None
    return value


def encode(value: object) -> bytes:
    """Return *value* as compact JSON.

    Lone surrogates and non-finite numbers, which came in as JSON of a kind, go out as they came, with ASCII escapes.
    Raises MalformedJSON ("too deep") when the nesting is beyond the interpreter's stack.
    """
    try:
        text = msgspec.json.encode(value)
        # The fast encoder writes NaN and Infinity as null without a word.
        return text if b"null" not in text or _is_finite(value) else _encode_odd(value)
    except UnicodeEncodeError:
        return _encode_odd(value)
    except RecursionError:
        raise MalformedJSON("too deep") from None


def _is_finite(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False, default=msgspec.to_builtins)
    except ValueError:
        return False
    return True


def _encode_odd(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), default=msgspec.to_builtins).encode("ascii")
