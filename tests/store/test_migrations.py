"""The migrations' API, on both databases. That the scripts equal the models is in ``tests/test_migrations.py``."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.services import free_port
from troyproxy.errors import ConfigError, StoreUnavailable
from troyproxy.store import migrations, scripts
from troyproxy.store.database import Database, parse_url

pytestmark = pytest.mark.anyio


async def execute(url: str, statement: str) -> None:
    database = Database(parse_url(url))
    async with database.write() as connection:
        await connection.execute(text(statement))
    await database.close()


async def test_an_empty_database_has_no_revision(empty_url: str) -> None:
    assert await migrations.current(empty_url) is None


async def test_the_scripts_equal_the_models(empty_url: str) -> None:
    assert await migrations.upgrade(empty_url) == migrations.head()
    state = await migrations.check(empty_url)
    assert state == migrations.SchemaState(migrations.head(), migrations.head())
    assert state.ok


async def test_down_to_nothing_and_up_again(url: str) -> None:
    assert await migrations.downgrade(url, "base") is None
    assert not (await migrations.check(url)).ok
    assert await migrations.upgrade(url) == migrations.head()
    assert (await migrations.check(url)).ok


async def test_upgrading_twice_changes_nothing(url: str) -> None:
    assert await migrations.upgrade(url) == migrations.head()


async def test_a_database_that_is_up_to_date_needs_no_alembic(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(migrations, "_scripts")
    assert await migrations.upgrade(url) == migrations.head()


async def test_a_new_file_needs_no_alembic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(migrations, "_scripts")
    assert await migrations.upgrade(f"sqlite:///{tmp_path}/new.db") == migrations.head()


async def test_upgrades_at_once_take_turns(empty_url: str) -> None:
    found = await asyncio.gather(*(migrations.upgrade(empty_url) for _ in range(3)))
    assert found == [migrations.head()] * 3


async def test_a_changed_table_is_reported(url: str) -> None:
    await execute(url, "ALTER TABLE keys ADD COLUMN colour TEXT")
    state = await migrations.check(url)
    assert not state.ok
    assert "colour" in " ".join(state.differences)


async def test_an_unknown_revision_is_a_config_error(url: str) -> None:
    with pytest.raises(ConfigError, match="cannot migrate"):
        await migrations.upgrade(url, "nowhere")
    await execute(url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(ConfigError):
        await migrations.upgrade(url)


async def test_a_failed_migration_leaves_nothing_behind(empty_url: str) -> None:
    await execute(empty_url, "CREATE TABLE control (id INTEGER)")
    with pytest.raises(StoreUnavailable):
        await migrations.upgrade(empty_url)
    await execute(empty_url, "DROP TABLE control")
    assert await migrations.current(empty_url) is None
    await migrations.upgrade(empty_url)
    assert (await migrations.check(empty_url)).ok


async def test_an_unreachable_database_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable):
        await migrations.current(f"postgresql://127.0.0.1:{free_port()}/troy")


def test_the_newest_revision_is_accepted() -> None:
    newest = migrations.head()
    migrations.require_head(newest)
    assert newest


def test_a_newer_database_is_told_from_an_older_one() -> None:
    with pytest.raises(ConfigError, match="a newer troyproxy"):
        migrations.require_head("9999")
    with pytest.raises(ConfigError, match="troyproxy db upgrade"):
        migrations.require_head(None)


def test_the_scripts_are_found_in_a_checkout_and_in_an_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scripts.folder().name == "alembic"
    package = tmp_path / "troyproxy"
    monkeypatch.setattr(scripts, "__file__", str(package / "store" / "scripts.py"))
    with pytest.raises(ConfigError, match="install troyproxy again"):
        scripts.folder()
    (package / "_migrations").mkdir(parents=True)
    (package / "_migrations" / "env.py").touch()
    assert scripts.folder() == package / "_migrations"
