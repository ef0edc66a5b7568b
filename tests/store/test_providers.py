from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import select

from tests.fakes import FakeClock
from troyproxy.catalog.providers import Account, StoredProvider
from troyproxy.catalog.secret import Secret
from troyproxy.errors import Conflict, NotFound, PreconditionFailed
from troyproxy.store.store import SqlStore
from troyproxy.store.tables import CONNECTIONS

pytestmark = pytest.mark.anyio

LOCAL = StoredProvider(
    "local",
    {
        "base_url": "http://127.0.0.1:8000/v1",
        "auth": {"header": "x-token-of-ours"},
        "headers": {"x-team": "Größe"},
        "timeouts": {"connect_s": 0.5},
        "models": {"m": {"tools": True, "price": {"input": 0.25}}},
    },
)
A = Account(id="local#a", provider="local", name="a", api_key=Secret("sk-upstream-4711"))
B = Account(id="local#b", provider="local", name="b", api_key=Secret("sk-upstream-4712"))


async def keys(store: SqlStore) -> dict[str, str | None]:
    """Return the keys of all connections by name."""
    held = await store.connections.list()
    return {a.name: None if a.api_key is None else a.api_key.reveal() for a in held}


async def test_a_provider_comes_back_as_it_was_stored(store: SqlStore, clock: FakeClock) -> None:
    stored = await store.providers.add(LOCAL)
    assert stored == replace(LOCAL, version=1, created_at=clock.now())
    assert await store.providers.list() == [stored]


async def test_providers_are_listed_oldest_first(store: SqlStore, clock: FakeClock) -> None:
    first = await store.providers.add(replace(LOCAL, id="z"))
    clock.move(1)
    second = await store.providers.add(replace(LOCAL, id="a"))
    assert await store.providers.list() == [first, second]


async def test_an_id_is_taken_once(store: SqlStore) -> None:
    await store.providers.add(LOCAL)
    with pytest.raises(Conflict, match="'local'"):
        await store.providers.add(LOCAL)


async def test_a_replaced_provider_is_one_version_later_and_as_old_as_before(store: SqlStore, clock: FakeClock) -> None:
    first = await store.providers.add(LOCAL)
    clock.move(5)
    second = await store.providers.replace(replace(LOCAL, config={"base_url": "http://other/v1"}), expected_version=1)
    assert second == replace(first, config={"base_url": "http://other/v1"}, version=2)
    assert await store.providers.list() == [second]


async def test_a_version_that_is_not_stored_changes_nothing(store: SqlStore) -> None:
    first = await store.providers.add(LOCAL)
    with pytest.raises(PreconditionFailed, match="version 1, not 2"):
        await store.providers.replace(LOCAL, expected_version=2, accounts=[A], drop_keys=True)
    assert (await store.providers.list(), await store.connections.list()) == ([first], [])


async def test_replacing_what_is_not_there_is_not_found(store: SqlStore) -> None:
    with pytest.raises(NotFound, match="'local'"):
        await store.providers.replace(LOCAL)


async def test_every_write_moves_the_revision(store: SqlStore) -> None:
    await store.providers.add(LOCAL)
    await store.providers.replace(LOCAL)
    await store.providers.remove("local")
    assert await store.control.revision() == 3


async def test_connections_come_with_a_provider(store: SqlStore, clock: FakeClock) -> None:
    await store.providers.add(LOCAL, accounts=[A])
    (held,) = await store.connections.list()
    assert (held.id, held.version, held.created_at) == ("local#a", 1, clock.now())
    assert await keys(store) == {"a": "sk-upstream-4711"}


async def test_a_connection_that_comes_again_is_written_over(store: SqlStore) -> None:
    await store.providers.add(LOCAL, accounts=[A])
    await store.providers.replace(LOCAL, accounts=[replace(A, api_key=Secret("sk-new-key"), priority=3)])
    held = await store.connections.find("local#a")
    assert held is not None
    assert (held.version, held.priority, await keys(store)) == (2, 3, {"a": "sk-new-key"})


async def test_a_key_that_comes_with_a_provider_is_sealed(store: SqlStore) -> None:
    await store.providers.add(LOCAL, accounts=[A])
    async with store._database.read() as connection:
        (row,) = (await connection.execute(select(CONNECTIONS))).all()
    assert "4711" not in repr(row)


async def test_dropped_keys_are_gone_but_for_those_that_come_anew(store: SqlStore) -> None:
    await store.connections.add(replace(A, id="groq#a", provider="groq"))
    await store.providers.add(LOCAL, accounts=[A, B])
    await store.providers.replace(LOCAL, accounts=[replace(B, api_key=Secret("sk-new-key"))], drop_keys=True)
    held = {a.id: (a.api_key.reveal() if a.api_key else None, a.version) for a in await store.connections.list()}
    assert held == {"local#a": (None, 2), "local#b": ("sk-new-key", 2), "groq#a": ("sk-upstream-4711", 1)}


async def test_a_name_that_is_taken_stores_nothing_at_all(store: SqlStore) -> None:
    await store.connections.add(A)
    with pytest.raises(Conflict):
        await store.providers.add(LOCAL, accounts=[replace(A, id="local#A", name="A")])
    assert await store.providers.list() == []


async def test_a_provider_with_connections_stays_and_they_are_named(store: SqlStore) -> None:
    await store.providers.add(LOCAL, accounts=[A, B])
    with pytest.raises(Conflict, match=r"local has connections: a, b; .*cascade"):
        await store.providers.remove("local")
    assert (len(await store.providers.list()), len(await store.connections.list())) == (1, 2)


async def test_no_more_than_five_connections_are_named(store: SqlStore) -> None:
    many = [replace(A, id=f"local#{name}", name=name) for name in "abcdefg"]
    await store.providers.add(LOCAL, accounts=many)
    with pytest.raises(Conflict, match="a, b, c, d, e and 2 more"):
        await store.providers.remove("local")


async def test_with_cascade_its_connections_go_too_and_no_others(store: SqlStore) -> None:
    await store.providers.add(LOCAL, accounts=[A, B])
    await store.connections.add(replace(A, id="groq#a", provider="groq"))
    await store.providers.remove("local", cascade=True)
    assert await store.providers.list() == []
    assert [account.id for account in await store.connections.list()] == ["groq#a"]


async def test_what_is_configured_by_connections_alone_goes_with_them(store: SqlStore) -> None:
    await store.connections.add(A)
    await store.providers.remove("local", cascade=True)
    assert await store.connections.list() == []


async def test_removing_what_is_not_there_is_not_found(store: SqlStore) -> None:
    with pytest.raises(NotFound):
        await store.providers.remove("local", cascade=True)
