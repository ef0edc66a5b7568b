"""Names are looked up once for each snapshot; what they mean is the business of `routing.names`."""

from __future__ import annotations

import pytest

from tests.proxy.rig import ALPHA, BETA, TWO, snapshot
from troyproxy.errors import InvalidRequest, ModelNotFound
from troyproxy.proxy import resolutions as module
from troyproxy.proxy.resolutions import LONGEST, Resolutions
from troyproxy.routing.names import resolve

HERE = snapshot(ALPHA, BETA, TWO)


@pytest.mark.parametrize("name", ["two", "alpha/m1", " two ", "auto", "default", "alpha/m1-high", "alpha/new"])
def test_a_name_means_the_same_the_second_time_and_is_looked_up_once(name: str) -> None:
    names = Resolutions()
    assert names.of(name, HERE) == resolve(name, HERE)
    assert names.of(name, HERE) is names.of(name, HERE)


def test_another_snapshot_looks_them_up_anew() -> None:
    names = Resolutions()
    names.of("two", HERE)
    with pytest.raises(ModelNotFound):
        names.of("two", snapshot(ALPHA, BETA))


@pytest.mark.parametrize("name", [None, 1, "", ["two"], {"a": 1}])
def test_what_is_no_name_is_refused_each_time(name: object) -> None:
    names = Resolutions()
    for _ in range(2):
        with pytest.raises(InvalidRequest):
            names.of(name, HERE)


def test_they_are_bounded_in_number_and_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 1)
    names, long = Resolutions(), "two" + " " * LONGEST
    first = names.of("two", HERE)
    assert names.of(long, HERE) is not names.of(long, HERE)
    assert names.of("two", HERE) is first
    names.of("alpha/m1", HERE)
    assert names.of("two", HERE) is not first
