"""Providers and accounts."""

from __future__ import annotations

import pytest

from troyproxy.catalog.models import UNKNOWN, Model
from troyproxy.catalog.providers import NO_AUTH, Account, Provider

LISTED = Provider("p", models={"m1": Model("m1", aliases=("one",)), "m2": Model("m2")})


@pytest.mark.parametrize(("name", "found"), [("m1", "m1"), ("one", "m1"), ("M1", None)])
def test_a_model_is_found_by_id_or_alias_in_its_own_case(name: str, found: str | None) -> None:
    assert LISTED.canonical_model(name) == found


def test_of_an_unlisted_model_nothing_is_known() -> None:
    assert LISTED.model("other") is UNKNOWN


def test_a_listed_model_is_described_under_its_alias() -> None:
    assert LISTED.model("one").id == "m1"


def test_without_a_default_the_first_model_is_the_default() -> None:
    assert LISTED.first_model() == "m1"


def test_the_default_model_goes_before_the_list() -> None:
    assert Provider("p", default_model="d", models=LISTED.models).first_model() == "d"


def test_a_provider_without_a_list_has_no_first_model() -> None:
    assert Provider("p").first_model() is None


@pytest.mark.parametrize(("provider", "keyless"), [(Provider("p"), False), (Provider("p", auth=NO_AUTH), True)])
def test_a_provider_is_keyless_if_no_header_carries_a_credential(provider: Provider, keyless: bool) -> None:
    assert provider.keyless is keyless


@pytest.mark.parametrize(
    ("account", "usable"),
    [
        (Account("p#a", "p", "a"), True),
        (Account("p#a", "p", "a", active=False), False),
        (Account("p#a", "p", "a", token_expires_at=10.0), False),
        (Account("p#a", "p", "a", token_expires_at=10.5), True),
    ],
)
def test_an_account_is_usable_while_active_and_not_expired(account: Account, usable: bool) -> None:
    assert account.usable(10.0) is usable
