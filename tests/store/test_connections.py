from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import select

from tests.fakes import FakeClock
from troyproxy.catalog.providers import Account, Origin
from troyproxy.catalog.secret import Secret
from troyproxy.errors import ConfigError, Conflict, NotFound, PreconditionFailed
from troyproxy.store.secrets import SecretBox
from troyproxy.store.store import SqlStore
from troyproxy.store.tables import CONNECTIONS

pytestmark = pytest.mark.anyio

TEAM = Account(
    id="openai#team-a",
    provider="openai",
    name="team-a",
    api_key=Secret("sk-upstream-4711"),
    models=("gpt-*", "o3"),
    default_model="gpt-4o",
    tier="pro",
    priority=2,
    quota={"requests": 1000, "per": "day"},
    quota_reset_interval_s=86_400.5,
    max_inflight=4,
    token_expires_at=1_900_000_000.25,
    active=False,
)
BARE = Account(id="local#main", provider="local", name="main")


async def test_a_connection_comes_back_as_it_was_stored(store: SqlStore, clock: FakeClock) -> None:
    stored = await store.connections.add(TEAM)
    assert stored == replace(TEAM, created_at=clock.now(), origin=Origin.DATABASE, version=1)
    assert await store.connections.list() == [stored]


async def test_a_connection_without_key_or_quota_comes_back_so(store: SqlStore) -> None:
    stored = await store.connections.add(BARE)
    (read,) = await store.connections.list()
    assert (read, read.api_key, read.quota) == (stored, None, None)


async def test_the_upstream_key_is_not_in_the_database(store: SqlStore) -> None:
    await store.connections.add(TEAM)
    async with store._database.read() as connection:
        (row,) = (await connection.execute(select(CONNECTIONS))).all()
    assert "4711" not in repr(row)
    assert row.api_key


async def test_a_name_is_taken_in_any_case_but_once_per_provider(store: SqlStore) -> None:
    await store.connections.add(TEAM)
    with pytest.raises(Conflict, match="openai has a connection of this name"):
        await store.connections.add(replace(TEAM, id="openai#TEAM-A", name="TEAM-A"))
    await store.connections.add(replace(TEAM, id="groq#team-a", provider="groq"))
    assert len(await store.connections.list()) == 2


async def test_a_connection_is_found_by_its_id(store: SqlStore) -> None:
    stored = await store.connections.add(TEAM)
    assert await store.connections.find(TEAM.id) == stored
    assert await store.connections.find("openai#nobody") is None


async def test_a_replaced_connection_is_one_version_later_and_as_old_as_before(
    store: SqlStore, clock: FakeClock
) -> None:
    first = await store.connections.add(TEAM)
    clock.move(5)
    second = await store.connections.replace(replace(TEAM, tier=None, api_key=None), expected_version=1)
    assert second == replace(first, tier=None, api_key=None, version=2)
    assert await store.connections.list() == [second]


async def test_a_version_that_is_not_stored_changes_nothing(store: SqlStore) -> None:
    first = await store.connections.add(TEAM)
    with pytest.raises(PreconditionFailed, match="version 1, not 2"):
        await store.connections.replace(replace(TEAM, tier=None), expected_version=2)
    assert await store.connections.list() == [first]


async def test_replacing_what_is_not_there_is_not_found(store: SqlStore) -> None:
    with pytest.raises(NotFound, match="openai#team-a"):
        await store.connections.replace(TEAM)


async def test_a_replacement_cannot_take_the_name_of_another(store: SqlStore) -> None:
    await store.connections.add(TEAM)
    other = await store.connections.add(replace(TEAM, id="openai#b", name="b"))
    with pytest.raises(Conflict, match="openai has a connection of this name"):
        await store.connections.replace(replace(other, name="Team-A"))


async def test_a_replacement_moves_the_revision(store: SqlStore) -> None:
    await store.connections.add(TEAM)
    await store.connections.replace(TEAM)
    assert await store.control.revision() == 2


async def test_a_removed_connection_is_gone_and_the_revision_moved(store: SqlStore) -> None:
    await store.connections.add(TEAM)
    await store.connections.remove(TEAM.id)
    assert await store.connections.list() == []
    assert await store.control.revision() == 2


async def test_removing_what_is_not_there_is_not_found(store: SqlStore) -> None:
    with pytest.raises(NotFound):
        await store.connections.remove("openai#nobody")


async def test_another_secret_key_names_the_remedy_and_no_secret(store: SqlStore, url: str, clock: FakeClock) -> None:
    await store.connections.add(TEAM)
    other = SqlStore(url, secret_key=SecretBox.generate(), clock=clock)
    with pytest.raises(ConfigError, match="TROY_SECRET_KEY") as caught:
        await other.connections.list()
    await other.stop()
    assert "4711" not in str(caught.value)


async def test_without_a_secret_key_no_upstream_key_is_stored_or_read(
    store: SqlStore, url: str, clock: FakeClock
) -> None:
    keyless = SqlStore(url, secret_key=None, clock=clock)
    with pytest.raises(ConfigError, match="TROY_SECRET_KEY"):
        await keyless.connections.add(TEAM)
    await keyless.connections.add(BARE)
    assert [account.id for account in await keyless.connections.list()] == [BARE.id]
    await store.connections.add(TEAM)
    with pytest.raises(ConfigError, match="TROY_SECRET_KEY"):
        await keyless.connections.list()
    await keyless.stop()
