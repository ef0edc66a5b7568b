from __future__ import annotations

import pytest

from tests.fakes import FakeObserver
from tests.proxy.rig import provider
from troyproxy.catalog.providers import NO_AUTH, Account, Provider
from troyproxy.proxy.accounts import AccountDesk, accounts_of, synthetic

NOW = 1_000.0
ALPHA = provider("alpha", "m1", accounts="ABC")


def _desk(limit: int = 2) -> AccountDesk:
    return AccountDesk(max_inflight=limit, observer=FakeObserver())


def _pick(desk: AccountDesk, of: Provider = ALPHA, *, without: str = "", round_robin: bool = False) -> str | None:
    chosen = desk.pick(of, of.accounts, usable=lambda a: a.name not in without, round_robin=round_robin)
    return chosen.name if chosen is not None else None


def _account(name: str, **given: object) -> Account:
    return Account(f"alpha#{name}", "alpha", name, **given)  # type: ignore[arg-type]  # fields by name


def test_fill_first_takes_the_first_below_its_number() -> None:
    desk = _desk()
    with desk.slot(ALPHA.accounts[0]):
        assert _pick(desk) == "A"


def test_a_saturated_account_is_passed_over() -> None:
    desk = _desk()
    with desk.slot(ALPHA.accounts[0]), desk.slot(ALPHA.accounts[0]):
        assert _pick(desk) == "B"


def test_when_all_are_saturated_the_least_loaded_is_taken() -> None:
    desk = _desk(1)
    with desk.slot(ALPHA.accounts[0]), desk.slot(ALPHA.accounts[0]), desk.slot(ALPHA.accounts[1]):
        assert _pick(desk, without="C") == "B"


def test_of_equally_loaded_ones_round_robin_decides() -> None:
    desk = _desk(1)
    with desk.slot(ALPHA.accounts[0]), desk.slot(ALPHA.accounts[1]), desk.slot(ALPHA.accounts[2]):
        first = _pick(desk, round_robin=True)
        for _ in range(2):
            desk.succeeded(ALPHA.accounts[0])
        assert (first, _pick(desk, round_robin=True)) == ("A", "B")


def test_nobody_usable_is_none() -> None:
    assert _pick(_desk(), without="ABC") is None


def test_an_accounts_own_number_beats_the_providers_and_the_setting() -> None:
    wide = Provider("alpha", accounts=(_account("A", max_inflight=3), _account("B")), max_inflight=1)
    desk = _desk(9)
    with desk.slot(wide.accounts[0]), desk.slot(wide.accounts[0]):
        assert _pick(desk, wide) == "A"


def test_a_round_robin_stop_moves_on_when_its_account_is_not_usable() -> None:
    desk = _desk()
    picks = [_pick(desk, round_robin=True), _pick(desk, without="A", round_robin=True), _pick(desk, round_robin=True)]
    assert picks == ["A", "B", "B"]


def test_a_round_robin_stop_of_two_successes_comes_back_when_it_is_the_only_one() -> None:
    desk = _desk()
    _pick(desk, round_robin=True)
    for _ in range(2):
        desk.succeeded(ALPHA.accounts[0])
    assert (_pick(desk, without="BC", round_robin=True), _pick(desk, round_robin=True)) == ("A", "A")


def test_a_success_of_another_account_does_not_count_for_the_stop() -> None:
    desk = _desk()
    _pick(desk, round_robin=True)
    for _ in range(2):
        desk.succeeded(ALPHA.accounts[1])
    assert _pick(desk, round_robin=True) == "A"


def test_one_account_alone_has_no_stop() -> None:
    desk = _desk()
    single = provider("alpha", "m1")
    assert [_pick(desk, single, round_robin=True) for _ in range(3)] == ["A", "A", "A"]


def test_a_slot_is_given_back_after_an_error_and_told() -> None:
    observer = FakeObserver()
    desk = AccountDesk(max_inflight=2, observer=observer)
    with pytest.raises(ZeroDivisionError), desk.slot(ALPHA.accounts[0]):
        raise ZeroDivisionError
    assert observer.of("inflight_changed") == [("alpha", "A", 1), ("alpha", "A", 0)]


def test_stops_of_providers_that_are_gone_are_forgotten() -> None:
    desk = _desk()
    _pick(desk, round_robin=True)
    for _ in range(2):
        desk.succeeded(ALPHA.accounts[0])
    desk.keep(["beta"])
    assert _pick(desk, round_robin=True) == "A"


def test_accounts_come_by_priority_and_then_by_age() -> None:
    made = _account("young", created_at=2), _account("first", priority=-1, created_at=9), _account("old", created_at=1)
    found = accounts_of(Provider("alpha", accounts=made), "m1", None, NOW)
    assert [account.name for account in found] == ["first", "old", "young"]


@pytest.mark.parametrize(
    "given",
    [{"active": False}, {"token_expires_at": NOW}, {"models": ("gpt-*",)}],
    ids=["inactive", "expired", "globs"],
)
def test_an_account_that_may_not_carry_the_model_is_left_out(given: dict[str, object]) -> None:
    assert accounts_of(Provider("alpha", accounts=(_account("A", **given),)), "m1", None, NOW) == ()


def test_a_glob_that_matches_the_model_lets_the_account_in() -> None:
    assert accounts_of(Provider("alpha", accounts=(_account("A", models=("m*",)),)), "m1", None, NOW)


@pytest.mark.parametrize("pinned", ["B", "alpha#B"])
def test_a_pin_is_a_name_or_an_id(pinned: str) -> None:
    assert [account.name for account in accounts_of(ALPHA, "m1", pinned, NOW)] == ["B"]


@pytest.mark.parametrize("bare", [Provider("local", auth=NO_AUTH), Provider("local", app="inner")])
def test_a_provider_without_credentials_has_one_account(bare: Provider) -> None:
    assert accounts_of(bare, "m1", None, NOW) == (synthetic(bare),)


@pytest.mark.parametrize(("pinned", "found"), [("local-keyless", 1), ("other", 0)])
def test_the_synthetic_account_can_be_pinned(pinned: str, found: int) -> None:
    assert len(accounts_of(Provider("local", auth=NO_AUTH), "m1", pinned, NOW)) == found
