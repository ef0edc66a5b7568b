"""Accounts from the environment and the file."""

from __future__ import annotations

import pytest

from troyproxy.catalog.providers import Origin
from troyproxy.catalog.secret import Secret
from troyproxy.settings.accounts import from_environment, from_file, reveal
from troyproxy.settings.document import AccountEntry, Credential
from troyproxy.settings.report import Report


def keys(env: dict[str, str], *variables: str) -> list[tuple[str, str]]:
    """Return (id, key) of the accounts that an environment gives the provider p."""
    found = from_environment("p", variables or ("P_KEY",), env)
    return [(a.id, a.api_key.reveal() if a.api_key else "") for a in found]


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, []),
        ({"P_KEY": ""}, []),
        ({"P_KEY": "  "}, []),
        ({"P_KEY": "k\u00e9"}, []),
        ({"P_KEY": " k1\n"}, [("p#env", "k1")]),
        ({"P_KEY": "k1", "P_KEY_2": "k2", "P_KEY_3": "k3"}, [("p#env", "k1"), ("p#env-2", "k2"), ("p#env-3", "k3")]),
        ({"P_KEY": "k1", "P_KEY_3": "k3"}, [("p#env", "k1")]),
        ({"P_KEY_2": "k2"}, [("p#env-2", "k2")]),
    ],
)
def test_a_variable_and_its_numbered_followers_make_accounts(
    env: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    assert keys(env) == expected


def test_of_two_variables_the_first_that_is_set_counts() -> None:
    assert keys({"A_KEY": "", "B_KEY": "b"}, "A_KEY", "B_KEY") == [("p#env", "b")]


def test_accounts_of_the_environment_say_so() -> None:
    assert from_environment("p", ("P_KEY",), {"P_KEY": "k"})[0].origin is Origin.ENVIRONMENT


def test_an_account_of_the_file_keeps_what_was_written() -> None:
    entry = AccountEntry(name="a", api_key=Credential(env="K"), tier="pro", priority=2, models=("m",))
    account = from_file("p", (entry,), {"K": "key"}, Report())[0]
    assert (account.id, account.tier, account.priority, account.models) == ("p#a", "pro", 2, ("m",))
    assert account.api_key == Secret("key")


@pytest.mark.parametrize("env", [{}, {"K": ""}, {"K": "k\u00e9"}])
def test_an_account_whose_variable_holds_no_key_is_left_out_with_a_warning(env: dict[str, str]) -> None:
    report = Report()
    entries = (AccountEntry(name="a", api_key=Credential(env="K")), AccountEntry(name="b"))
    assert [a.name for a in from_file("p", entries, env, report)] == ["b"]
    assert report.warnings == [
        "providers.p.accounts[0].api_key: the variable K holds no usable key; the account a is left out"
    ]


@pytest.mark.parametrize(
    ("credential", "expected"),
    [(None, None), (Credential(literal=Secret("x")), Secret("x")), (Credential(env="K"), Secret("k"))],
)
def test_a_credential_is_a_text_or_a_variable(credential: Credential | None, expected: Secret | None) -> None:
    assert reveal(credential, {"K": "k"}) == expected
