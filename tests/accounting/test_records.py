"""What is counted of the attempts of a request."""

from __future__ import annotations

import pytest

from troyproxy.accounting.records import AttemptRecord, failovers, leaks


@pytest.mark.parametrize(("providers", "count"), [("", 0), ("a", 0), ("aa", 0), ("ab", 1), ("aabac", 3)])
def test_a_failover_is_an_attempt_at_another_provider_than_the_one_before(providers: str, count: int) -> None:
    attempts = [AttemptRecord(provider, "m", "A", "rate", 429, 1.0, 2.0) for provider in providers]
    assert failovers(attempts) == count


def test_the_summary_of_a_hand_off_is_no_failover() -> None:
    attempts = [AttemptRecord(provider, "m", "A", "ok", 200, 1.0, 2.0, handoff=provider == "s") for provider in "asa"]
    assert failovers(attempts) == 0


def test_a_leak_is_an_attempt_that_wrote_its_call_as_text() -> None:
    attempts = [AttemptRecord("a", "m", "A", "ok", 200, 1.0, 2.0, leak=leak) for leak in ("", "F01;repaired", "")]
    assert leaks(attempts) == 1
