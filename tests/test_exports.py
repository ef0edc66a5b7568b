"""The public door: what is exported is there, typed, and nothing else is."""

from __future__ import annotations

import importlib

import pytest

import troyproxy
from troyproxy.version import VERSION


@pytest.mark.parametrize("name", troyproxy.__all__)
def test_an_exported_name_can_be_imported(name: str) -> None:
    assert getattr(troyproxy, name) is not None


def test_the_exports_are_sorted_and_each_has_one_home() -> None:
    assert troyproxy.__all__ == sorted(troyproxy.__all__)
    assert set(troyproxy.__all__) == {*troyproxy._HOMES, "__version__"}


@pytest.mark.parametrize(("name", "home"), troyproxy._HOMES.items())
def test_a_name_is_the_one_of_its_home(name: str, home: str) -> None:
    assert getattr(troyproxy, name) is getattr(importlib.import_module(home), name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = troyproxy.nothing


def test_dir_lists_the_exports_and_the_version_is_the_one_of_version_py() -> None:
    assert dir(troyproxy) == sorted(troyproxy.__all__)
    assert troyproxy.__version__ == VERSION
