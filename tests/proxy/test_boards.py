"""Pools are measured at most once a second, and never after a circuit or the configuration has changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes import FakeClock
from tests.proxy.auto_desk import FIVE, AutoDesk, priced
from tests.proxy.rig import provider
from troyproxy.auto.board import Entry, board_of
from troyproxy.auto.factors import Demand, Standing
from troyproxy.auto.fitness import FitnessTable, Task
from troyproxy.auto.tiers import EconomicTier
from troyproxy.auto.weights import DEFAULT, PACKS
from troyproxy.catalog.models import Model, Price
from troyproxy.catalog.providers import NO_AUTH
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.proxy.boards import BOARDS, KEPT, Boards, key_of
from troyproxy.resilience.breaker import CircuitState
from troyproxy.resilience.health import CircuitKey
from troyproxy.routing.candidates import Candidate, candidate_of

SNAPSHOT = Snapshot()
POOL = [candidate_of(each, "m", account="A") for each in FIVE]
HALF = {CircuitKey("p1", "m"): CircuitState.HALF_OPEN}


class Counted:
    """Measures nothing, and counts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, candidate: Candidate, now: float) -> Standing:
        del now
        self.count += 1
        return Standing(input_usd=candidate.facts.price.input, output_usd=candidate.facts.price.output)


@pytest.fixture
def measure() -> Counted:
    return Counted()


@pytest.fixture
def boards(measure: Counted) -> Boards:
    return Boards(measure, FitnessTable())


def test_a_pool_is_measured_once_within_a_second(boards: Boards, measure: Counted) -> None:
    fields = [boards.field(POOL, Task.CODING, SNAPSHOT, {}, now) for now in (10.0, 10.5, 10.99)]
    assert (measure.count, fields[0] is fields[2]) == (len(POOL), True)


@pytest.mark.parametrize("now", [11.0, 9.0])
def test_it_is_measured_anew_after_a_second_or_when_the_clock_was_set_back(
    boards: Boards, measure: Counted, now: float
) -> None:
    boards.field(POOL, Task.CODING, SNAPSHOT, {}, 10.0)
    boards.field(POOL, Task.CODING, SNAPSHOT, {}, now)
    assert measure.count == 2 * len(POOL)


def test_it_is_measured_anew_when_something_has_changed(boards: Boards, measure: Counted) -> None:
    boards.field(POOL, Task.CODING, SNAPSHOT, {}, 10.0)
    boards.field(POOL, Task.CODING, SNAPSHOT, HALF, 10.0)
    boards.field(POOL, Task.CODING, replace(SNAPSHOT, revision=2), HALF, 10.0)
    boards.field(POOL, Task.REVIEW, SNAPSHOT, {}, 10.0)
    boards.field(POOL[:2], Task.REVIEW, SNAPSHOT, {}, 10.0)
    assert measure.count == 4 * len(POOL) + 2


def test_a_board_is_made_once_for_each_kind_of_demand_and_each_weights(boards: Boards) -> None:
    field = boards.field(POOL, Task.CODING, SNAPSHOT, {}, 10.0)
    low, lower, high = Demand(10.0), Demand(1.0), Demand(60.0, EconomicTier.CHEAP)
    one = field.judge(field.entries, low, DEFAULT)
    assert field.judge(field.entries, lower, DEFAULT) is one
    assert field.judge(field.entries, high, DEFAULT) is not one
    assert field.judge(field.entries, low, PACKS["ship-fast"]) is not one
    assert one == board_of(field.entries, low, DEFAULT)


def test_a_part_of_the_pool_is_scored_for_itself(boards: Boards) -> None:
    field = boards.field(POOL, Task.CODING, SNAPSHOT, {}, 10.0)
    part = field.entries[1:3]
    assert field.judge(part, Demand(), DEFAULT) == board_of(part, Demand(), DEFAULT)


def test_boards_are_bounded(boards: Boards) -> None:
    field = boards.field(POOL, Task.CODING, SNAPSHOT, {}, 10.0)
    first = field.judge(field.entries, Demand(), DEFAULT)
    for at in range(BOARDS):
        field.judge(field.entries, Demand(), {**DEFAULT, "quota": at / 100})
    assert field.judge(field.entries, Demand(), DEFAULT) is not first


def test_a_pool_that_is_too_large_to_keep_is_measured_every_time(boards: Boards, measure: Counted) -> None:
    large = [replace(POOL[0], account=str(at)) for at in range(KEPT)]
    for _ in range(2):
        assert len(boards.field(large, Task.CODING, SNAPSHOT, {}, 10.0).entries) == KEPT
    assert measure.count == 2 * KEPT


def test_an_entry_knows_prices_tiers_and_fitness(boards: Boards) -> None:
    own = Model("m", price=Price(0.5, 1.0), fitness={"coding": 0.9, "unknown": 0.1}, tier="premium")
    paid = provider("p", own, accounts="AB")
    accounts = (paid.accounts[0], replace(paid.accounts[1], tier="pro", quota_reset_interval_s=60.0))
    candidate = candidate_of(replace(paid, accounts=accounts), "m", account="B")
    (entry,) = boards.field([candidate], Task.CODING, SNAPSHOT, {}, 10.0).entries
    assert entry == Entry(
        "p/m#B",
        Standing(
            input_usd=0.5,
            output_usd=1.0,
            fitness=0.9,
            model_tier=EconomicTier.PREMIUM,
            account_tier="pro",
            reset_interval_s=60.0,
        ),
    )


def test_a_model_without_values_of_its_own_is_in_the_table(boards: Boards) -> None:
    thinking = candidate_of(provider("p", "x-thinking"), "x-thinking", account="A")
    standings = [
        boards.field([thinking], task, SNAPSHOT, {}, 10.0).entries[0].standing for task in (Task.PLANNING, Task.CODING)
    ]
    assert [standing.fitness for standing in standings] == [0.6, 0.5]


def test_a_candidate_without_a_key_or_a_provider_has_a_place_too(boards: Boards) -> None:
    local = candidate_of(provider("local", "m", accounts="", auth=NO_AUTH), "m")
    lost = Candidate("no/x", None, "x")
    field = boards.field([local, lost], Task.CODING, SNAPSHOT, {}, 10.0)
    assert [entry.standing.account_tier for entry in field.entries] == ["free", "standard"]
    assert field.keys == (("local", "m", "local-keyless"), ("", "x", ""))


def test_a_candidate_that_pins_no_account_goes_by_the_first() -> None:
    assert key_of(candidate_of(provider("p", "m", accounts="AB"), "m")) == ("p", "m", "A")


def test_what_is_measured_is_seen_a_second_later(clock: FakeClock) -> None:
    desk = AutoDesk(clock, priced("p0", 1.0), priced("p1", 1.0))
    assert desk.order() == ["p0", "p1"]
    desk.quota("p0", 10)
    clock.move(1.0)
    assert desk.order() == ["p1", "p0"]
