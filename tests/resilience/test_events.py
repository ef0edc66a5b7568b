"""Events survive their journal form, and only those that matter to a restart are journalled."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.resilience.classes import ErrorClass, Scope
from troyproxy.resilience.events import (
    CircuitClosed,
    CircuitHalfOpened,
    CircuitOpened,
    Cleared,
    Event,
    Failed,
    ProbeLeased,
    ProbeReturned,
    Succeeded,
    from_record,
    is_journalled,
    to_record,
    type_name,
)


@dataclass(frozen=True)
class Levels:
    """A state in which every pair has a level, or none has."""

    any_level: bool

    def has_level(self, provider: str, account: str, model: str) -> bool:
        return bool(provider and account and model) and self.any_level


def failed(*, cooldown_s: float | None = None, counts: bool = False) -> Failed:
    return Failed(
        5.0,
        "alpha",
        "m1",
        "A",
        ErrorClass.TRANSIENT,
        None,
        cooldown_s,
        soft=True,
        scope=Scope.PAIR,
        started_at=4.0,
        counts=counts,
    )


EVENTS: list[Event] = [
    failed(cooldown_s=2.0, counts=True),
    Succeeded(5.0, "alpha", "m1", "A", 4.0),
    CircuitOpened(5.0, "alpha", "m1", 35.0, 30.0),
    CircuitHalfOpened(35.0, "alpha", "m1"),
    CircuitClosed(36.0, "alpha", "m1"),
    ProbeLeased(35.0, "alpha", "m1", 45.0),
    ProbeReturned(36.0, "alpha", "m1", 35.0),
    Cleared(50.0, provider="alpha"),
]


@pytest.mark.parametrize("event", EVENTS, ids=type_name)
def test_an_event_comes_back_from_json_as_it_was(event: Event) -> None:
    assert from_record(json.loads(json.dumps(to_record(event)))) == event


@given(
    st.builds(
        Failed,
        at=st.floats(0, 1e12),
        hint_s=st.none() | st.floats(1, 1800),
        cooldown_s=st.none() | st.floats(0, 1800),
        started_at=st.floats(0, 1e12),
    )
)
def test_every_failure_comes_back_from_json(event: Failed) -> None:
    assert from_record(json.loads(json.dumps(to_record(event)))) == event


def test_a_record_names_its_version_and_type() -> None:
    record = to_record(Cleared(1.0))
    assert (record["v"], record["type"]) == (1, "cleared")


def test_unknown_fields_are_ignored() -> None:
    record = to_record(Cleared(1.0)) | {"later": True}
    assert from_record(record) == Cleared(1.0)


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ({}, "version"),
        ({"v": 2, "type": "cleared", "at": 1.0}, "version"),
        ({"v": 1, "type": "melted", "at": 1.0}, "type"),
        ({"v": 1, "at": 1.0}, "type"),
        ({"v": 1, "type": "cleared"}, "malformed cleared"),
        ({"v": 1, "type": "cleared", "at": "noon"}, "malformed cleared"),
    ],
)
def test_a_record_that_cannot_be_read_is_an_error(record: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        from_record(record)


@pytest.mark.parametrize(
    "event", [e for e in EVENTS if isinstance(e, CircuitOpened | CircuitHalfOpened | CircuitClosed | Cleared)]
)
def test_circuit_changes_and_clearings_are_journalled(event: Event) -> None:
    assert is_journalled(Levels(any_level=False), event)


@pytest.mark.parametrize("event", [e for e in EVENTS if isinstance(e, ProbeLeased | ProbeReturned)])
def test_leases_are_not_journalled(event: Event) -> None:
    assert not is_journalled(Levels(any_level=True), event)


@pytest.mark.parametrize("any_level", [True, False])
def test_a_success_is_journalled_if_it_clears_a_level(*, any_level: bool) -> None:
    assert is_journalled(Levels(any_level), Succeeded(5.0, "alpha", "m1", "A", 4.0)) is any_level


@pytest.mark.parametrize(
    ("event", "expected"), [(failed(), False), (failed(cooldown_s=1.0), True), (failed(counts=True), True)]
)
def test_a_failure_without_effect_is_not_journalled(event: Failed, *, expected: bool) -> None:
    assert is_journalled(Levels(any_level=True), event) is expected
