"""Where snapshots come from, with and without a database."""

from __future__ import annotations

import pytest

from tests.fake_store import FakeStore
from tests.fakes import FakeClock
from troyproxy.catalog.combos import Combo, Member
from troyproxy.errors import ConfigError, StoreUnavailable
from troyproxy.proxy.life import UNREAD
from troyproxy.proxy.sources import SnapshotSource
from troyproxy.settings.load import Configuration, load

pytestmark = pytest.mark.anyio


def broken() -> Configuration:
    raise ConfigError("troyproxy.yaml: providers.x: is not allowed")


def source(store: FakeStore, clock: FakeClock) -> SnapshotSource:
    return SnapshotSource(load({}), lambda: load({"OPENAI_API_KEY": "sk-x"}), store=store, clock=clock)


async def test_the_database_adds_its_combos(clock: FakeClock) -> None:
    store = FakeStore()
    await store.combos.add(Combo("daily", "daily", members=(Member("openai/gpt-4o"),)))
    assert "daily" in (await source(store, clock).build(3)).combos


async def test_a_later_snapshot_reads_the_configuration_again(clock: FakeClock) -> None:
    built = source(FakeStore(), clock)
    first, second = await built.build(1), await built.build(2)
    assert (list(first.providers), list(second.providers)) == ([], ["openai"])


async def test_a_database_that_is_down_at_the_start_adds_nothing_until_it_is_back(clock: FakeClock) -> None:
    store = FakeStore()
    store.connections.down = True
    assert (await source(store, clock).build(3)).revision == UNREAD


async def test_a_database_that_is_down_later_changes_nothing(clock: FakeClock) -> None:
    store = FakeStore()
    built = source(store, clock)
    await built.build(1)
    store.connections.down = True
    with pytest.raises(StoreUnavailable):
        await built.build(2)


async def test_a_configuration_that_is_not_valid_is_refused(clock: FakeClock) -> None:
    built = SnapshotSource(load({}), broken, store=FakeStore(), clock=clock)
    await built.build(1)
    with pytest.raises(ConfigError):
        await built.build(2)
