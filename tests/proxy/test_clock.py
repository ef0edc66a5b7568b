from __future__ import annotations

import asyncio
import time

import pytest

from tests.virtual import START
from troyproxy.proxy.clock import SystemClock


def test_it_is_the_real_time() -> None:
    clock = SystemClock()
    assert time.time() <= clock.now()
    assert time.monotonic() <= clock.monotonic()


@pytest.mark.anyio
async def test_it_sleeps_on_the_loop() -> None:
    await SystemClock().sleep(1000)
    assert asyncio.get_running_loop().time() == START + 1000
