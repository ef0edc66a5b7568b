"""The rules for providers that need no HTTP to be seen; the others are tested at ``/api/providers``."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.proxy.books import Books, in_environment
from troyproxy.catalog.providers import Account, Origin
from troyproxy.catalog.secret import Secret
from troyproxy.errors import Conflict, NotFound, PreconditionFailed, ValidationFailed
from troyproxy.proxy.provider_draft import MAX_CONNECTIONS
from troyproxy.proxy.provider_entries import as_written

pytestmark = pytest.mark.anyio

OWN = {"id": "own", "base_url": "http://h/v1", "auth": "none"}
KEYED = {"id": "own", "base_url": "http://h/v1", "connections": [{"name": "a", "api_key": "sk-key-4711"}]}


async def test_what_is_stored_is_what_was_written_with_fixed_values_as_texts() -> None:
    books = Books()
    await books.providers.create({**OWN, "headers": {"X-A": 10**40}, "leak": None, "version": 9, "warnings": []})
    assert books.store.providers.held["own"].config == {
        "base_url": "http://h/v1",
        "auth": "none",
        "headers": {"X-A": str(10**40)},
    }


async def test_one_that_was_changed_meanwhile_is_not_removed() -> None:
    books = Books()
    await books.providers.create(OWN)
    with pytest.raises(PreconditionFailed, match="at version 1, not 7"):
        await books.providers.remove("own", 7, cascade=False)


async def test_an_unknown_one_is_not_found() -> None:
    with pytest.raises(NotFound, match="there is no provider 'own'"):
        await Books().providers.find("own")


async def test_a_key_cannot_come_between_a_look_at_the_address_and_its_change() -> None:
    books = Books()
    await books.providers.create({**KEYED, "connections": None})
    new = {"provider": "own", "name": "a", "api_key": "sk-key-4711"}
    await asyncio.gather(
        books.connections.create(new), books.providers.change("own", {"base_url": "http://elsewhere/v1"}, None)
    )
    assert books.store.connections.held["own#a"].api_key is None


async def test_keys_of_nobody_knows_which_provider_are_not_taken_over() -> None:
    books = Books()
    await books.store.connections.add(Account("own#b", "own", "b", Secret("sk-old"), origin=Origin.DATABASE))
    _, warnings = await books.providers.create(KEYED)
    held = {name: account.api_key for name, account in books.store.connections.held.items()}
    assert held == {"own#a": Secret("sk-key-4711"), "own#b": None}
    assert "dropped: b;" in warnings[0]


async def test_an_alias_of_a_built_in_provider_that_is_taken_is_a_warning() -> None:
    books = Books()
    await books.providers.create({**OWN, "id": "claude"})
    entry, warnings = await books.providers.create(
        {"id": "anthropic", "connections": [{"name": "a", "api_key": "sk-key"}]}
    )
    assert (entry.provider.aliases, warnings) == ((), ["the alias claude means claude; it is left out"])


async def test_the_provider_of_the_environment_is_shown_without_its_key() -> None:
    books = Books(in_environment(GROQ_API_KEY="sk-env-4711"))
    (entry,) = await books.providers.entries()
    told = as_written(entry)
    assert (told["origin"], told["connected"], told["account_count"], told["connection_count"]) == (
        "environment",
        True,
        1,
        0,
    )
    assert "4711" not in repr(told)


async def test_a_fixed_value_is_shown_only_where_it_lives_in_the_database() -> None:
    books = Books()
    entry, _ = await books.providers.create({**OWN, "headers": {"x-a": "seen"}})
    of_the_file = replace(entry, provider=replace(entry.provider, origin=Origin.FILE), row=None)
    assert "seen" in repr(as_written(entry))
    assert "seen" not in repr(as_written(of_the_file))


async def test_a_write_brings_a_bounded_number_of_connections() -> None:
    many = [{"name": f"n{i}", "api_key": "sk-key"} for i in range(MAX_CONNECTIONS + 1)]
    with pytest.raises(ValidationFailed, match="at most 100 connections"):
        await Books().providers.create({**KEYED, "connections": many})


async def test_a_provider_with_connections_stays() -> None:
    books = Books()
    await books.providers.create(KEYED)
    with pytest.raises(Conflict):
        await books.providers.remove("own", None, cascade=False)
    assert [entry.provider.id for entry in await books.providers.entries()] == ["own"]
