"""Live events: bounded, in order, and free of secrets; nobody is waited for."""

from __future__ import annotations

import pytest

from tests.fakes import FakeClock
from tests.telemetry.rows import attempt, row
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import RateLimited
from troyproxy.ports import AutoPlan, Failover
from troyproxy.telemetry.live import KINDS, Live, Watcher

pytestmark = pytest.mark.anyio


@pytest.fixture
def live(clock: FakeClock) -> Live:
    return Live(clock, queued=3, watchers=2)


def taken(watcher: Watcher) -> list[tuple[str, dict[str, object]]]:
    return [(event.kind, dict(event.facts)) for event in watcher.take()[1]]


def everything(live: Live) -> None:
    """Tell one event of every kind."""
    live.request_finished(row())
    live.attempt_finished(attempt())
    live.failed_over(Failover("daily", "alpha", "beta", "rate"))
    live.skipped("alpha", "cooldown")
    live.adapted("alpha", "temperature", "dropped")
    live.leaked("alpha", "m1", "F01", "repaired")
    live.auto_planned(AutoPlan("auto", "alpha", "m1", 0.5))
    live.auto_excluded("alpha", "m1", "failures")
    live.circuit_changed("alpha", "m1", "closed", "open")
    live.tell("cooldown", {"provider": "alpha"})
    live.tell("cleared", {"provider": None})
    live.configured(Snapshot(), Snapshot(revision=7))


async def test_every_kind_that_is_named_is_told_and_no_other(clock: FakeClock) -> None:
    live = Live(clock)
    with live.watch() as watcher:
        everything(live)
        assert {kind for kind, _ in taken(watcher)} == set(KINDS)


async def test_events_are_numbered_and_have_their_moment(live: Live, clock: FakeClock) -> None:
    with live.watch() as watcher:
        live.skipped("alpha", "cooldown")
        clock.move(2.0)
        live.skipped("beta", "context")
        first, second = watcher.take()[1]
    assert (second.number - first.number, second.at - first.at) == (1, 2.0)


async def test_a_failover_says_from_where_to_where_and_why(live: Live) -> None:
    with live.watch() as watcher:
        live.failed_over(Failover(None, "alpha", "beta", "rate"))
        assert taken(watcher) == [("failover", {"class": "rate", "from_provider": "alpha", "to_provider": "beta"})]


async def test_an_attempt_says_what_came_of_it(live: Live) -> None:
    with live.watch() as watcher:
        live.attempt_finished(attempt(outcome="rate", status=429, reason="429: rate", hint_s=3.0))
        [(_, facts)] = taken(watcher)
    assert (facts["outcome"], facts["status"], facts["reason"], facts["wait_s"]) == ("rate", 429, "429: rate", 3.0)


async def test_one_who_does_not_read_loses_the_oldest_and_is_told_how_many(live: Live) -> None:
    with live.watch() as slow, live.watch() as quick:
        for number in range(5):
            live.skipped(f"p{number}", "cooldown")
            quick.take()
        lost, events = slow.take()
        assert (lost, [event.facts["provider"] for event in events]) == (2, ["p2", "p3", "p4"])
        assert slow.take() == (0, [])


async def test_only_what_is_wanted_waits(live: Live) -> None:
    with live.watch(("circuit",)) as watcher:
        everything(live)
        assert [kind for kind, _ in taken(watcher)] == ["circuit"]


async def test_there_is_a_most_of_watchers_and_a_place_is_free_again(live: Live) -> None:
    with live.watch(), live.watch():
        with pytest.raises(RateLimited), live.watch():
            pass
        assert len(live) == 2
    assert len(live) == 0


async def test_without_a_watcher_nothing_is_numbered(live: Live) -> None:
    everything(live)
    with live.watch() as watcher:
        live.skipped("alpha", "cooldown")
        assert watcher.take()[1][0].number == 1


async def test_news_are_waited_for_and_no_longer_than_asked(live: Live) -> None:
    with live.watch() as watcher:
        await watcher.news(0.0)
        live.skipped("alpha", "cooldown")
        await watcher.news(3600.0)
        assert len(watcher.take()[1]) == 1


async def test_a_secret_that_a_client_sent_as_a_model_is_masked(live: Live) -> None:
    with live.watch() as watcher:
        live.request_finished(row(requested_model="sk-proj-0123456789abcdef", key_name="x" * 900))
        [(_, facts)] = taken(watcher)
    assert facts["requested_model"] == "***"
    assert len(str(facts["key_name"])) == 501
