from __future__ import annotations

import pytest

from tests.asgi import Exchange, Receive, Scope, Send, drive, http_scope
from troyproxy.errors import MethodNotAllowed, RateLimited, TroyError
from troyproxy.proxy.answers import send_bytes, send_error, send_json

pytestmark = pytest.mark.anyio


async def _error(error: TroyError, **headers: str) -> Exchange:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send_error(send, error, headers)

    return await drive(app, http_scope(), limit_s=1e6)


async def test_an_error_is_answered_in_the_envelope() -> None:
    exchange = await _error(MethodNotAllowed("no", allow=["GET", "POST"]))
    assert (exchange.status, exchange.json()["error"]["code"]) == (405, "method_not_allowed")


async def test_an_error_brings_its_headers_and_those_given() -> None:
    exchange = await _error(RateLimited("slow", retry_after_s=1.2), x="y")
    assert (exchange.header("retry-after"), exchange.header("x")) == ("2", "y")


async def test_no_cache_keeps_an_answer() -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send_json(send, 201, {"a": 1})

    exchange = await drive(app, http_scope(), limit_s=1e6)
    assert (exchange.header("cache-control"), exchange.header("content-length"), exchange.body) == (
        "no-store",
        "7",
        b'{"a":1}',
    )


async def test_bytes_go_out_as_they_are() -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send_bytes(send, 200, b"\x00\xff", {"content-type": "x/y"})

    exchange = await drive(app, http_scope(), limit_s=1e6)
    assert (exchange.body, exchange.header("content-type")) == (b"\x00\xff", "x/y")
