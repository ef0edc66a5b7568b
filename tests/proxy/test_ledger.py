from __future__ import annotations

import pytest
from msgspec.structs import replace

from troyproxy.accounting.records import AttemptRecord
from troyproxy.accounting.usage import Usage
from troyproxy.proxy.ledger import Ledger
from troyproxy.routing.eligibility import Skip, SkipReason


def _attempt(outcome: str = "rate", usage: Usage | None = None, model: str = "m1") -> AttemptRecord:
    return AttemptRecord("alpha", model, "A", outcome, 429, 0.0, 1.0, usage=usage)


def test_a_skip_is_noted_once_and_says_whether_it_is_news() -> None:
    ledger = Ledger()
    skip = Skip("alpha/m1", SkipReason.CIRCUIT, "alpha")
    assert ([ledger.skip(skip), ledger.skip(skip)], ledger.lines) == ([True, False], ["skip alpha/m1: circuit"])


def test_another_reason_for_the_same_member_is_news() -> None:
    ledger = Ledger()
    assert [ledger.skip(Skip("a", SkipReason.CIRCUIT)), ledger.skip(Skip("a", SkipReason.COOLDOWN))] == [True, True]


def test_adaptations_are_those_of_the_last_attempt() -> None:
    ledger = Ledger()
    ledger.note_adapted(("a=1",))
    ledger.note_adapted(())
    assert (ledger.adapted, ledger.lines) == ((), ["  adapted: a=1"])


@pytest.mark.parametrize(
    ("outcome", "running", "trail"),
    [
        ("cancelled", True, "alpha/m1#A=rate"),
        ("ok", True, "alpha/m1#A=rate,alpha/m2#A=ok"),
        ("cancelled", False, "alpha/m1#A=rate,alpha/m2#A=cancelled"),
    ],
)
def test_an_attempt_under_way_is_in_the_trail_once_something_is_known_of_it(
    outcome: str, running: bool, trail: str
) -> None:
    ledger = Ledger(attempts=[_attempt(), _attempt(outcome, model="m2")], running=running)
    assert ledger.trail == trail


def test_nothing_lost_is_nothing_wasted() -> None:
    assert Ledger(attempts=[_attempt()]).wasted is None


def test_what_failed_attempts_used_is_wasted() -> None:
    ledger = Ledger(attempts=[_attempt(usage=Usage(1, 2, 1, 1, 1)), _attempt(usage=Usage(3, 4, estimated=True))])
    assert ledger.wasted == Usage(4, 6, 1, 1, 1, estimated=True)


def test_what_the_client_got_is_not_wasted() -> None:
    ledger = Ledger(attempts=[_attempt(usage=Usage(1, 2)), _attempt("ok", Usage(3, 4))])
    ledger.serve("alpha", "m1", "A")
    assert (ledger.wasted, ledger.served) == (Usage(1, 2), True)


def test_the_trail_is_compact() -> None:
    assert Ledger(attempts=[_attempt(), _attempt("ok")]).trail == "alpha/m1#A=rate,alpha/m1#A=ok"


def test_a_summary_that_was_got_is_no_answer_in_the_trail() -> None:
    asked = [replace(_attempt(outcome), handoff=True) for outcome in ("ok", "rate")]
    assert Ledger(attempts=asked).trail == "alpha/m1#A=handoff,alpha/m1#A=rate"


def test_the_trail_shows_ten_and_counts_the_rest() -> None:
    assert Ledger(attempts=[_attempt()] * 13).trail.endswith("=rate,+3")


@pytest.mark.parametrize(
    ("limit", "shown"), [(100, "alpha/m1#A=rate,alpha/m1#A=rate"), (20, "alpha/m1#A=rate,+1"), (5, "+2")]
)
def test_a_limit_cuts_whole_entries(limit: int, shown: str) -> None:
    assert Ledger(attempts=[_attempt()] * 2).trail_within(limit) == shown


def test_names_are_percent_encoded_once_and_bounded() -> None:
    trail = Ledger(attempts=[_attempt(model="模\r\n" + "x" * 200)]).trail
    assert trail.startswith("alpha/%E6%A8%A1%0D%0Axxx")
    assert len(trail) < 130


def test_lone_surrogates_do_not_break_the_trail() -> None:
    assert Ledger(attempts=[_attempt(model="\ud800")]).trail == "alpha/%3F#A=rate"


def test_an_empty_ledger_says_nothing() -> None:
    assert (Ledger().trail, Ledger().skips) == ("", "")


def test_nothing_is_said_where_nobody_reads() -> None:
    ledger = Ledger(told=False)
    ledger.say("a line")
    assert ledger.lines == []
