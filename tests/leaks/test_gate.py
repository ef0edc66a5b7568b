"""When an answer may begin, and when an attempt has to end."""

from __future__ import annotations

from typing import Final

import pytest

from tests.leaks.chunks import CALL, LEAK, USAGE, WEATHER, Event, chunk
from troyproxy.leaks import gate as gating
from troyproxy.leaks.gate import GateVerdict, LeakGate
from troyproxy.leaks.modes import LeakAction, LeakMode
from troyproxy.leaks.options import Exhausted, Options, Unrepairable
from troyproxy.leaks.policy import Leak, Policy

PENDING, PASS, REJECT = GateVerdict.PENDING, GateVerdict.PASS, GateVerdict.REJECT
STOP: Final = chunk(finish="stop")
CUT: Final = LEAK[:30]
ROLE: Final = chunk("", role="assistant")


def gate(mode: LeakMode = LeakMode.SUPPRESS, options: Options | None = None) -> LeakGate:
    return LeakGate(Policy(mode, WEATHER, options or Options()))


def fed(mine: LeakGate, *events: Event, can_reject: bool = True) -> list[GateVerdict]:
    return [mine.feed(event, can_reject) for event in events]


@pytest.mark.parametrize(
    ("events", "verdicts"),
    [
        ([ROLE, chunk("Hi")], [PENDING, PASS]),
        ([chunk("<fu"), chunk("nction=get_weather>{")], [PENDING, PASS]),
        ([chunk("<fu"), chunk("n!")], [PENDING, PASS]),
        ([chunk("<fu"), STOP], [PENDING, PASS]),
        ([chunk("\n"), chunk(reasoning="hm")], [PENDING, PASS]),
        ([chunk(tool_calls=CALL)], [PASS]),
        ([chunk("<tool_call>"), chunk(tool_calls=CALL)], [PENDING, PASS]),
        ([chunk("Hi"), chunk("<fu", index=1), chunk("x", index=1)], [PASS, PASS, PASS]),
        ([USAGE], [PENDING]),
        ([{"error": {"message": "boom"}}], [PASS]),
        ([STOP], [PASS]),
        ([None], [PENDING]),
    ],
)
def test_the_commit_waits_for_the_first_words(events: list[Event], verdicts: list[GateVerdict]) -> None:
    assert fed(gate(), *events) == verdicts


@pytest.mark.parametrize("mode", [LeakMode.FAILOVER, LeakMode.AUTO])
def test_a_leak_before_the_first_word_ends_the_attempt(mode: LeakMode) -> None:
    mine = gate(mode)
    assert fed(mine, ROLE, chunk("<fu"), chunk(LEAK[3:])) == [PENDING, PENDING, REJECT]
    assert mine.rejected == Leak(0, "F01", LeakAction.FAILED_OVER)


def test_with_nobody_left_auto_waits_for_the_call_and_foretells_it() -> None:
    mine = gate(LeakMode.AUTO)
    assert fed(mine, *map(chunk, LEAK), can_reject=False) == [PENDING] * len(LEAK)
    assert mine.leak is None
    assert fed(mine, STOP, can_reject=False) == [PASS]
    assert mine.leak == Leak(0, "F01", LeakAction.REPAIRED)


def test_with_nobody_left_failover_suppresses_at_once() -> None:
    mine = gate(LeakMode.FAILOVER)
    assert fed(mine, chunk(LEAK), can_reject=False) == [PASS]
    assert mine.leak == Leak(0, "F01", LeakAction.SUPPRESSED)


def test_suppress_never_rejects_and_tells_the_leak() -> None:
    mine = gate()
    assert fed(mine, chunk(LEAK)) == [PASS]
    assert mine.leak == Leak(0, "F01", LeakAction.SUPPRESSED)


def test_reasoning_that_was_shown_ends_failing_over() -> None:
    assert fed(gate(LeakMode.AUTO), chunk(reasoning="hm"), chunk(LEAK)) == [PASS, PASS]


def test_a_choice_that_has_begun_well_ends_failing_over() -> None:
    assert fed(gate(LeakMode.AUTO), chunk("Hi", index=1), chunk(LEAK)) == [PASS, PASS]


def test_undecided_choices_beside_a_leak_are_given_up_with_it() -> None:
    assert fed(gate(LeakMode.AUTO), chunk("<fu", index=1), chunk(LEAK)) == [PENDING, REJECT]


def test_the_reason_to_leave_is_the_choice_that_leaked() -> None:
    mine = gate(LeakMode.AUTO)
    fed(mine, chunk("<fu", index=1), chunk(LEAK))
    assert mine.rejected == Leak(0, "F01", LeakAction.FAILED_OVER)


