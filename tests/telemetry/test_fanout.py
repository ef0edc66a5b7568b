"""Everything reaches every observer, and a silent one does nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.telemetry.rows import ATTEMPT, ROW
from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.ports import AutoPlan, Failover, Observer
from troyproxy.telemetry.fanout import Fanout
from troyproxy.telemetry.silent import Silent, Sleeper

FAILOVER = Failover("combo1", "alpha", "beta", "rate")
PLAN = AutoPlan("auto", "alpha", "m1", 0.7)
CALLS: dict[str, tuple[object, ...]] = {
    "request_started": (),
    "request_finished": (ROW,),
    "attempt_finished": (ATTEMPT,),
    "failed_over": (FAILOVER,),
    "skipped": ("alpha", "circuit"),
    "circuit_changed": ("alpha", "m1", "closed", "open"),
    "inflight_changed": ("alpha", "A", 1),
    "leaked": ("alpha", "m1", "hermes", "suppressed"),
    "adapted": ("alpha", "n", "dropped"),
    "auto_planned": (PLAN,),
    "auto_excluded": ("alpha", "m1", "score"),
    "events_seen": ("alpha", "m1", (0.5,)),
    "trace": ("req-1", ("a",)),
}


class Recorder:
    """Writes down every call."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, tuple[object, ...]]] = []

    def request_started(self) -> None:
        self.heard.append(("request_started", ()))

    def request_finished(self, row: UsageRow) -> None:
        self.heard.append(("request_finished", (row,)))

    def attempt_finished(self, attempt: AttemptRecord) -> None:
        self.heard.append(("attempt_finished", (attempt,)))

    def failed_over(self, failover: Failover) -> None:
        self.heard.append(("failed_over", (failover,)))

    def skipped(self, provider: str, reason: str) -> None:
        self.heard.append(("skipped", (provider, reason)))

    def circuit_changed(self, provider: str, model: str, before: str, after: str) -> None:
        self.heard.append(("circuit_changed", (provider, model, before, after)))

    def inflight_changed(self, provider: str, account: str, count: int) -> None:
        self.heard.append(("inflight_changed", (provider, account, count)))

    def leaked(self, provider: str, model: str, leak_format: str, action: str) -> None:
        self.heard.append(("leaked", (provider, model, leak_format, action)))

    def adapted(self, provider: str, param: str, action: str) -> None:
        self.heard.append(("adapted", (provider, param, action)))

    def auto_planned(self, plan: AutoPlan) -> None:
        self.heard.append(("auto_planned", (plan,)))

    def auto_excluded(self, provider: str, model: str, reason: str) -> None:
        self.heard.append(("auto_excluded", (provider, model, reason)))

    def events_seen(self, provider: str, model: str, gaps_s: Sequence[float]) -> None:
        self.heard.append(("events_seen", (provider, model, gaps_s)))

    def trace(self, request_id: str, lines: Sequence[str]) -> None:
        self.heard.append(("trace", (request_id, lines)))


def test_every_event_of_the_port_is_passed_on_here() -> None:
    assert set(CALLS) == {name for name in vars(Observer) if not name.startswith("_")}


@pytest.mark.parametrize("name", CALLS)
def test_an_event_reaches_every_observer(name: str) -> None:
    first, second = Recorder(), Recorder()
    fanout: Observer = Fanout([first, second])
    getattr(fanout, name)(*CALLS[name])
    assert first.heard == second.heard == [(name, CALLS[name])]


@pytest.mark.parametrize("name", CALLS)
def test_a_silent_observer_does_nothing(name: str) -> None:
    silent: Observer = Silent()
    assert getattr(silent, name)(*CALLS[name]) is None


class Counting(Silent):
    """Hears of the start of requests, and of nothing else."""

    def __init__(self) -> None:
        self.started = 0

    def request_started(self) -> None:
        self.started += 1


def test_who_alone_hears_an_event_is_told_without_a_detour() -> None:
    alone = Counting()
    fanout = Fanout([Silent(), alone, Silent()])
    assert fanout.request_started == alone.request_started


def test_who_does_nothing_with_an_event_is_not_told_of_it() -> None:
    first, second = Counting(), Counting()
    fanout = Fanout([first, Silent(), second])
    fanout.request_started()
    assert (first.started, second.started) == (1, 1)
    assert [len(fanout._hearing[name]) for name in ("request_started", "skipped")] == [2, 0]


class Dozing(Sleeper):
    """Counts the requests that it is told of."""

    def __init__(self) -> None:
        super().__init__()
        self.started = 0

    def request_started(self) -> None:
        self.started += 1


def test_who_sleeps_is_told_of_nothing_until_it_wakes() -> None:
    awake, sleeper = Counting(), Dozing()
    fanout = Fanout([awake, sleeper])
    for asleep in (True, False, False, True):
        sleeper.turn(asleep=asleep)
        fanout.request_started()
    assert (awake.started, sleeper.started) == (4, 2)


def test_while_one_sleeps_the_other_is_told_without_a_detour() -> None:
    awake, sleeper = Counting(), Dozing()
    fanout = Fanout([awake, sleeper])
    before = fanout.request_started == awake.request_started
    sleeper.turn(asleep=False)
    assert (before, fanout.request_started == awake.request_started) == (True, False)
