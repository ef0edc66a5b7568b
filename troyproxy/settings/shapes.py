"""Shapes: how a part of the config file is read, and its JSON Schema, in one value, so that the two cannot differ.

A shape reads a decoded YAML value at a path; what is wrong goes into the report and gives None, so that one pass finds
every error. Lists and mappings are never shown in an error, nor is a hidden leaf: they may hold secrets. No I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, TypeVar

from troyproxy.settings.report import Report, Wrong, below, kind, nearest, shown

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Shape(Generic[T_co]):
    """One part of the file."""

    read: Callable[[object, str, Report], T_co | None]
    schema: Mapping[str, object]
    fields: tuple[str, ...] = ()
    """The keys that a record takes."""


def leaf(parse: Callable[[object], T], allowed: str, schema: Mapping[str, object], *, hidden: bool = False) -> Shape[T]:
    """Return the shape of one value; *parse* raises ValueError, whose text (if any) says why."""

    def read(value: object, path: str, report: Report) -> T | None:
        try:
            return parse(value)
        except (TypeError, ValueError) as error:
            seen = "this value" if hidden else shown(value)
            why = f" ({error})" if isinstance(error, Wrong) else ""
            report.wrong(path, f"{seen} is not allowed{why}; allowed: {allowed}")
            return None

    return Shape(read, schema)


def listing(item: Shape[T]) -> Shape[tuple[T, ...]]:
    """Return the shape of a list."""

    def read(value: object, path: str, report: Report) -> tuple[T, ...] | None:
        if not isinstance(value, list):
            report.wrong(path, f"{kind(value)} is not allowed; allowed: a list")
            return None
        read_items = (item.read(v, below(path, i), report) for i, v in enumerate(value))
        return tuple(i for i in read_items if i is not None)

    return Shape(read, {"type": "array", "items": item.schema})


def mapping(item: Shape[T], name: Callable[[str], str] = str) -> Shape[Mapping[str, T]]:
    """Return the shape of a mapping from names to *item*; *name* normalises or raises ValueError with a reason."""

    def read(value: object, path: str, report: Report) -> Mapping[str, T] | None:
        if not isinstance(value, dict):
            report.wrong(path, f"{kind(value)} is not allowed; allowed: a mapping")
            return None
        found: dict[str, T] = {}
        for key, inner in value.items():
            here = below(path, key)
            read_item = item.read(inner, here, report)
            try:
                normal = name(key)
            except ValueError as error:
                report.wrong(here, f"{shown(key)} is not allowed as a name: {error}")
                continue
            if normal in found:
                report.wrong(here, "this name stands twice (after Unicode normalisation)")
            if read_item is not None:
                found[normal] = read_item
        return MappingProxyType(found)

    return Shape(read, {"type": "object", "additionalProperties": item.schema})


def record(fields: Mapping[str, Shape[object]], build: Callable[..., T], required: Collection[str] = ()) -> Shape[T]:
    """Return the shape of a mapping with known keys; *build* takes them as keywords and may raise `Wrong`."""

    def read(value: object, path: str, report: Report) -> T | None:
        if not isinstance(value, dict):
            report.wrong(path, f"{kind(value)} is not allowed; allowed: a mapping of {', '.join(fields)}")
            return None
        before = len(report.problems)
        for key in value.keys() - fields.keys():
            report.wrong(below(path, key), f"is unknown{nearest(key, fields)}; allowed: {', '.join(fields)}")
        for key in required:
            if value.get(key) is None:
                report.wrong(below(path, key), "is required")
        given = {
            k: fields[k].read(v, below(path, k), report) for k, v in value.items() if k in fields and v is not None
        }
        return None if len(report.problems) > before else _built(build, given, path, report)

    schema: dict[str, object] = {
        "type": "object",
        "properties": {name: shape.schema for name, shape in fields.items()},
        "additionalProperties": False,
    }
    return Shape(read, schema | ({"required": list(required)} if required else {}), tuple(fields))


def _built(build: Callable[..., T], given: Mapping[str, object], path: str, report: Report) -> T | None:
    try:
        return build(**given)
    except Wrong as error:
        for place, message in error.problems:
            report.wrong(f"{path}.{place}" if path and place else path or place, message)
        return None


def either(allowed: str, *choices: tuple[Callable[[object], bool], Shape[T]]) -> Shape[T]:
    """Return a shape that is the first of *choices* whose test accepts the value."""

    def read(value: object, path: str, report: Report) -> T | None:
        shape = next((shape for test, shape in choices if test(value)), None)
        if shape is None:
            report.wrong(path, f"{kind(value)} is not allowed; allowed: {allowed}")
            return None
        return shape.read(value, path, report)

    return Shape(read, {"anyOf": [shape.schema for _, shape in choices]})


def nullable(shape: Shape[T], empty: Callable[[], T]) -> Shape[T]:
    """Return *shape*, with nothing (``groq:``) read as *empty*."""

    def read(value: object, path: str, report: Report) -> T | None:
        return empty() if value is None else shape.read(value, path, report)

    return Shape(read, {"anyOf": [shape.schema, {"type": "null"}]}, shape.fields)


def is_text(value: object) -> bool:
    """Tell whether a value is a text."""
    return isinstance(value, str)


def is_mapping(value: object) -> bool:
    """Tell whether a value is a mapping."""
    return isinstance(value, dict)


def is_list(value: object) -> bool:
    """Tell whether a value is a list."""
    return isinstance(value, list)


def once(names: Iterable[str], place: str) -> None:
    """Raise `Wrong` at *place* when a name stands twice."""
    double = [name for name, count in Counter(names).items() if count > 1]
    if double:
        raise Wrong(place, f"{double[0]} stands twice")
