"""The seams: each is exported from the one door, and each has a fake that is one."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Protocol

import pytest

from troyproxy import ports

MODULES = [importlib.import_module(f"troyproxy.ports.{found.name}") for found in pkgutil.iter_modules(ports.__path__)]
SEAMS = sorted(
    name
    for module in MODULES
    for name, value in vars(module).items()
    if inspect.isclass(value) and Protocol in value.__bases__ and value.__module__ == module.__name__
)


@pytest.mark.parametrize("name", SEAMS)
def test_a_seam_is_exported(name: str) -> None:
    assert name in ports.__all__


def test_what_is_exported_is_sorted_and_there() -> None:
    assert ports.__all__ == sorted(ports.__all__)
    assert [name for name in ports.__all__ if not hasattr(ports, name)] == []
