"""The fixture of this folder: a started gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.house import House, build
from tests.fakes import FakeClock


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: str) -> AsyncIterator[House]:
    found = build(tmp_path, FakeClock(manual=True))
    async with found.gateway:
        yield found
