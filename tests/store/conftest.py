"""Every test that asks for `url` or `store` runs on a SQLite file and on a PostgreSQL, each empty."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes import FakeClock
from tests.services import Postgres
from troyproxy.catalog.secret import Secret
from troyproxy.store import migrations
from troyproxy.store.secrets import SecretBox
from troyproxy.store.store import SqlStore
from troyproxy.store.writer import Pace

BRISK = Pace(linger_s=0.0, retry_s=0.01, retry_max_s=0.02, heartbeat_s=0.01, drain_s=10.0)
"""A writer that does not dawdle."""


@pytest.fixture
def empty_postgres_url(postgres_server: Postgres) -> str:
    """The URL of a database without a table."""
    postgres_server.empty("troy")
    return postgres_server.url("troy")


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite+aiosqlite:///{tmp_path}/data/troy.db"
    return str(request.getfixturevalue("empty_postgres_url"))


@pytest.fixture
async def url(empty_url: str, anyio_backend: str) -> str:
    """The URL of a migrated database."""
    await migrations.upgrade(empty_url)
    return empty_url


@pytest.fixture
def secret_key() -> Secret:
    return SecretBox.generate()


@pytest.fixture
async def store(url: str, clock: FakeClock, secret_key: Secret, anyio_backend: str) -> AsyncIterator[SqlStore]:
    opened = SqlStore(url, secret_key=secret_key, clock=clock, pace=BRISK)
    await opened.start()
    try:
        yield opened
    finally:
        await opened.stop()