def test_repair_waits_and_rejects_only_what_it_cannot_repair() -> None:
    good, bad = gate(LeakMode.REPAIR), gate(LeakMode.REPAIR)
    assert fed(good, chunk(LEAK), STOP) == [PENDING, PASS]
    assert fed(bad, chunk(CUT), STOP) == [PENDING, REJECT]


@pytest.mark.parametrize(
    ("options", "can_reject"), [(Options(on_unrepairable=Unrepairable.SUPPRESS), True), (Options(), False)]
)
def test_what_repair_cannot_repair_is_suppressed_where_it_has_to_be(options: Options, can_reject: bool) -> None:
    mine = gate(LeakMode.REPAIR, options)
    assert fed(mine, chunk(CUT), STOP, can_reject=can_reject) == [PENDING, PASS]
    assert mine.leak == Leak(0, "F01", LeakAction.SUPPRESSED)


@pytest.mark.parametrize("mode", [LeakMode.OFF, LeakMode.OBSERVE])
def test_a_mode_that_changes_nothing_delays_nothing(mode: LeakMode) -> None:
    assert fed(gate(mode), chunk("<fu"), chunk(LEAK)) == [PASS, PASS]


def test_a_stream_that_says_nothing_is_not_held_for_ever() -> None:
    assert fed(gate(), *[chunk("")] * 65)[-1] is PASS


def test_a_leak_without_end_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gating, "_WAITING_EVENTS", 3)
    assert fed(gate(LeakMode.REPAIR), chunk(CUT), *[chunk("x")] * 3) == [PENDING] * 3 + [PASS]


def test_choices_beyond_the_bound_begin_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gating, "MAX_CHOICES", 1)
    assert fed(gate(), chunk("<fu"), chunk("<fu", index=1)) == [PENDING, PASS]


def body(*contents: str | None, **message: object) -> Event:
    choices = [
        {"index": at, "message": {"role": "assistant", "content": said, **message}, "finish_reason": "stop"}
        for at, said in enumerate(contents)
    ]
    return {"id": "c", "choices": choices}


ERROR: Final = Options(on_exhausted=Exhausted.ERROR)


@pytest.mark.parametrize(
    ("mode", "options", "can_reject", "verdict"),
    [
        (LeakMode.AUTO, Options(), True, REJECT),
        (LeakMode.AUTO, Options(), False, PASS),
        (LeakMode.FAILOVER, Options(), True, REJECT),
        (LeakMode.FAILOVER, Options(), False, PASS),
        (LeakMode.FAILOVER, ERROR, False, REJECT),
        (LeakMode.AUTO, ERROR, False, PASS),
        (LeakMode.REPAIR, Options(), True, PASS),
        (LeakMode.SUPPRESS, Options(), True, PASS),
        (LeakMode.OBSERVE, Options(), True, PASS),
    ],
)
def test_a_whole_answer_is_judged_by_the_same_rules(
    mode: LeakMode, options: Options, can_reject: bool, verdict: GateVerdict
) -> None:
    assert gate(mode, options).judge(body(LEAK), can_reject) is verdict


def test_a_whole_answer_can_be_left_even_after_prose() -> None:
    assert gate(LeakMode.AUTO).judge(body("So:\n" + LEAK), can_reject=True) is REJECT


def test_a_good_choice_in_a_whole_answer_keeps_it() -> None:
    assert gate(LeakMode.AUTO).judge(body("Hi", LEAK), can_reject=True) is PASS


def test_real_calls_in_a_whole_answer_beside_a_leak_are_no_reason_to_repair() -> None:
    mine = gate(LeakMode.REPAIR, Options(on_unrepairable=Unrepairable.SUPPRESS))
    assert mine.judge(body(LEAK, tool_calls=CALL), can_reject=True) is PASS
    assert mine.leak == Leak(0, "F01", LeakAction.SUPPRESSED)


@pytest.mark.parametrize("odd", [None, 3, [], {"choices": 3}, {"id": 4, "choices": [{"message": None}]}])
def test_odd_bodies_pass(odd: object) -> None:
    assert gate(LeakMode.AUTO).judge(odd, can_reject=True) is PASS


def test_choices_of_a_whole_answer_beyond_the_bound_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gating, "MAX_CHOICES", 1)
    assert gate(LeakMode.AUTO).judge(body(LEAK, LEAK), can_reject=True) is REJECT


def test_nothing_is_rejected_without_a_reason() -> None:
    assert gate().rejected is None


def test_an_unknown_mode_is_refused_with_the_allowed_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown leak mode 'x'; allowed: off, observe, suppress"):
        LeakMode("x")
