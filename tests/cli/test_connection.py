"""One connection, seen by a transport that keeps what is written: what is no request, and what comes too early."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.cli.test_exchange import GET, HEAD, HI, OK, Desk, Told, nothing, sending, settled
from troyproxy.cli.protocol import MAX_AHEAD

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("uvicorn_heard")]


async def test_what_is_no_request_is_answered_and_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(nothing)
    with caplog.at_level(logging.WARNING):
        written = await desk.gets(b"GET nothing at all\r\n\r\n")
    assert (written[0][:12], desk.transport.closed, desk.told) == (b"HTTP/1.1 400", True, [])
    assert "Invalid HTTP request received" in caplog.text


async def test_a_connection_that_wants_to_be_another_one_stays_this_one(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        written = await Desk(sending(OK, HI)).gets(
            b"GET / HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
        )
    assert (written, caplog.text) == ([HEAD + b"hi"], "")


async def test_no_more_is_read_while_many_requests_wait_for_their_turn() -> None:
    go = asyncio.Event()

    async def act(told: Told) -> None:
        await go.wait()
        await sending(OK, HI)(told)

    desk, reading = Desk(act), list[bool]()
    for _ in range(MAX_AHEAD + 2):
        await desk.gets(GET)
        reading.append(desk.transport.reading)
    go.set()
    await settled()
    for _ in range(MAX_AHEAD):
        await settled()
    assert (reading, desk.transport.reading) == ([True] * (MAX_AHEAD + 1) + [False], True)
    assert desk.transport.writes == [HEAD + b"hi"] * (MAX_AHEAD + 2)


async def test_requests_that_wait_are_forgotten_with_their_connection() -> None:
    async def act(told: Told) -> None:
        await told.receive()
        await told.receive()

    desk = Desk(act)
    await desk.gets(GET, GET)
    desk.connection.connection_lost(None)
    await settled()
    assert (len(desk.told), desk.state.tasks, desk.connection in desk.state.connections) == (1, set(), False)


async def test_a_client_that_does_not_read_before_it_asks_changes_nothing() -> None:
    desk = Desk(sending(OK, HI))
    desk.connection.pause_writing()
    desk.connection.resume_writing()
    assert await desk.gets(GET) == [HEAD + b"hi"]


async def test_a_request_after_one_whose_body_nobody_asked_for_is_served() -> None:
    post = b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\n"
    assert await Desk(sending(OK, HI)).gets(post, b"abcd", GET) == [HEAD + b"hi"] * 2


@dataclass
class Clock:
    """A loop whose time the test moves."""

    now: float = 0.0
    later: list[float] = field(default_factory=list)

    def time(self) -> float:
        return self.now

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        self.later.append(delay_s)
        return asyncio.get_running_loop().call_later(1000, callback)


async def test_the_timer_of_a_connection_looks_again_when_something_came_meanwhile() -> None:
    desk, clock = Desk(sending(OK, HI), {"timeout_keep_alive": 75}), Clock(100.0)
    connection = desk.connection
    connection.loop = clock  # type: ignore[assignment]  # the part of it that is used
    await desk.gets(GET)
    clock.now = 110.0
    connection._look()
    waiting = desk.transport.closed
    clock.now = 175.0
    connection._look()
    connection.connection_lost(None)
    assert (clock.later, waiting, desk.transport.closed) == ([65.0], False, True)


async def test_a_server_that_ends_ends_an_answer_with_its_connection() -> None:
    go = asyncio.Event()

    async def act(told: Told) -> None:
        await go.wait()
        await sending(OK, HI)(told)

    desk = Desk(act)
    await desk.gets(GET)
    desk.connection.shutdown()
    before = desk.transport.closed
    go.set()
    await settled()
    assert (before, desk.transport.closed) == (False, True)
    assert desk.transport.writes == [HEAD[:-2] + b"connection: close\r\n\r\nhi"]
