"""The server in this process: what it sets up when it listens, and how a signal reaches it."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime

import pytest

from troyproxy.cli.protocol import Connection
from troyproxy.cli.server import YOUNG, Server
from troyproxy.cli.server_config import ServerConfig
from troyproxy.proxy.answers import Receive, Send, send_json
from troyproxy.proxy.call import Scope

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Give the garbage collector back as it was."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send_json(send, 200, {})


@asynccontextmanager
async def serving(told: list[str]) -> AsyncIterator[tuple[Server, int]]:
    """Serve on loopback; yields the server and its port when it listens, and waits until it has ended."""
    listening = asyncio.Event()

    async def begin() -> None:
        listening.set()

    config = ServerConfig(app, http=Connection, ws="none", lifespan="off", log_config=None)
    server = Server(config, begin, lambda: told.append("stops"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listener]))
            await listening.wait()
            yield server, listener.getsockname()[1]


async def test_a_signal_ends_it_and_is_told_first() -> None:
    told: list[str] = []
    async with serving(told) as (server, _):
        await asyncio.sleep(0)
        server.handle_exit(signal.SIGTERM, None)
    assert (told, server.should_exit, server.force_exit) == (["stops"], True, False)


async def test_a_signal_that_comes_while_it_starts_ends_it_too() -> None:
    told: list[str] = []
    async with serving(told) as (server, _):
        server.handle_exit(signal.SIGINT, None)
    assert told == ["stops"]


async def test_answers_tell_the_date_and_the_collector_waits_for_more_than_a_request_leaves() -> None:
    async with serving([]) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        told = gc.get_threshold()[0]
        writer.close()
        server.handle_exit(signal.SIGTERM, None)
    date = head.partition(b"\r\ndate: ")[2].partition(b"\r\n")[0]
    assert parsedate_to_datetime(date.decode()).year > 2000
    assert told == YOUNG
