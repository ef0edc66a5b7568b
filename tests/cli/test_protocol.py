"""What one connection may hold: heads, trailers and silence have an end, whoever asks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import uvicorn

from troyproxy.cli import protocol, reading
from troyproxy.cli.protocol import Connection
from troyproxy.cli.server import server_config
from troyproxy.cli.server_config import ServerConfig
from troyproxy.proxy.answers import Receive, Send
from troyproxy.proxy.call import Scope
from troyproxy.settings.values import Settings

pytestmark = pytest.mark.anyio

HEAD = b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n"
PIECE = b"x" * 1000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_HEAD", 5000)


@dataclass
class App:
    """Reads the whole body, answers 204, and keeps what the scope said at the end."""

    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    server: uvicorn.Server | None = None
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def connections(self) -> list[Connection]:
        """Return the connections of the server."""
        assert self.server is not None
        return [each for each in self.server.server_state.connections if isinstance(each, Connection)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = bool(message.get("more_body"))
            self.arrived.set()
        self.bodies.append(body)
        self.headers += scope["headers"]
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})


@dataclass
class Waiting(App):
    """Answers nothing, and waits for the client to leave."""

    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, send
        self.arrived.set()
        while (await receive())["type"] != "http.disconnect":
            pass
        self.left.set()


@asynccontextmanager
async def serving(app: App, **options: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Serve *app* on loopback and yield one connection to it."""
    server = uvicorn.Server(
        ServerConfig(app, http=Connection, ws="none", lifespan="off", log_config=None, **options)  # type: ignore[arg-type]  # by name
    )
    app.server = server
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listener]))
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
            try:
                yield reader, writer
            finally:
                writer.close()
                server.should_exit = True


async def comes(look: Callable[[], bool]) -> None:
    """Wait for what the server's loop is about to do."""
    for _ in range(100_000):
        if look():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come")


async def rest(reader: asyncio.StreamReader) -> bytes:
    """Return what comes until the connection ends, however it does."""
    got = b""
    try:
        while piece := await reader.read(1 << 16):
            got += piece
    except ConnectionError:
        pass
    return got


async def flooded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, begun: bytes) -> bytes:
    """Go on behind *begun* until the server has enough; return its answer."""
    writer.write(begun)
    async with asyncio.TaskGroup() as group:
        answered = group.create_task(rest(reader))
        while not answered.done():
            writer.write(PIECE)
            await asyncio.sleep(0)
    return answered.result()


def test_the_gateway_is_served_by_it() -> None:
    assert server_config(App(), Settings()).http is Connection


@pytest.mark.parametrize(
    "begun",
    [b"GET /", b"GET / HTTP/1.1\r\nx-a: ", b"GET / HTTP/1.1\r\nx-a: b\r\n" + b"x-a: b\r\n" * 100],
    ids=["path", "value", "many"],
)
async def test_a_head_without_end_is_refused(begun: bytes) -> None:
    app = App()
    async with serving(app) as (reader, writer):
        answer = await flooded(reader, writer, begun)
    assert (answer[:12], app.bodies) == (b"HTTP/1.1 431", [])


@pytest.mark.parametrize("begun", [b"3\r\nabc\r\n0\r\nx-t: ", b"3;"], ids=["trailer", "extension"])
async def test_what_stands_between_the_pieces_of_a_body_has_an_end(begun: bytes) -> None:
    app = App()
    async with serving(app) as (reader, writer):
        answer = await flooded(reader, writer, HEAD + b"\r\n" + begun)
    assert answer == b""


async def test_a_large_body_is_no_large_head() -> None:
    app = App()
    async with serving(app) as (reader, writer):
        writer.write(HEAD + b"connection: close\r\n\r\n")
        for _ in range(20):
            writer.write(b"3e8\r\n" + PIECE + b"\r\n")
        writer.write(b"0\r\n\r\n")
        answer = await rest(reader)
    assert (answer[:12], app.bodies) == (b"HTTP/1.1 204", [PIECE * 20])


async def test_many_requests_on_one_connection_have_a_head_each() -> None:
    app = App()
    request = b"GET / HTTP/1.1\r\nhost: h\r\nx-a: " + PIECE + b"\r\n"
    async with serving(app) as (reader, writer):
        for _ in range(20):
            writer.write(request + b"\r\n")
            await reader.readuntil(b"\r\n\r\n")
        writer.write(request + b"connection: close\r\n\r\n")
        answer = await rest(reader)
    assert (answer[:12], len(app.bodies)) == (b"HTTP/1.1 204", 21)


