"""One access line per finished request, with the facts of its row."""

from __future__ import annotations

import logging

import pytest

from tests.telemetry.rows import attempt, row
from troyproxy.accounting.usage import Usage
from troyproxy.telemetry.access import LOGGER, AccessLog, facts


def test_a_finished_request_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        AccessLog().request_finished(row())
    assert [record.getMessage() for record in caplog.records] == ["/v1/chat/completions 200 ok"]


def test_the_line_carries_the_facts(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        AccessLog().request_finished(row())
    assert caplog.records[0].__dict__["facts"] == facts(row())


def test_a_higher_level_writes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, LOGGER):
        AccessLog().request_finished(row())
    assert caplog.records == []


def test_attempts_and_tokens_are_among_the_facts() -> None:
    told = facts(row(attempts=(attempt(outcome="rate"), attempt()), wasted=Usage(3, 4)))
    assert (told["attempts"], told["input_tokens"], told["output_tokens"], told["wasted_tokens"]) == (2, 100, 20, 7)


def test_skips_are_listed_and_then_counted() -> None:
    told = facts(row(skipped=tuple((f"alpha/m{n}", "cooldown") for n in range(12))))
    assert str(told["skipped"]).endswith("alpha/m9=cooldown,+2")


def test_what_is_not_known_is_not_told() -> None:
    told = facts(row(usage=None, overhead_ms=None, first_token_ms=None, cost_usd=None))
    unknown = {name for name, value in told.items() if value is None}
    assert {
        "trace_id",
        "skipped",
        "overhead_ms",
        "first_token_ms",
        "cost_usd",
        "wasted_tokens",
        "trail",
        "adapted",
        "leaks",
    } == unknown
    assert "input_tokens" not in told
