from __future__ import annotations

from typing import Final

import pytest

from tests.leaks.chunks import CALL, USAGE, Event, chunk
from troyproxy.leaks.gate import GateVerdict, LeakGate, LeakMode
from troyproxy.leaks.suppress import Leak

NAMES: Final = frozenset({"get_weather"})
LEAK: Final = '<function=get_weather>{"city":"Oslo"}</function>'
PENDING, PASS = GateVerdict.PENDING, GateVerdict.PASS


def gate(mode: LeakMode = LeakMode.SUPPRESS) -> LeakGate:
    return LeakGate(NAMES, mode)


@pytest.mark.parametrize(
    ("events", "verdicts"),
    [
        ([chunk("", role="assistant"), chunk("Hi")], [PENDING, PASS]),
        ([chunk("<fu"), chunk("nction=get_weather>")], [PENDING, PASS]),
        ([chunk("<fu"), chunk("n!")], [PENDING, PASS]),
        ([chunk("<fu"), chunk(finish="stop")], [PENDING, PASS]),
        ([chunk("\n"), chunk(reasoning="hm")], [PENDING, PASS]),
        ([chunk(tool_calls=CALL)], [PASS]),
        ([chunk("<tool_call>"), chunk(tool_calls=CALL)], [PENDING, PASS]),
        ([chunk("Hi"), chunk("<fu", index=1), chunk("x", index=1)], [PASS, PENDING, PASS]),
        ([USAGE], [PENDING]),
        ([{"error": {"message": "boom"}}], [PASS]),
        ([None], [PENDING]),
    ],
)
def test_the_commit_waits_for_the_first_words(events: list[Event], verdicts: list[GateVerdict]) -> None:
    mine = gate()
    assert [mine.feed(event, can_reject=True) for event in events] == verdicts


def test_suppress_never_rejects_and_tells_the_leak() -> None:
    mine = gate()
    assert (mine.feed(chunk(LEAK), can_reject=True), mine.leaks) == (PASS, [Leak(0, "F01")])


def test_a_stream_that_says_nothing_is_not_held_for_ever() -> None:
    mine = gate()
    assert [mine.feed(chunk(""), can_reject=True) for _ in range(65)][-1] is PASS


def test_mode_off_passes_everything_unread() -> None:
    mine = gate(LeakMode.OFF)
    assert (mine.feed(chunk(LEAK), can_reject=True), mine.leaks) == (PASS, [])


def test_a_new_attempt_forgets_the_abandoned_one() -> None:
    mine = gate()
    mine.feed(chunk("<function=get_"), can_reject=True)
    mine.reset()
    assert (mine.feed(chunk("weather>{}"), can_reject=True), mine.leaks) == (PASS, [])


@pytest.mark.parametrize(("mode", "leaks"), [(LeakMode.SUPPRESS, [Leak(0, "F01")]), (LeakMode.OFF, [])])
def test_a_whole_answer_passes_and_its_leaks_are_told(mode: LeakMode, leaks: list[Leak]) -> None:
    mine = gate(mode)
    body = {"choices": [{"index": 0, "message": {"content": LEAK}, "finish_reason": "stop"}]}
    assert (mine.judge(body, can_reject=True), mine.leaks) == (PASS, leaks)


def test_an_unknown_mode_is_refused_with_the_allowed_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown leak mode 'x'; allowed: off, suppress"):
        LeakMode("x")
