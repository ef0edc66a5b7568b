"""AuthGuard behind a real server: a refused request whose body stays unread does not spoil its connection (AU-01)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn

from tests.middleware.apps import RawApp, ask
from troyproxy import AuthGuard
from troyproxy.wire import json

pytestmark = pytest.mark.anyio

SECRET = "a-secret-of-enough-bytes"


@asynccontextmanager
async def serving(app: RawApp, http: str) -> AsyncIterator[int]:
    """Serve a guarded *app* on loopback and yield the port."""
    config = uvicorn.Config(AuthGuard(app, keys={"ci": SECRET}), http=http, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listener]))
            try:
                yield listener.getsockname()[1]
            finally:
                server.should_exit = True


def request(key: bytes, body: bytes) -> bytes:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\nauthorization: "
    return head + key + b"\r\ncontent-length: " + str(len(body)).encode() + b"\r\n\r\n" + body


async def answer(reader: asyncio.StreamReader) -> int:
    """Read one answer and return its status."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
    await reader.readexactly(int(fields.get(b"content-length", b"2")))
    return int(head.split(b" ")[1])


@pytest.mark.parametrize("http", ["h11", "httptools"])
@pytest.mark.parametrize("key", [b"Bearer caf\xe9", b"Bearer", b"", "Bearer \u201cx\u201d".encode()])
async def test_the_next_request_on_the_connection_works(key: bytes, http: str) -> None:
    app = RawApp(headers=[(b"content-type", b"application/json"), (b"content-length", b"2")])
    large = json.encode(ask(padding="x" * (1 << 20)))
    async with serving(app, http) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request(key, large))
        refused = await answer(reader)
        writer.write(request(b"Bearer " + SECRET.encode(), json.encode(ask())))
        accepted = await answer(reader)
        writer.close()
        await writer.wait_closed()
    assert (refused, accepted, app.bodies) == (401, 200, [json.encode(ask())])
