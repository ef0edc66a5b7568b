"""The tests of the walk run on a virtual event loop: every deadline is met at once, and in order."""

from __future__ import annotations

import pytest

from tests.proxy.rig import Rig
from tests.virtual import VirtualLoop


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": VirtualLoop}


@pytest.fixture
def rig() -> Rig:
    return Rig()
