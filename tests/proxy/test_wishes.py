"""What the headers ask of the auto engine, and what is said of odd ones."""

from __future__ import annotations

import pytest

from tests.fakes import FakeClock
from tests.proxy.auto_desk import AutoDesk
from troyproxy.auto.fitness import Task
from troyproxy.auto.variants import MODES, VARIANTS, Known
from troyproxy.auto.weights import DEFAULT, PACKS
from troyproxy.errors import InvalidRequest
from troyproxy.proxy.wishes import ALIASES, Wishes, wishes_of


@pytest.fixture
def desk(clock: FakeClock) -> AutoDesk:
    return AutoDesk(clock)


def asked(desk: AutoDesk, **headers: str) -> Wishes:
    return wishes_of(desk.call(headers={f"x-troy-{name.replace('_', '-')}": text for name, text in headers.items()}))


def test_no_header_asks_for_nothing(desk: AutoDesk) -> None:
    assert asked(desk) == Wishes()


def test_an_empty_header_asks_for_nothing(desk: AutoDesk) -> None:
    assert asked(desk, mode="", budget_usd="", budget_policy="", task="") == Wishes()


@pytest.mark.parametrize("mode", sorted(MODES))
def test_every_mode_is_understood_in_any_case(desk: AutoDesk, mode: str) -> None:
    assert asked(desk, mode=mode.upper()).weights == MODES[mode]


@pytest.mark.parametrize("mode", [*ALIASES, *PACKS, "default"])
def test_an_alias_or_a_pack_is_weights_only(desk: AutoDesk, mode: str) -> None:
    assert asked(desk, mode=mode).variant is None


@pytest.mark.parametrize("mode", ["auto/smart", "smart"])
def test_a_variant_brings_its_exploration(desk: AutoDesk, mode: str) -> None:
    assert asked(desk, mode=mode).variant is VARIANTS["auto/smart"]


def test_the_variant_lkgp_brings_its_memory_and_the_default_weights(desk: AutoDesk) -> None:
    wishes = asked(desk, mode="lkgp")
    assert wishes.variant is not None
    assert (wishes.weights, wishes.variant.known) == (DEFAULT, Known.FIRST)


@pytest.mark.parametrize(("text", "usd"), [("0", 0.0), ("0.05", 0.05), (" 12 ", 12.0), ("0.000000001", 1e-9)])
def test_a_budget_is_an_amount(desk: AutoDesk, text: str, usd: float) -> None:
    assert asked(desk, budget_usd=text).budget_usd == usd


@pytest.mark.parametrize("text", ["-1", "+1", "1e3", "nan", "inf", "0x1", "1,5", ".5", "5.", "$5", "1" * 10, "१"])
def test_anything_else_is_refused_and_named(desk: AutoDesk, text: str) -> None:
    with pytest.raises(InvalidRequest, match="x-troy-budget-usd") as caught:
        asked(desk, budget_usd=text.encode().decode("latin-1"))
    assert caught.value.param == "x-troy-budget-usd"


@pytest.mark.parametrize(("policy", "strict"), [("strict", True), ("cheapest", False)])
def test_a_policy_is_strict_or_not(desk: AutoDesk, policy: str, strict: bool) -> None:
    assert asked(desk, budget_policy=policy).strict is strict


@pytest.mark.parametrize("task", [*Task, "code", "docs", "debug", "plan"])
def test_a_task_is_taken_as_it_is(desk: AutoDesk, task: str) -> None:
    assert asked(desk, task=task).task == task


@pytest.mark.parametrize(
    ("name", "value", "told"), [("mode", "best", "balanced"), ("budget_policy", "x", "strict"), ("task", "x", "coding")]
)
def test_an_unknown_value_is_refused_with_what_is_allowed(desk: AutoDesk, name: str, value: str, told: str) -> None:
    with pytest.raises(InvalidRequest, match=told) as caught:
        asked(desk, **{name: value})
    assert caught.value.param == f"x-troy-{name.replace('_', '-')}"


def test_a_long_value_is_not_repeated_whole(desk: AutoDesk) -> None:
    with pytest.raises(InvalidRequest) as caught:
        asked(desk, mode="x" * 1000)
    assert "x" * 41 not in str(caught.value)
