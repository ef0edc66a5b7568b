"""An answer that goes on: sent part by part, ended with its reader, closed whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager

import pytest

from tests.asgi import DISCONNECT, AfterSent, App, Exchange, drive, http_scope
from troyproxy.api.flow import Flow, send_flow

pytestmark = pytest.mark.anyio


class Source:
    """Parts, and what became of them."""

    def __init__(self, *parts: bytes, for_ever: bool = False, broken: bool = False) -> None:
        self._parts, self._for_ever, self._broken = parts, for_ever, broken
        self.asked = 0
        self.state: list[str] = []

    @contextmanager
    def held(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.state.append("left")

    async def parts(self) -> AsyncGenerator[bytes, None]:
        try:
            for part in self._parts:
                self.asked += 1
                yield part
            if self._broken:
                raise RuntimeError("a bug")
            while self._for_ever:
                await asyncio.sleep(0)
                yield b""
        finally:
            self.state.append("closed")

    def app(self) -> App:
        async def app(scope: object, receive: object, send: object) -> None:
            await send_flow(scope, receive, send, Flow(self.parts(), self.held()))  # type: ignore[arg-type]

        return app


async def ask(source: Source, *script: object, method: str = "GET") -> Exchange:
    return await drive(source.app(), http_scope("/api/events", method=method), script)  # type: ignore[arg-type]


async def test_parts_are_sent_one_by_one_and_empty_ones_are_not() -> None:
    exchange = await ask(Source(b"a", b"", b"b"))
    assert exchange.chunks == [b"a", b"b", b""]


async def test_no_cache_and_no_proxy_may_hold_it_back() -> None:
    exchange = await ask(Source())
    headers = [exchange.header(name) for name in ("content-type", "cache-control", "x-accel-buffering")]
    assert headers == ["text/event-stream", "no-store", "no"]


async def test_a_head_gets_the_head_and_asks_for_nothing() -> None:
    source = Source(b"a")
    exchange = await ask(source, method="HEAD")
    assert (exchange.status, exchange.body, source.asked) == (200, b"", 0)
    assert source.state == ["left"]


async def test_it_ends_when_the_reader_has_left() -> None:
    source = Source(b"a", for_ever=True)
    exchange = await ask(source, {"type": "http.request", "body": b""}, AfterSent(2), DISCONNECT)
    assert (exchange.body, source.state) == (b"a", ["closed", "left"])


async def test_a_bug_on_the_way_closes_it_too() -> None:
    source = Source(b"a", broken=True)
    with pytest.raises(ExceptionGroup):
        await ask(source)
    assert source.state == ["closed", "left"]


async def test_a_cancellation_closes_it_too() -> None:
    source = Source(b"a", for_ever=True)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await ask(source)
    assert source.state == ["closed", "left"]
