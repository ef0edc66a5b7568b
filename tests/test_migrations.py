"""Every revision goes up, down and up again, and the newest equals the models. (PostgreSQL: ``tests/store``.)"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from troyproxy.store import migrations

ROOT = Path(__file__).parents[1]


def revisions() -> list[str]:
    """Return every revision, oldest first."""
    config = Config()
    config.set_main_option("script_location", str(ROOT / "alembic"))
    config.set_main_option("path_separator", "os")
    return [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()][::-1]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite+aiosqlite:///{tmp_path}/troy.db"


@pytest.mark.anyio
async def test_the_newest_revision_equals_the_models(url: str) -> None:
    await migrations.upgrade(url, revisions()[0])
    await migrations.upgrade(url)
    assert (await migrations.check(url)).differences == ()


def made(file: Path) -> dict[str, object]:
    """Return each table of *file*: its columns and constraints in any order, its indices, and its rows."""
    with closing(sqlite3.connect(file)) as database:
        found: dict[str, object] = {}
        for kind, name, sql in database.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
            found[f"{kind} {name}"] = sorted(re.split(r"[\s,()\"]+", sql or ""))
            if kind == "table":
                found[f"columns of {name}"] = database.execute(f"PRAGMA table_xinfo({name})").fetchall()
                found[f"rows of {name}"] = database.execute(f"SELECT * FROM {name}").fetchall()  # noqa: S608
        return found


@pytest.mark.anyio
async def test_a_new_file_is_what_the_scripts_make(url: str, tmp_path: Path) -> None:
    await migrations.upgrade(url)
    await migrations.upgrade(f"sqlite+aiosqlite:///{tmp_path}/scripts.db", revisions()[0])
    await migrations.upgrade(f"sqlite+aiosqlite:///{tmp_path}/scripts.db")
    assert made(tmp_path / "troy.db") == made(tmp_path / "scripts.db")


@pytest.mark.anyio
@pytest.mark.parametrize("revision", revisions())
async def test_a_revision_goes_down_and_up_again(url: str, revision: str) -> None:
    assert await migrations.upgrade(url, revision) == revision
    below = await migrations.downgrade(url)
    assert below != revision
    assert await migrations.upgrade(url, revision) == revision


def test_there_is_one_line_of_revisions() -> None:
    assert revisions()[-1] == migrations.head()


def test_alembics_own_command_line_works_in_a_checkout(url: str) -> None:
    environment = {**os.environ, "TROY_DATABASE_URL": url}
    for command in (["upgrade", "head"], ["check"]):
        done = subprocess.run(
            [sys.executable, "-m", "alembic", *command], cwd=ROOT, env=environment, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
