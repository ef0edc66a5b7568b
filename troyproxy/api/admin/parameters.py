"""What stands behind the ``?`` of an admin path: declared, typed, checked before the handler runs, and documented.

A parameter that an operation does not declare is refused: a filter with a typo must not answer for everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar
from urllib.parse import parse_qsl

from troyproxy.errors import ValidationFailed

T = TypeVar("T")

MANY: Final = 100
"""Pairs in a query that are looked at; more are refused."""
LATEST: Final = 100_000_000_000
"""The last unix second that counts as a moment, some 3,000 years from now."""


@dataclass(frozen=True, slots=True)
class Parameter(Generic[T]):
    """One query parameter; required, unless made `optional` or given a default (`otherwise`)."""

    name: str
    doc: str
    read: Callable[[str], T]
    """Raises ValueError, whose text says what is allowed."""
    schema: Mapping[str, object]
    required: bool = True
    default: T | None = None

    def optional(self) -> Parameter[T | None]:
        """Return the parameter that is None when it is not given."""
        return Parameter(self.name, self.doc, self.read, self.schema, required=False)

    def otherwise(self, default: T) -> Parameter[T]:
        """Return the parameter that is *default* when it is not given."""
        schema = {**self.schema, "default": default}
        return replace(self, required=False, default=default, schema=schema)


def whole(name: str, doc: str, low: int, high: int) -> Parameter[int]:
    """Return the parameter that is a whole number within a range."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 16 and low <= int(text) <= high):
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(text)

    return Parameter(name, doc, read, {"type": "integer", "minimum": low, "maximum": high})


def text(name: str, doc: str, longest: int = 200) -> Parameter[str]:
    """Return the parameter that is a printable text of 1 to *longest* characters."""

    def read(given: str) -> str:
        if not (1 <= len(given) <= longest and given.isprintable()):
            raise ValueError(f"must be a printable text of 1 to {longest} characters")
        return given

    return Parameter(name, doc, read, {"type": "string", "minLength": 1, "maxLength": longest})


def one_of(name: str, doc: str, values: Iterable[str]) -> Parameter[str]:
    """Return the parameter that is one of these texts."""
    allowed = tuple(values)

    def read(given: str) -> str:
        if given not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return given

    return Parameter(name, doc, read, {"type": "string", "enum": list(allowed)})


def moment(name: str, doc: str) -> Parameter[float]:
    """Return the parameter that is an instant, in unix seconds."""

    def read(given: str) -> float:
        try:
            found = float(given) if given.isascii() and "_" not in given else math.nan
        except ValueError:
            found = math.nan
        if not 0 <= found <= LATEST:
            raise ValueError("must be unix seconds")
        return found

    return Parameter(name, doc, read, {"type": "number", "minimum": 0, "maximum": LATEST})


def read_query(query: bytes, declared: Iterable[Parameter[Any]]) -> dict[str, object]:
    """Return the value of every declared parameter. Raises ValidationFailed, which names every one that is wrong."""
    known = {parameter.name: parameter for parameter in declared}
    given, problems = _pairs(query), list[tuple[str, str]]()
    found: dict[str, object] = {name: parameter.default for name, parameter in known.items()}
    for name, values in given.items():
        if name not in known:
            problems.append((name[:100], f"is no parameter here; allowed: {', '.join(known) or 'none'}"))
        elif len(values) > 1:
            problems.append((name, "is given more than once"))
        else:
            try:
                found[name] = known[name].read(values[0])
            except ValueError as error:
                problems.append((name, str(error)))
    problems += [(name, "is required") for name, p in known.items() if p.required and name not in given]
    if problems:
        raise wrong_fields(problems)
    return found


def wrong_fields(problems: Iterable[tuple[str, str]]) -> ValidationFailed:
    """Return the error for fields that are wrong: pairs of the field's path and what is wrong there."""
    details = [{"field": where, "message": message} for where, message in problems]
    told = "; ".join(f"{one['field']}: {one['message']}" for one in details[:5])
    return ValidationFailed(told, details=details)


def _pairs(query: bytes) -> dict[str, list[str]]:
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=MANY)
    except ValueError as error:
        raise wrong_fields([("", f"the query has more than {MANY} parameters")]) from error
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found
