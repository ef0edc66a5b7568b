"""Values to what a database takes, and back: JSON-safe trees, clean text, folded names. Never raises on odd values.

PostgreSQL refuses NUL and lone surrogates in text and NaN in JSON; a client can send the first two as a model's name.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

import msgspec

KEPT_CHARS: Final = 1000
"""Of one text in a usage row; a model's name can be as long as the body."""


class JsonText(str):
    """JSON that is text already, for a column of type JSON."""

    __slots__ = ()


def written_json(value: object) -> str:
    """Return *value* as the text that a column of type JSON takes."""
    return value if isinstance(value, JsonText) else json.dumps(value)


def fold(name: str) -> str:
    """Return what two names share when they differ by case or Unicode form only."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def clean(text: str, *, limit: int | None = None) -> str:
    """Return *text* as every database takes it, at most *limit* characters of it."""
    return text[:limit].replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def short(text: str) -> str:
    """Return *text* cleaned, and cut to what a usage row keeps."""
    return clean(text, limit=KEPT_CHARS)


def maybe_short(text: str | None) -> str | None:
    """Return what `short` does of a text that may be missing."""
    return None if text is None else short(text)


def plain(value: object) -> object:
    """Return *value* as JSON has it: what has fields becomes an object, odd numbers null, anything odd its text."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {clean(str(key)): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
        case _ if isinstance(value, msgspec.Struct) or is_dataclass(value):
            return {name: plain(getattr(value, name)) for name in _names_of(value)}
        case _:
            return clean(str(value))  # a text, or anything odd


def _names_of(value: Any) -> Iterable[str]:  # noqa: ANN401 -- a struct or a dataclass: they have no type in common
    """Return the names of the fields."""
    return value.__struct_fields__ if isinstance(value, msgspec.Struct) else [field.name for field in fields(value)]
