"""The data files of the catalogue: our own, so what is wrong in one is our own fault; it is said as ConfigError."""

from __future__ import annotations

import importlib.resources
from typing import Any, TypeVar

import yaml

from troyproxy.errors import ConfigError
from troyproxy.settings.report import Report
from troyproxy.settings.shapes import Shape

T = TypeVar("T")


def decoded(name: str) -> Any:  # noqa: ANN401 -- the shape that reads it sees to the types
    """Return what the data file *name* says."""
    text = importlib.resources.files("troyproxy.catalog").joinpath("data", name).read_text("utf-8")
    # The fast loader will do: the strict one is for what people write.
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 -- both are safe loaders


def shaped(shape: Shape[T], raw: object, source: str) -> T:
    """Return *raw* as *shape* reads it. Raises ConfigError with every place where it does not fit."""
    report = Report()
    found = shape.read(raw, "", report)
    report.check(source)
    if found is None:  # pragma: no cover -- a shape that gives nothing has reported why
        raise ConfigError(f"{source}: is unreadable")
    return found
