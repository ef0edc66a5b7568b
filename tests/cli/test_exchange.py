"""One request and its answer on a connection, seen by the app and by a transport that keeps what is written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from uvicorn.server import ServerState

from troyproxy.cli.protocol import Connection
from troyproxy.cli.server_config import ServerConfig
from troyproxy.proxy.answers import Peer, Receive, Send
from troyproxy.proxy.call import Scope, peer_of

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("uvicorn_heard")]

GET = b"GET /a%20b?c=d HTTP/1.1\r\nHost: h\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n"
OK = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
FLOW = {"type": "http.response.start", "status": 200, "headers": [(b"X-A", b"b")]}
HI = {"type": "http.response.body", "body": b"hi"}
MORE = {**HI, "more_body": True}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\nx-a: b\r\nconnection: close\r\n\r\n"
FLOW_HEAD = b"HTTP/1.1 200 OK\r\nx-a: b\r\ntransfer-encoding: chunked\r\n\r\n"

Act = Callable[["Told"], Awaitable[None]]


class Transport(asyncio.Transport):
    """Keeps what is written, one entry for each write."""

    def __init__(self, peer: str = "127.0.0.1") -> None:
        super().__init__({"peername": (peer, 1), "sockname": ("127.0.0.1", 2)})
        self.writes: list[bytes] = []
        self.closed = self.aborted = False
        self.reading, self.unsent = True, 0

    def write(self, data: Any) -> None:  # noqa: ANN401 -- as the base has it
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


@dataclass
class Told:
    """What an app is called with."""

    scope: Scope
    receive: Receive
    send: Send

    @property
    def peer(self) -> Peer:
        found = peer_of(self.scope)
        assert found is not None
        return found


@dataclass
class Desk:
    """One connection to an app that does *act*."""

    act: Act
    options: dict[str, Any] = field(default_factory=dict)
    stopping: bool = False
    told: list[Told] = field(default_factory=list)

    def __post_init__(self) -> None:
        config = ServerConfig(self, interface="asgi3", log_config=None, ws="none", lifespan="off", **self.options)
        config.stopping = lambda: self.stopping
        self.transport, self.state = Transport(), ServerState()
        self.connection = Connection(config, self.state, {})
        self.connection.connection_made(self.transport)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.told.append(Told(scope, receive, send))
        await self.act(self.told[-1])

    async def gets(self, *data: bytes) -> list[bytes]:
        """Let *data* arrive, and return what is written once nothing moves any more."""
        for piece in data:
            self.connection.data_received(piece)
            await settled()
        return self.transport.writes


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def sending(*messages: dict[str, Any]) -> Act:
    async def act(told: Told) -> None:
        for message in messages:
            await told.send(message)

    return act


async def nothing(told: Told) -> None:
    del told


async def until_it_leaves(told: Told) -> None:
    while (await told.receive())["type"] != "http.disconnect":
        pass


async def test_a_small_answer_is_one_write() -> None:
    assert await Desk(sending(OK, HI)).gets(GET) == [HEAD + b"hi"]


async def test_the_head_of_a_stream_leaves_with_its_first_event() -> None:
    written = await Desk(sending(FLOW, MORE, HI)).gets(GET)
    assert written == [FLOW_HEAD + b"2\r\nhi\r\n", b"2\r\nhi\r\n0\r\n\r\n"]


async def test_the_head_of_an_app_that_waits_goes_alone() -> None:
    async def act(told: Told) -> None:
        await told.send(FLOW)
        await until_it_leaves(told)

    assert await Desk(act).gets(GET) == [FLOW_HEAD]


async def test_an_empty_end_is_the_last_chunk_alone() -> None:
    written = await Desk(sending(FLOW, MORE, {"type": "http.response.body"})).gets(GET)
    assert written[-1] == b"0\r\n\r\n"


async def test_the_app_sees_what_uvicorn_shows_it() -> None:
    desk = Desk(sending(OK, HI))
    await desk.gets(GET)
    scope = {name: value for name, value in desk.told[0].scope.items() if name != "extensions"}
    assert scope == {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "server": ("127.0.0.1", 2),
        "client": ("127.0.0.1", 1),
        "scheme": "http",
        "method": "GET",
        "root_path": "",
        "path": "/a b",
        "raw_path": b"/a%20b",
        "query_string": b"c=d",
        "headers": [(b"host", b"h")],
        "state": {},
    }


@pytest.mark.parametrize(
    ("request_line", "messages", "written", "closed"),
    [
        (b"HEAD / HTTP/1.1", [OK, HI], HEAD, False),
        (b"GET / HTTP/1.0", [OK, HI], HEAD[:-2] + b"connection: close\r\n\r\nhi", True),
        (b"GET / HTTP/1.0\r\nconnection: keep-alive", [FLOW, HI], UNTIL_CLOSE + b"hi", True),
        (b"GET / HTTP/0.9", [FLOW, HI], UNTIL_CLOSE + b"hi", True),
        (b"HEAD / HTTP/1.0", [FLOW, HI], UNTIL_CLOSE, True),
        (b"GET / HTTP/1.1\r\nconnection: close", [OK, HI], HEAD[:-2] + b"connection: close\r\n\r\nhi", True),
        (
            b"GET / HTTP/1.1",
            [{**OK, "headers": [(b"connection", b"Close"), (b"content-length", b"2")]}, HI],
            b"HTTP/1.1 200 OK\r\nconnection: Close\r\ncontent-length: 2\r\n\r\nhi",
            True,
        ),
        (
            b"GET / HTTP/1.1",
            [{"type": "http.response.start", "status": 204}, {"type": "http.response.body"}],
            b"HTTP/1.1 204 No Content\r\n\r\n",
            False,
        ),
        (
            b"GET / HTTP/1.1",
            [{**OK, "headers": [(b"transfer-encoding", b"chunked")]}, HI],
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            False,
        ),
    ],
    ids=[
        "HEAD",
        "1.0",
        "1.0 flow",
        "0.9 flow",
        "1.0 HEAD",
        "asked to close",
        "says close",
        "no body",
        "chunked by the app",
    ],
)
async def test_an_answer_is_framed_as_the_request_wants_it(
    request_line: bytes, messages: list[dict[str, Any]], written: bytes, closed: bool
) -> None:
    desk = Desk(sending(*messages))
    assert (await desk.gets(request_line + b"\r\nhost: h\r\n\r\n"), desk.transport.closed) == ([written], closed)


async def test_events_for_a_client_that_knows_no_chunks_come_as_they_are() -> None:
    desk = Desk(sending(FLOW, MORE, {**MORE, "body": b""}, MORE, {**HI, "body": b""}))
    writes = await desk.gets(b"GET / HTTP/1.0\r\n\r\n")
    assert (b"".join(writes), desk.transport.closed) == (UNTIL_CLOSE + b"hihi", True)


async def test_a_client_that_knows_no_interim_answers_gets_none() -> None:
    async def act(told: Told) -> None:
        await told.receive()
        await sending(OK, HI)(told)

    got = await Desk(act).gets(POST.replace(b"1.1", b"1.0") + b"expect: 100-continue\r\n\r\n", b"body")
    assert got == [HEAD[:-2] + b"connection: close\r\n\r\nhi"]


async def test_a_server_that_stops_says_so_in_every_answer() -> None:
    desk = Desk(sending(OK, HI), stopping=True)
    assert (b"connection: close" in (await desk.gets(GET))[0], desk.transport.closed) == (True, True)


async def test_the_headers_of_the_server_come_first_and_change_with_its_clock() -> None:
    desk = Desk(sending(OK, HI))
    for date in (b"one", b"two"):
        desk.state.default_headers = [(b"date", date)]
        await desk.gets(GET)
    assert [each.split(b"\r\n")[1] for each in desk.transport.writes] == [b"date: one", b"date: two"]


@pytest.mark.parametrize(
    ("messages", "written", "logged"),
    [
        ([], [b"HTTP/1.1 500"], "returned without starting"),
        ([FLOW], [FLOW_HEAD[:12]], "returned without completing"),
        ([HI], [b"HTTP/1.1 500"], "Expected ASGI message 'http.response.start'"),
        ([OK, OK], [HEAD[:12]], "Expected ASGI message 'http.response.body'"),
        ([OK, HI, HI], [HEAD[:12]], "after response already completed"),
        ([OK, {**HI, "body": b"three"}], [HEAD[:12]], "longer than Content-Length"),
        ([OK, {**HI, "body": b""}], [HEAD[:12]], "shorter than Content-Length"),
        ([{**OK, "headers": [(b"a b", b"c")]}], [], "Invalid HTTP header name"),
        ([{**OK, "headers": [(b"a", b"b\r\nc: d")]}], [], "Invalid HTTP header value"),
    ],
)
async def test_an_app_that_fails_is_logged_and_ends_the_connection(
    messages: list[dict[str, Any]], written: list[bytes], logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(sending(*messages))
    with caplog.at_level(logging.ERROR):
        got = await desk.gets(GET)
    assert ([each[:12] for each in got], desk.transport.closed, logged in caplog.text) == (written, True, True)


async def test_an_app_that_is_cancelled_before_its_answer_is_answered_for(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(until_it_leaves)
    await desk.gets(GET)
    for task in desk.state.tasks:
        task.cancel()
    await settled()
    assert (desk.transport.writes[0][:12], desk.state.tasks) == (b"HTTP/1.1 500", set())
    assert "Exception in ASGI application" in caplog.text


async def test_what_is_sent_after_the_client_has_left_is_dropped() -> None:
    async def act(told: Told) -> None:
        await until_it_leaves(told)
        await sending(FLOW, MORE, HI)(told)

    desk = Desk(act)
    await desk.gets(GET)
    desk.connection.connection_lost(None)
    await settled()
    assert (desk.transport.writes, desk.state.tasks) == ([], set())


async def test_a_head_that_is_held_when_the_client_leaves_goes_nowhere() -> None:
    async def act(told: Told) -> None:
        await told.send(FLOW)
        desk.connection.connection_lost(ConnectionResetError())
        await settled()

    desk = Desk(act)
    assert await desk.gets(GET) == []
