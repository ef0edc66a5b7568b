from __future__ import annotations

import asyncio
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes import FakeClock
from tests.services import Postgres, free_port
from tests.store.conftest import BRISK
from tests.store.test_requests import BARE
from tests.store.waiting import until, until_written
from troyproxy.catalog.secret import Secret
from troyproxy.errors import ConfigError, StoreUnavailable
from troyproxy.ports import Store
from troyproxy.store import database, migrations
from troyproxy.store.store import SqlStore

pytestmark = pytest.mark.anyio


async def test_a_store_satisfies_its_port(store: SqlStore) -> None:
    port: Store = store
    assert port.up


async def test_a_sqlite_file_and_its_private_folder_are_made_at_the_start(tmp_path: Path, clock: FakeClock) -> None:
    store = SqlStore(f"sqlite:///{tmp_path}/a/b/troy.db", secret_key=None, clock=clock)
    await store.start()
    assert await store.combos.list() == []
    await store.stop()
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


async def test_sqlite_stores_started_at_once_migrate_one_file_together(tmp_path: Path, clock: FakeClock) -> None:
    stores = [SqlStore(f"sqlite:///{tmp_path}/troy.db", secret_key=None, clock=clock) for _ in range(4)]
    await asyncio.gather(*(store.start() for store in stores))
    assert [await store.control.revision() for store in stores] == [0, 0, 0, 0]
    for store in stores:
        await store.stop()


async def test_a_file_that_is_no_database_stops_the_start_and_is_named(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "troy.db").write_text("not a database, but a text that is long enough to look like one" * 20)
    store = SqlStore(f"sqlite:///{tmp_path}/troy.db", secret_key=None, clock=clock)
    with pytest.raises(ConfigError, match=r"troy\.db"):
        await store.start()
    await store.stop()


async def test_a_postgresql_without_tables_is_not_migrated_but_explained(
    empty_postgres_url: str, clock: FakeClock
) -> None:
    store = SqlStore(empty_postgres_url, secret_key=None, clock=clock)
    with pytest.raises(ConfigError, match=r"revision none, not \d+: run `troyproxy db upgrade`"):
        await store.start()
    await store.stop()


async def test_reading_a_postgresql_without_tables_is_unavailable(empty_postgres_url: str, clock: FakeClock) -> None:
    store = SqlStore(empty_postgres_url, secret_key=None, clock=clock)
    with pytest.raises(StoreUnavailable):
        await store.combos.list()
    await store.stop()


async def test_an_unreachable_database_does_not_stop_the_start(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"postgresql://troy:hunter2@127.0.0.1:{free_port()}/troy"
    store = SqlStore(url, secret_key=None, clock=clock, pace=replace(BRISK, drain_s=0.0))
    await store.start()
    assert not store.up
    with pytest.raises(StoreUnavailable):
        await store.keys.list()
    await store.stop()
    assert len(caplog.records) == 1
    assert "hunter2" not in caplog.text


async def test_a_postgresql_that_comes_back_takes_what_was_kept(
    running_postgres: Postgres, empty_postgres_url: str, clock: FakeClock
) -> None:
    await migrations.upgrade(empty_postgres_url)
    store = SqlStore(empty_postgres_url, secret_key=None, clock=clock, pace=BRISK)
    await store.start()
    await asyncio.to_thread(running_postgres.stop)
    store.usage.record(BARE)
    await until(lambda: not store.up)
    with pytest.raises(StoreUnavailable):
        await store.requests.recent()
    await asyncio.to_thread(running_postgres.start)
    await until_written(store)
    await until(lambda: store.up)
    assert await store.requests.find(BARE.request_id) == BARE
    await store.stop()


async def test_a_postgresql_reached_only_later_is_used_once_it_is_migrated(
    running_postgres: Postgres, empty_postgres_url: str, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    await asyncio.to_thread(running_postgres.stop)
    store = SqlStore(empty_postgres_url, secret_key=None, clock=clock, pace=BRISK)
    await store.start()
    store.usage.record(BARE)
    await asyncio.to_thread(running_postgres.start)
    await until(lambda: "troyproxy db upgrade" in caplog.text)
    assert not store.up
    await migrations.upgrade(empty_postgres_url)
    await until_written(store)
    assert await store.requests.find(BARE.request_id) == BARE
    await store.stop()
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR", "WARNING"]


async def test_a_sqlite_file_that_is_locked_at_the_start_is_used_once_it_is_free(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_MS", 1)
    with closing(sqlite3.connect(tmp_path / "troy.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        store = SqlStore(f"sqlite:///{tmp_path}/troy.db", secret_key=None, clock=clock, pace=BRISK)
        await store.start()
        assert not store.up
        store.usage.record(BARE)
    await until_written(store)
    assert await store.requests.find(BARE.request_id) == BARE
    await store.stop()


def test_a_bad_secret_key_is_refused_when_the_store_is_made(tmp_path: Path, clock: FakeClock) -> None:
    with pytest.raises(ConfigError, match="TROY_SECRET_KEY"):
        SqlStore(f"sqlite:///{tmp_path}/troy.db", secret_key=Secret("short"), clock=clock)
