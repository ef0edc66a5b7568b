"""The fixture of this folder: a started gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.house import House, build
from tests.api.pool import Pool
from tests.fakes import FakeClock


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: str) -> AsyncIterator[House]:
    found = build(tmp_path, FakeClock(manual=True))
    async with found.gateway:
        yield found


@pytest.fixture
async def cold(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Pool]:
    """Four providers of which nothing is measured yet, on a clock that their latencies move."""
    made = Pool(tmp_path)
    async with made.house.gateway:
        yield made


@pytest.fixture
async def pool(cold: Pool) -> Pool:
    """Four providers whose latencies and quotas are known."""
    await cold.warm()
    return cold
