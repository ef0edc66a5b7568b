"""What of the health state is news to somebody who watches."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from troyproxy.proxy.lock_news import lock_news
from troyproxy.resilience.classes import ErrorClass, Scope
from troyproxy.resilience.events import CircuitOpened, Cleared, Event, Failed, Locked, ProbeLeased, Succeeded

NOW = 1_800_000_000.0


def told(event: Event) -> list[tuple[str, Mapping[str, object]]]:
    heard: list[tuple[str, Mapping[str, object]]] = []
    lock_news(lambda kind, facts: heard.append((kind, facts)))(event)
    return heard


def failed(scope: Scope, cooldown_s: float | None = 30.0) -> Failed:
    return Failed(NOW, "alpha", "m1", "alpha#a", ErrorClass.RATE, None, cooldown_s, False, scope, NOW - 1)


@pytest.mark.parametrize(
    ("scope", "account", "model"), [(Scope.PAIR, "a", "m1"), (Scope.ACCOUNT, "a", "*"), (Scope.MODEL, "*", "m1")]
)
def test_a_failure_that_locks_says_whom_and_until_when(scope: Scope, account: str, model: str) -> None:
    lock = {"provider": "alpha", "account": account, "model": model, "class": "rate", "until": NOW + 30, "soft": False}
    assert told(failed(scope)) == [("cooldown", lock)]


def test_a_lock_of_another_instance_says_so() -> None:
    locked = Locked(NOW, "alpha", "alpha#a", "*", NOW + 9, True, ErrorClass.QUOTA)
    [(kind, facts)] = told(locked)
    assert (kind, facts["account"], facts["until"], facts["elsewhere"]) == ("cooldown", "a", NOW + 9, True)


@pytest.mark.parametrize(
    ("event", "facts"),
    [
        (Cleared(NOW), {"provider": None, "account": None, "model": None}),
        (Cleared(NOW, "alpha", "alpha#a"), {"provider": "alpha", "account": "a", "model": None}),
    ],
)
def test_a_clearing_says_what_it_lifts(event: Cleared, facts: dict[str, object]) -> None:
    assert told(event) == [("cleared", facts)]


@pytest.mark.parametrize(
    "event",
    [
        failed(Scope.PAIR, None),
        failed(Scope.NONE),
        Succeeded(NOW, "alpha", "m1", "alpha#a", NOW),
        CircuitOpened(NOW, "alpha", "m1", NOW + 30, 30.0),
        ProbeLeased(NOW, "alpha", "m1", NOW + 30),
    ],
)
def test_what_locks_nobody_is_no_news(event: Event) -> None:
    assert told(event) == []