async def test_a_trailer_is_no_header() -> None:
    app = App()
    async with serving(app) as (reader, writer):
        writer.write(HEAD + b"connection: close\r\n\r\n3\r\nabc\r\n0\r\nauthorization: Bearer x\r\n\r\n")
        await rest(reader)
    assert (app.bodies, b"authorization" in dict(app.headers)) == ([b"abc"], False)


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nx-a: "], ids=["nothing", "half a head"])
async def test_a_connection_on_which_nothing_is_served_ends(begun: bytes) -> None:
    app = App()
    async with serving(app, timeout_keep_alive=0) as (reader, writer):
        writer.write(begun)
        answer = await rest(reader)
    assert (answer, app.bodies) == (b"", [])


async def test_a_head_that_trickles_in_has_the_time_of_one_silence() -> None:
    async with serving(App(), timeout_keep_alive=1) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nx: ")
        async with asyncio.TaskGroup() as group:
            ended = group.create_task(rest(reader))
            while not ended.done():
                writer.write(b"y")
                await asyncio.wait({ended}, timeout=0.05)
    assert ended.result() == b""


async def test_a_request_that_is_served_is_not_hurried() -> None:
    app = App()
    async with serving(app) as (_, writer):
        writer.write(HEAD + b"\r\n3\r\nabc\r\n")
        await app.arrived.wait()
        timers = [connection.timeout_keep_alive_task for connection in app.connections()]
    assert timers == [None]


@pytest.mark.parametrize("together", [True, False])
async def test_a_client_that_leaves_is_missed_although_its_next_request_is_here(together: bool) -> None:
    app = Waiting()
    request = b"GET / HTTP/1.1\r\nhost: h\r\n\r\n"
    async with serving(app) as (_, writer):
        writer.write(request * 2 if together else request)
        await app.arrived.wait()
        writer.write(b"" if together else request)
        writer.close()
        await app.left.wait()
    assert app.bodies == []


async def test_requests_that_were_sent_ahead_are_answered_in_turn() -> None:
    app = App()
    request = HEAD + b"\r\n1\r\n%b\r\n0\r\n\r\n"
    async with serving(app) as (reader, writer):
        for number in b"0123456789abcdef":
            writer.write(request % bytes((number,)))
        for _ in range(16):
            await reader.readuntil(b"\r\n\r\n")
    assert b"".join(app.bodies) == b"0123456789abcdef"


async def test_an_idle_connection_ends_with_the_server() -> None:
    app = App()
    async with serving(app) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        assert app.server is not None
        app.server.should_exit = True
        assert await rest(reader) == b""


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nho"], ids=["nothing", "half a head"])
async def test_a_request_that_is_on_its_way_when_the_server_ends_is_served_as_the_last_one(begun: bytes) -> None:
    app = App()
    async with serving(app) as (reader, writer):
        writer.write(begun)
        await comes(lambda: [each._in_head for each in app.connections()] == [bool(begun)])
        (connection,) = app.connections()
        connection.shutdown()
        writer.write(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n".removeprefix(begun))
        answer = await rest(reader)
    assert (answer[:12], len(app.bodies)) == (b"HTTP/1.1 204", 1)


async def test_what_has_arrived_but_was_not_read_when_the_server_ends_is_served() -> None:
    app = App()
    request = b"GET / HTTP/1.1\r\nhost: h\r\n\r\n"
    async with serving(app) as (reader, writer):
        writer.write(request)
        await reader.readuntil(b"\r\n\r\n")
        (connection,) = app.connections()
        writer.write(request)  # reaches the system at once, and the server's loop only with its next round
        connection.shutdown()
        answer = await rest(reader)
    assert (answer[:12], len(app.bodies)) == (b"HTTP/1.1 204", 2)


async def test_a_request_whose_rest_never_comes_does_not_hold_the_server_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "LAST_S", 0.0)
    app = App()
    async with serving(app) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nho")
        await comes(lambda: any(each._in_head for each in app.connections()))
        app.connections()[0].shutdown()
        assert await rest(reader) == b""
