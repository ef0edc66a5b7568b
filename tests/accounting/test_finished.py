"""What one finished attempt says."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from troyproxy.accounting.finished import Finished, finished_of
from troyproxy.accounting.records import AttemptRecord
from troyproxy.accounting.usage import Usage
from troyproxy.catalog.models import Price

PRICE = Price(2.0, 4.0)
RECORD = AttemptRecord("alpha", "m1", "A", "ok", 200, 100.0, 250.0, usage=Usage(1_000, 500))


def test_a_success_tells_of_luck_speed_tokens_and_money() -> None:
    said = finished_of(RECORD, PRICE)
    assert said == Finished("alpha", "m1", "A", 100.0, True, 250.0, 1_500, 0.004)


@pytest.mark.parametrize("outcome", ["rate", "transient", "overload", "quota", "auth", "member", "model", "leak"])
def test_a_failure_tells_of_luck_and_not_of_speed(outcome: str) -> None:
    said = finished_of(replace(RECORD, outcome=outcome), PRICE)
    assert (said.ok, said.latency_ms) == (False, None)


@pytest.mark.parametrize("outcome", ["request", "context", "cancelled", "saturated"])
def test_what_is_not_the_upstreams_fault_tells_nothing_of_luck(outcome: str) -> None:
    said = finished_of(replace(RECORD, outcome=outcome), PRICE)
    assert (said.ok, said.latency_ms, said.tokens) == (None, None, 1_500)


def test_an_answer_that_was_not_read_to_its_end_tells_nothing_of_luck_and_speed() -> None:
    said = finished_of(RECORD, PRICE, whole=False)
    assert (said.ok, said.latency_ms) == (None, None)


def test_unknown_usage_and_unknown_prices_count_nothing() -> None:
    assert finished_of(replace(RECORD, usage=None), PRICE).tokens == 0
    assert finished_of(RECORD, Price()).usd == 0.0


@pytest.mark.parametrize(
    "odd",
    [
        {"at": math.nan},
        {"at": -1.0},
        {"latency_ms": math.inf},
        {"usd": -0.1},
        {"tokens": -1},
    ],
)
def test_numbers_that_cannot_be_are_not_sane(odd: dict[str, float]) -> None:
    one = Finished("alpha", "m1", "A", 1.0)
    assert one.sane
    assert not replace(one, **odd).sane
