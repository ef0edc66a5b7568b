"""The rules for connections that need no HTTP to be seen; the others are tested at ``/api/connections``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.proxy.books import Books, in_environment
from troyproxy.catalog.providers import Account, Origin
from troyproxy.catalog.secret import Secret
from troyproxy.errors import Conflict, PreconditionFailed
from troyproxy.proxy.connection_book import as_written

pytestmark = pytest.mark.anyio

ONE = {"provider": "groq", "name": "a", "api_key": "sk-key-4711"}


async def test_a_created_connection_is_stored_with_its_key() -> None:
    books = Books()
    account, warnings = await books.connections.create(ONE)
    assert (account.id, account.api_key, warnings) == ("groq#a", Secret("sk-key-4711"), [])
    assert books.store.connections.held == {"groq#a": account}


async def test_one_that_was_changed_meanwhile_is_not_removed() -> None:
    books = Books()
    await books.connections.create(ONE)
    with pytest.raises(PreconditionFailed, match="at version 0, not 7"):
        await books.connections.remove("groq#a", 7)


async def test_one_whose_provider_is_gone_can_be_changed_and_says_so() -> None:
    books = Books()
    await books.store.connections.add(Account("gone#a", "gone", "a", Secret("sk-key"), origin=Origin.DATABASE))
    account, warnings = await books.connections.change("gone#a", {"tier": "pro"}, None)
    assert (account.tier, warnings) == ("pro", ["there is no provider gone: it is not used"])


async def test_one_whose_provider_is_gone_is_listed_and_can_be_removed() -> None:
    books = Books()
    held = await books.store.connections.add(Account("gone#a", "gone", "a", origin=Origin.DATABASE))
    assert await books.connections.entries("gone") == [held]
    assert await books.connections.remove("gone#a", None) == held


async def test_a_second_account_joins_those_of_the_environment() -> None:
    books = Books(in_environment(GROQ_API_KEY="sk-env", GROQ_API_KEY_2="sk-env-2"))
    await books.connections.create(ONE)
    assert [account.name for account in await books.connections.entries("groq")] == ["a", "env", "env-2"]


@pytest.mark.parametrize("name", ["env", "ENV-2"])
async def test_a_name_of_the_environment_is_taken(name: str) -> None:
    books = Books(in_environment(GROQ_API_KEY="sk-env", GROQ_API_KEY_2="sk-env-2"))
    with pytest.raises(Conflict, match=r"comes from the environment \(GROQ_API_KEY\)"):
        await books.connections.create({**ONE, "name": name})


async def test_the_alias_of_a_configured_provider_comes_before_a_built_in_one() -> None:
    books = Books()
    await books.providers.create({"id": "mine", "base_url": "http://h/v1", "auth": "none", "aliases": ["claude"]})
    account, _ = await books.connections.create({"provider": "claude", "name": "a"})
    assert account.provider == "mine"


def test_nothing_of_a_key_is_told() -> None:
    account = Account("groq#a", "groq", "a", Secret("sk-key-4711"))
    told = repr(as_written(account)) + repr(account) + repr(as_written(replace(account, api_key=None)))
    assert "4711" not in told
