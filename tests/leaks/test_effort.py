"""What is counted here is work, not time: steps of `effort.py`, and calls of functions."""

from __future__ import annotations

import sys
from itertools import islice
from types import FrameType
from typing import Final

import pytest

from tests.leaks.scanning import LAMP_ASKED, cuts, leak, run, whole
from troyproxy.leaks.calls import read_calls
from troyproxy.leaks.effort import MOST_STEPS, Effort
from troyproxy.leaks.options import Options
from troyproxy.leaks.repair import repaired
from troyproxy.leaks.scanner import Scanner
from troyproxy.leaks.tables import INNER, TAIL, tables

CALL: Final = '<function=dim_lamp>{"id": 3}</function>'
OPENERS: Final = tuple(sorted({*tables().lead.rows, *TAIL.rows, *INNER.rows}))
NESTED: Final = '<function=dim_lamp>{"a":{' + "x" * 100
STRINGS: Final = '<tool_call>{"k":"'
WORST: Final = (
    *("<tool_call>", "<function=dim_lamp>", "<invoke>", "</tool_call>", "<parameter=a>", '<tool_call>{"name":', "["),
    *("<|tool_call>", "```\n", "`", "\n", "<", "call:dim_lamp{a:1,", NESTED, STRINGS, '<tool_call>{"arguments":["",'),
)
DENSE: Final = (
    *(
        "call:dim_lamp{" + "a:1," * 9000,
        "[dim_lamp(" + "a=1," * 9000,
        "Say: <function=dim_lamp>" + "<parameter=a>x" * 2000,
    ),
    *("<think>" + "</thin" * 40_000, '<tool_call>{"arguments": ' + "[" * 40_000, "~~~\n" * 40_000),
)


def spent(text: str) -> int:
    """Return the steps that a scanner takes for *text*."""
    scanner = Scanner(LAMP_ASKED)
    scanner.feed(text)
    scanner.finish()
    return MOST_STEPS - scanner.effort.left


def calls(text: str) -> int:
    """Return the number of functions that are called, in Python and in C, to judge *text*."""
    count = 0

    def note(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    scanner = Scanner(LAMP_ASKED)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        scanner.feed(text)
        scanner.finish()
    finally:
        sys.setprofile(before)
    return count


def grows_faster_than_its_text(unit: str) -> bool:
    """Whether more repetitions take more steps each than the ones before; the first are read as a start."""
    few, more, many = (spent(unit * count) for count in (48, 96, 192))
    return many - more > 2 * (more - few) + 64


def test_the_work_on_an_opener_s_repetitions_grows_with_their_number_and_no_faster() -> None:
    assert [opener for opener in OPENERS if grows_faster_than_its_text(opener)] == []


def test_the_work_on_an_opener_with_a_name_grows_with_their_number_and_no_faster() -> None:
    assert [opener for opener in OPENERS if grows_faster_than_its_text(f"{opener}dim_lamp>")] == []


@pytest.mark.parametrize("unit", WORST, ids=lambda unit: unit[:20])
def test_no_text_takes_more_work_than_the_limit_however_long_it_is(unit: str) -> None:
    text = "Some prose. " + unit * (200_000 // len(unit))
    assert spent(text) <= MOST_STEPS + len(text) // 64 + 64
    assert calls(text) <= 25 * MOST_STEPS


@pytest.mark.parametrize("text", DENSE, ids=lambda text: text[:20])
def test_a_call_of_very_many_parts_takes_no_more_work_than_the_limit(text: str) -> None:
    assert calls(text) <= 25 * MOST_STEPS


def test_behind_more_openers_than_are_looked_at_a_call_is_text() -> None:
    assert leak("Some prose. " + "<tool_call>\n" * 2000 + CALL) is None


def test_behind_the_openers_of_a_long_manual_a_call_is_found() -> None:
    assert leak("Some prose. " + "<tool_call>\n" * 200 + CALL) == "F01"


def test_the_end_of_the_effort_does_not_depend_on_how_the_text_was_cut() -> None:
    for unit in ("<tool_call>", NESTED, STRINGS, "```\n<tool_call>\n"):
        text = "Some prose. " + unit * (30_000 // len(unit)) + CALL
        once = whole(text)
        assert all(run(pieces) == once for pieces in islice(cuts(text, 3), 3))


def test_a_captured_text_of_too_many_parts_is_not_repaired() -> None:
    text = '<tool_call>{"name": "dim_lamp", "arguments": {"id": [' + "{}," * 40_000 + "{}]}}</tool_call>"
    assert not read_calls(text, LAMP_ASKED.names).complete
    assert repaired(text, LAMP_ASKED, Options(), finish_reason="stop", response_id="r") is None


def test_calls_that_outlast_the_effort_are_not_complete() -> None:
    text = CALL + "\n" + CALL + "</tool_call>" * 40
    assert read_calls(text, LAMP_ASKED.names).complete
    assert not read_calls(text, LAMP_ASKED.names, effort=Effort(40)).complete
