"""What the suite promises about itself: no network, a clean environment, time that only tests move."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from tests.fakes import FakeClock, settle


@pytest.mark.parametrize("host", ["192.0.2.1", "api.openai.com"])
def test_nothing_beyond_this_machine_can_be_reached(host: str) -> None:
    with pytest.raises(OSError, match="tests stay on this machine"):
        socket.create_connection((host, 443), timeout=1)


@pytest.mark.parametrize("method", ["connect", "connect_ex"])
def test_a_bare_socket_cannot_leave_either(method: str) -> None:
    with socket.socket() as bare, pytest.raises(OSError, match="tests stay on this machine"):
        getattr(bare, method)(("192.0.2.1", 443))


def test_this_machine_can_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()


def test_no_key_and_no_setting_of_the_person_who_runs_this_is_seen() -> None:
    ours = {name for name in os.environ if name.startswith("TROY_")} - {"REQUIRE_TEST_SERVICES"}
    assert ours | {name for name in os.environ if name.endswith("_API_KEY")} == set()


@pytest.mark.anyio
async def test_a_sleep_moves_the_fake_time(clock: FakeClock) -> None:
    before = clock.now(), clock.monotonic()
    await clock.sleep(2.5)
    assert (clock.now() - before[0], clock.monotonic() - before[1], clock.slept) == (2.5, 2.5, [2.5])


@pytest.mark.anyio
async def test_sleepers_of_a_manual_clock_wake_in_order_and_at_their_moment() -> None:
    clock, woken = FakeClock(now=0, monotonic=0, manual=True), list[tuple[float, float]]()

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((seconds, clock.now()))

    async with asyncio.TaskGroup() as group:
        for seconds in (3.0, 1.0, 2.0):
            group.create_task(sleeper(seconds))
        await settle()
        await clock.advance(2.0)
        assert woken == [(1.0, 1.0), (2.0, 2.0)]
        await clock.advance(5.0)
    assert (woken[-1], clock.now()) == ((3.0, 3.0), 7.0)
