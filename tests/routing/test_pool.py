"""The virtual pool behind auto: accounts times models, bounded, limited to providers on request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.routing.builders import combo, provider, snapshot
from troyproxy.catalog.providers import NO_AUTH, Account, Provider
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.routing.advertise import advertise, advertise_auto
from troyproxy.routing.members import expand, leaves, warnings_of
from troyproxy.routing.pool import MOST_MODELS, auto_pool

ALPHA = provider("alpha", "m1", "m2", "x3", accounts=2, default_model="m2")
BETA = Provider("beta", auth=NO_AUTH, default_model="b1")


def identities(house: Snapshot, only: list[str] | None = None) -> list[str]:
    return [candidate.identity for candidate in auto_pool(house, only)]


def _account(name: str, **fields: object) -> Account:
    return replace(Account(f"alpha#{name}", "alpha", name), **fields)  # type: ignore[arg-type]  # fields by name


def test_every_account_stands_for_the_default_model_and_a_keyless_provider_for_itself() -> None:
    house = snapshot(ALPHA, BETA, provider("none", "m", accounts=0))
    assert identities(house) == ["alpha/m2#acc-0", "alpha/m2#acc-1", "beta/b1"]


@pytest.mark.parametrize(
    ("fields", "models"),
    [
        ({"models": ("m1", "new")}, ["m1", "new"]),
        ({"models": ("m*",)}, ["m1", "m2"]),
        ({"models": ("z*",)}, ["m2"]),
        ({"default_model": "x3"}, ["x3"]),
        ({}, ["m2"]),
    ],
)
def test_an_account_stands_for_its_own_models_first(fields: dict[str, object], models: list[str]) -> None:
    house = snapshot(replace(ALPHA, accounts=(_account("a", **fields),)))
    assert identities(house) == [f"alpha/{model}#a" for model in models]


def test_all_models_are_in_the_pool_where_the_setting_says_so_at_most_fifty_each() -> None:
    many = provider("many", *(f"m{at}" for at in range(80)))
    house = replace(snapshot(ALPHA, many), auto_models="all")
    assert identities(house)[:3] == ["alpha/m1#acc-0", "alpha/m2#acc-0", "alpha/x3#acc-0"]
    assert sum(name.startswith("many/") for name in identities(house)) == MOST_MODELS


def test_who_stands_for_no_model_is_in_the_pool_without_one_so_that_a_plan_can_say_so() -> None:
    globs = replace(provider("alpha"), accounts=(_account("a", models=("z*",)),))
    house = snapshot(provider("bare"), globs, Provider("free", auth=NO_AUTH))
    assert identities(house) == ["bare#acc-0", "alpha#a", "free"]
    assert {candidate.model for candidate in auto_pool(house)} == {""}


def test_what_cannot_serve_is_not_advertised() -> None:
    house = snapshot(ALPHA, provider("bare"))
    assert advertise_auto(house) == advertise_auto(snapshot(ALPHA))
    both = replace(combo("c", strategy="auto"), config={"auto": {"candidatePool": ["alpha", "bare", "nosuch"]}})
    alone = replace(both, config={"auto": {"candidatePool": ["alpha"]}})
    assert advertise(both, house) == advertise(alone, house)


def test_a_pool_may_be_limited_to_providers_by_id_or_alias() -> None:
    house = snapshot(replace(ALPHA, aliases=("al",)), BETA)
    assert identities(house, ["al"]) == ["alpha/m2#acc-0", "alpha/m2#acc-1"]


def test_who_is_named_and_not_there_is_in_the_pool_so_that_a_plan_can_say_so() -> None:
    house = snapshot(ALPHA, provider("idle", "m", accounts=0))
    assert identities(house, ["unknown", "idle"]) == ["idle/m", "unknown"]
    assert identities(house) == ["alpha/m2#acc-0", "alpha/m2#acc-1"]


@pytest.mark.parametrize("config", [{}, {"auto": {}}, {"auto": "odd"}, {"auto": {"candidatePool": []}}])
def test_a_stored_combo_without_members_has_everything_connected(config: dict[str, object]) -> None:
    empty = replace(combo("c", strategy="auto"), config=config)
    assert [leaf.spec for leaf in leaves(expand(empty, snapshot(ALPHA, BETA, empty)))] == ["alpha/m2"] * 2 + ["beta/b1"]


def test_a_stored_combo_may_name_the_providers_of_its_pool() -> None:
    empty = replace(combo("c", strategy="auto"), config={"auto": {"candidatePool": ["beta"]}})
    assert [leaf.spec for leaf in leaves(expand(empty, snapshot(ALPHA, BETA, empty)))] == ["beta/b1"]


def test_a_pool_that_names_no_provider_is_odd_but_no_reason_to_refuse() -> None:
    empty = replace(combo("c", strategy="auto"), config={"auto": {"candidatePool": ["beta", "nosuch"]}})
    assert warnings_of(empty, snapshot(ALPHA, BETA)) == [
        "candidatePool: 'nosuch' is no configured provider and is skipped"
    ]


@pytest.mark.parametrize(
    ("strategy", "config", "said"),
    [
        ("auto", {"atuo": {}}, "config: 'atuo' is unknown"),
        ("lkgp", {"auto": {}}, "config.auto is not looked at: the strategy is lkgp"),
        ("auto", {"auto": {"candidatePool": ["beta"]}}, "candidatePool is not looked at"),
    ],
)
def test_what_means_nothing_in_a_config_is_said(strategy: str, config: dict[str, object], said: str) -> None:
    odd = replace(combo("c", "beta/b1", strategy=strategy), config=config)
    (warning,) = warnings_of(odd, snapshot(ALPHA, BETA))
    assert warning.startswith(said)


def test_a_stored_combo_with_members_keeps_to_them() -> None:
    chosen = combo("c", "beta/b1", strategy="auto")
    assert [leaf.spec for leaf in leaves(expand(chosen, snapshot(ALPHA, BETA, chosen)))] == ["beta/b1"]
