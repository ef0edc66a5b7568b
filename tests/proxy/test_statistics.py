"""What is measured of candidates, in memory."""

from __future__ import annotations

from troyproxy.accounting.finished import Finished
from troyproxy.proxy.statistics import UNMEASURED, Statistics

KEY = ("alpha", "m1", "A")
NOW = 1_800_000_000.0


def test_a_candidate_is_measured_by_provider_model_and_account() -> None:
    statistics = Statistics()
    statistics.note(Finished(*KEY, NOW, ok=True, latency_ms=40.0))
    statistics.note(Finished("alpha", "m1", "B", NOW, ok=False))
    mine, other = statistics.measures(KEY, NOW), statistics.measures(("alpha", "m1", "B"), NOW)
    assert (mine.recent, mine.success_rate, mine.p50_ms) == (1, 1.0, 40.0)
    assert (other.success_rate, other.p50_ms) == (0.0, None)


def test_what_was_never_asked_is_not_measured() -> None:
    assert Statistics().measures(KEY, NOW) is UNMEASURED


def test_attempts_in_flight_are_counted_by_candidate() -> None:
    statistics = Statistics()
    statistics.carry(KEY)
    statistics.carry(KEY)
    statistics.release(KEY)
    assert (statistics.inflight(KEY), statistics.inflight(("alpha", "m2", "A"))) == (1, 0)
    statistics.release(KEY)
    assert statistics.inflight(KEY) == 0


def test_the_least_recently_used_is_forgotten_first() -> None:
    statistics = Statistics(bound=2)
    for name in ("m1", "m2", "m1", "m3"):
        statistics.note(Finished("alpha", name, "A", NOW))
    assert len(statistics) == 2
    assert [statistics.measures(("alpha", name, "A"), NOW).recent for name in ("m1", "m2", "m3")] == [2, 0, 1]


def test_the_past_takes_the_place_of_what_was_measured() -> None:
    statistics = Statistics()
    statistics.note(Finished(*KEY, NOW))
    statistics.begin_anew([Finished(*KEY, NOW - 60), Finished(*KEY, NOW)])
    assert statistics.measures(KEY, NOW).recent == 2


def test_attempts_that_are_written_down_together_count_as_if_each_had_been_alone() -> None:
    seldom, often = Statistics(), Statistics()
    for number in range(150):
        finished = Finished(*KEY, NOW + number, ok=number % 7 > 0, latency_ms=float(number))
        seldom.note(finished)
        often.note(finished)
        assert len(often) == 1
    assert seldom.measures(KEY, NOW + 150) == often.measures(KEY, NOW + 150)
    assert seldom.use(KEY, NOW + 150) == often.use(KEY, NOW + 150)


def test_use_is_always_as_of_now() -> None:
    statistics = Statistics()
    assert statistics.use(KEY, NOW) == (0, 0.0)
    statistics.note(Finished(*KEY, NOW))
    statistics.measures(KEY, NOW)
    statistics.note(Finished(*KEY, NOW + 0.1))
    assert statistics.use(KEY, NOW + 0.1) == (2, NOW + 0.1)
    assert statistics.use(KEY, NOW + 3_700)[0] == 0
