"""How a server ends: who comes late is served, and everybody is told to go elsewhere next time."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.asgi import drive, http_scope, request_body
from troyproxy.cli.leaving import Leaving
from troyproxy.cli.server import _not_taken
from troyproxy.proxy.answers import Receive, Send
from troyproxy.proxy.call import Scope

pytestmark = pytest.mark.anyio


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    del scope, receive
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"b")]})
    await send({"type": "http.response.body", "body": b"hello"})


@pytest.mark.parametrize(("stopping", "told"), [(False, None), (True, "close")])
async def test_an_answer_ends_the_connection_only_of_a_server_that_stops(stopping: bool, told: str | None) -> None:
    exchange = await drive(Leaving(hello, lambda: stopping), http_scope("/"), request_body(b""))
    assert (exchange.header("connection"), exchange.header("x-a"), exchange.body) == (told, "b", b"hello")


async def test_the_lifespan_passes() -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        seen.append(scope["type"])
        await send({"type": "lifespan.startup.complete"})

    async def send(message: object) -> None:
        seen.append(str(message))

    await Leaving(app, lambda: True)({"type": "lifespan"}, asyncio.Queue[dict[str, object]]().get, send)  # never asked
    assert seen == ["lifespan", "{'type': 'lifespan.startup.complete'}"]


def test_who_has_connected_but_was_not_taken_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        with socket.create_connection(listener.getsockname()), socket.create_connection(listener.getsockname()):
            found = list(_not_taken(listener))
            assert [connection.getblocking() for connection in found] == [False, False]
            for connection in found:
                connection.close()
