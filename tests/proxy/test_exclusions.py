"""Exclusions of this process, through the planner that serves traffic: the ladder, probes, failures and low scores."""

from __future__ import annotations

from unittest.mock import patch

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.fakes import FakeClock, FakeObserver
from tests.proxy.auto_desk import AutoDesk, priced, providers, skipped
from tests.proxy.rig import combo
from troyproxy.accounting.finished import Finished
from troyproxy.auto import exclusion
from troyproxy.auto.exclusion import FRESH, Record
from troyproxy.errors import AllUnavailable
from troyproxy.proxy import exclusions as module
from troyproxy.proxy.exclusions import MOST_WEIGHTS, Exclusions

MINUTE = 60.0


@pytest.fixture
def desk(clock: FakeClock) -> AutoDesk:
    return AutoDesk(clock)


def test_the_ladder_is_five_ten_twenty_thirty_thirty_minutes(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    for minutes in (5, 10, 20, 30, 30):
        desk.clock.move(minutes * MINUTE - 1.0)
        assert "p0" not in desk.order()
        desk.clock.move(1.0)
        call = desk.plan()
        assert (call.probe, providers(call)[0]) == ("p0/m#A", "p0")
        desk.attempts("p0", "-")
    assert [reason for _, _, reason in desk.observer.of("auto_excluded")] == ["failures", *["probe"] * 5]


def test_who_is_excluded_is_skipped_as_such(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    assert skipped(desk.plan()) == [("p0", "excluded")]


def test_one_probe_is_in_flight_at_a_time(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    desk.clock.move(5 * MINUTE)
    first, second = desk.plan(), desk.plan()
    assert (first.probe, second.probe, skipped(second)) == ("p0/m#A", None, [("p0", "excluded")])


def test_a_probe_holds_its_place_for_as_long_as_it_may_take(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    desk.clock.move(5 * MINUTE)
    desk.plan()
    desk.auto.probing(desk.target("p0", limit_s=75.0))
    desk.clock.move(74.0)
    assert desk.plan().probe is None
    desk.clock.move(1.0)
    assert desk.plan().probe == "p0/m#A"


def test_a_probe_that_never_begins_gives_its_place_back_after_five_seconds(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    desk.clock.move(5 * MINUTE)
    desk.plan()
    desk.clock.move(4.9)
    assert desk.plan().probe is None
    desk.clock.move(0.1)
    assert desk.plan().probe == "p0/m#A"


def test_a_good_probe_readmits_and_the_ladder_begins_anew(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    desk.clock.move(5 * MINUTE)
    desk.plan()
    desk.attempts("p0", "+")
    call = desk.plan()
    assert (providers(call)[0], call.probe) == ("p0", None)
    desk.attempts("p0", "-----")
    desk.clock.move(5 * MINUTE)
    assert desk.plan().probe == "p0/m#A"


def test_a_probe_is_good_when_it_begins_to_answer(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    desk.clock.move(5 * MINUTE)
    desk.plan()
    with desk.attempt("p0") as target:
        desk.auto.served((), target)
        assert (desk.order()[0], desk.plan().probe) == ("p0", None)


@pytest.mark.parametrize("word", ["request", "context", "cancelled", "saturated"])
def test_what_says_nothing_of_the_candidate_is_not_counted(desk: AutoDesk, word: str) -> None:
    desk.attempts("p0", "-" * 20, word)
    assert desk.order()[0] == "p0"


@pytest.mark.parametrize("word", ["request", "context", "cancelled", "saturated"])
def test_a_probe_that_says_nothing_is_made_again_at_once(desk: AutoDesk, word: str) -> None:
    desk.attempts("p0", "-----")
    desk.clock.move(5 * MINUTE)
    desk.plan()
    desk.attempts("p0", "-", word)
    assert desk.plan().probe == "p0/m#A"


def test_an_attempt_of_before_the_probe_does_not_give_its_place_back(desk: AutoDesk) -> None:
    desk.attempts("p0", "-----")
    with desk.attempt("p0", "cancelled"):
        desk.clock.move(5 * MINUTE)
        desk.plan()
    assert desk.plan().probe is None


@pytest.mark.parametrize("outcome", ["ok", "transient"])
def test_an_attempt_of_before_the_exclusion_changes_nothing(desk: AutoDesk, outcome: str) -> None:
    with desk.attempt("p0", outcome):
        desk.clock.move(1.0)
        desk.attempts("p0", "-----")
    assert "p0" not in desk.order()
    desk.clock.move(5 * MINUTE)
    assert desk.plan().probe == "p0/m#A"


def test_a_client_that_left_does_not_count(desk: AutoDesk) -> None:
    for _ in range(6):
        with desk.attempt("p0", whole=False):
            pass
    assert desk.order()[0] == "p0"


def test_all_excluded_come_back_the_earliest_end_first(desk: AutoDesk) -> None:
    for name in ("p3", "p1", "p4", "p0", "p2"):
        desk.attempts(name, "-----")
        desk.clock.move(1.0)
    call = desk.plan()
    assert (providers(call), desk.marks(call)) == (["p3", "p1", "p4", "p0", "p2"], ["readmitted"])


def test_who_comes_back_for_want_of_others_and_serves_is_in_again(desk: AutoDesk) -> None:
    for name in ("p3", "p1", "p4", "p0", "p2"):
        desk.attempts(name, "-----")
    desk.plan()
    desk.attempts("p1", "+")
    assert desk.order() == ["p1"]


def test_of_all_excluded_those_that_are_open_do_not_come_back(desk: AutoDesk) -> None:
    desk.open("p0", "p1")
    for name in ("p2", "p3", "p4"):
        desk.attempts(name, "-----")
    assert desk.order() == ["p2", "p3", "p4"]


def test_all_open_is_503_with_the_earliest_reset(desk: AutoDesk) -> None:
    desk.open("p0")
    desk.clock.move(10.0)
    desk.open("p1", "p2", "p3", "p4")
    error = desk.refused(desk.call())
    assert isinstance(error, AllUnavailable)
    assert error.headers["retry-after"] == "20"


def test_a_score_below_a_fifth_is_excluded_once_however_many_combos_see_it(clock: FakeClock) -> None:
    desk = AutoDesk(clock, priced("p0", 0.0), priced("p1", 100.0))
    mode = {"x-troy-mode": "cost-saver"}
    for name in ("p0", "p1"):
        desk.attempts(name, "+" * 10)  # both as slow and as unsteady as the slowest
    desk.quota("p1", 0)
    desk.half_open("p1")
    assert skipped(desk.plan(headers=mode)) == [("p1", "excluded")]
    assert desk.observer.of("auto_excluded") == [("p1", "m", "score")]
    desk.plan(headers=mode)
    assert len(desk.observer.of("auto_excluded")) == 1


def thrifty(clock: FakeClock) -> AutoDesk:
    """Three providers and a combo that goes by prices alone, so the dearest scores nothing in it."""
    three = (priced("p0", 1.0), priced("p1", 2.0), priced("p4", 10.0))
    return AutoDesk(clock, *three, combo("thrift", strategy="auto", auto={"weights": {"costInv": 1}}))


def test_a_score_too_low_by_some_weights_leaves_nobody_out_by_others(clock: FakeClock) -> None:
    desk = thrifty(clock)
    assert skipped(desk.plan("thrift")) == [("p4", "excluded")]
    assert desk.order() == ["p0", "p1", "p4"]


def test_a_success_elsewhere_says_nothing_of_a_score(clock: FakeClock) -> None:
    desk = thrifty(clock)
    desk.plan("thrift")
    for _ in range(3):
        desk.attempts("p4", "+")
        assert "p4" not in desk.order("thrift")
    assert desk.observer.of("auto_excluded") == [("p4", "m", "score")]


def test_a_low_score_comes_back_by_a_probe_and_a_bad_one_is_the_next_step(clock: FakeClock) -> None:
    desk = thrifty(clock)
    desk.plan("thrift")
    desk.clock.move(300.0)
    call = desk.plan("thrift")
    assert (providers(call)[0], desk.marks(call)) == ("p4", ["probe"])
    assert "p4" not in desk.order("thrift")  # one at a time
    desk.attempts("p4", "-")
    desk.clock.move(599.0)
    assert "p4" not in desk.order("thrift")
    desk.clock.move(1.0)
    with desk.attempt("p4", "cancelled", whole=False) as target:
        desk.auto.probing(target)
        assert "p4" not in desk.order("thrift")
    assert desk.plan("thrift").probe == "p4/m#A"
    desk.auto.served((), desk.target("p4"))
    assert desk.observer.of("auto_excluded") == [("p4", "m", "score"), ("p4", "m", "probe")]
    desk.plan("thrift")
    assert desk.observer.of("auto_excluded")[-1] == ("p4", "m", "score")


def test_the_weights_by_which_one_scores_too_low_are_bounded(clock: FakeClock) -> None:
    desk = thrifty(clock)
    for at in range(MOST_WEIGHTS + 1):
        desk.auto.exclusions.exclude(("p4", "m", "A"), f"w{at}")
    known = [desk.auto.exclusions.record(("p4", "m", "A"), f"w{at}").row for at in range(MOST_WEIGHTS + 1)]
    assert known == [0] + [1] * MOST_WEIGHTS


ATTEMPTS = st.lists(
    st.tuples(st.sampled_from([True] * 8 + [False] * 3 + [None]), st.sampled_from([0.0, 1.0, 59.0, 400.0])), max_size=60
)


def _after(record: Record, now: float, *, ok: bool | None) -> Record:
    if ok is None:
        return exclusion.returned(record, began=now)
    return exclusion.attempted(record, now, ok=ok, began=now)


@given(ATTEMPTS, st.booleans())
def test_successes_that_are_only_counted_leave_the_record_that_each_of_them_would_have_left(
    attempts: list[tuple[bool | None, float]], looks: bool
) -> None:
    clock = FakeClock()
    record, exclusions, key = FRESH, Exclusions(clock, FakeObserver()), ("p0", "m", "A")
    for ok, pause in attempts:
        clock.move(pause)
        record = _after(record, clock.now(), ok=ok)
        exclusions.attempted(Finished(*key, clock.now(), ok=ok))
        if looks:
            assert exclusions.record(key, "") == record
    assert exclusions.record(key, "") == record


def test_what_is_remembered_is_bounded(clock: FakeClock) -> None:
    exclusions = Exclusions(clock, FakeObserver())
    with patch.object(module, "BOUND", 8):
        for number in range(20):
            for _ in range(2):
                exclusions.attempted(Finished("p0", f"m{number}", "A", clock.now(), ok=True))
    known = [exclusions.record(("p0", f"m{number}", "A"), "") is not FRESH for number in range(20)]
    assert (known[-1], 7 <= sum(known) <= 8) == (True, True)
