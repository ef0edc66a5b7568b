"""``GET /api/events``: what happens, as it happens; who watches slows nobody and ends with the process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.api.house import House
from tests.asgi import DISCONNECT, Exchange, When, drive, http_scope
from tests.fakes import FakeClock, settle
from troyproxy.api.admin import events
from troyproxy.api.admin.events import KEEPALIVE, KEEPALIVE_S, Stream, framed
from troyproxy.telemetry.live import Live
from troyproxy.wire.sse import FrameDecoder

pytestmark = pytest.mark.anyio


def told(body: bytes) -> list[tuple[str, Any]]:
    """Return name and data of every event."""
    frames = [frame for frame in FrameDecoder().feed(body, last=True) if frame.data is not None]
    return [((frame.event or b"").decode(), json.loads(frame.data or b"")) for frame in frames]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has left is noticed soon."""
    monkeypatch.setattr(events, "TICK_S", 0.01)


async def watch(house: House, act: Callable[[], Awaitable[object]], query: str = "") -> Exchange:
    """Watch while *act* is done, then leave."""
    scope = http_scope("/api/events", method="GET", headers=house.headers, query=query.encode())
    done = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(drive(house.app, scope, [When(done), DISCONNECT]))
        await settle()
        await act()
        await settle()
        done.set()
    return watching.result()


async def nothing() -> None:
    """Do nothing."""


async def test_the_first_event_names_the_process(house: House) -> None:
    answer = await house.ask("GET", "/api/events?seconds=0")
    [(name, facts)] = told(answer.body)
    assert (answer.status, name, facts["worker"]["name"]) == (200, "hello", "main")


async def test_a_failover_is_seen_while_it_happens(house: House) -> None:
    answer = await watch(house, lambda: house.chat("demo"))
    seen = told(answer.body)
    assert [name for name, _ in seen] == ["hello", "attempt", "cooldown", "attempt", "request"]
    request = seen[-1][1]
    assert (request["outcome"], request["attempts"], request["combo"]) == ("ok", 2, "demo")


async def test_only_the_kinds_that_are_asked_for_come(house: House) -> None:
    answer = await watch(house, lambda: house.chat("demo"), "kinds=request")
    assert [name for name, _ in told(answer.body)] == ["hello", "request"]


async def test_a_change_of_the_configuration_is_an_event(house: House) -> None:
    answer = await watch(house, lambda: house.post("/api/config/reload", None), "kinds=config,cleared")
    assert [name for name, _ in told(answer.body)] == ["hello", "config"]


async def test_neither_key_nor_text_nor_secret_is_in_an_event(house: House) -> None:
    messages = [{"role": "user", "content": "a very private matter"}]
    answer = await watch(house, lambda: house.chat("demo", messages=messages))
    secrets = (b"private matter", b"client-key", b"alpha-secret", house.headers["authorization"][7:].encode())
    assert [secret for secret in secrets if secret in answer.body] == []


@pytest.mark.parametrize("query", ["kinds=", "kinds=request,nothing", "seconds=-1", "seconds=x", "since=1"])
async def test_a_query_with_a_mistake_is_refused(house: House, query: str) -> None:
    assert (await house.ask("GET", f"/api/events?{query}")).status == 422


async def test_who_has_left_is_forgotten(house: House) -> None:
    await watch(house, nothing)
    assert len(house.services.live) == 0


async def test_a_head_leaves_no_watcher_behind(house: House) -> None:
    answer = await house.ask("HEAD", "/api/events")
    assert (answer.status, answer.body, len(house.services.live)) == (200, b"", 0)


async def test_too_many_watchers_are_told_to_come_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(house.services.live, "_most", 0)
    answer = await house.ask("GET", "/api/events")
    assert (answer.status, answer.header("retry-after")) == (429, "5")


async def test_the_stream_ends_with_the_process(house: House) -> None:
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(house.ask("GET", "/api/events"))
        await settle()
        house.gateway.life.stop_soon()
    assert [name for name, _ in told(watching.result().body)] == ["hello", "end"]


@pytest.fixture
def live(clock: FakeClock) -> Live:
    return Live(clock, queued=2)


async def test_what_a_slow_reader_missed_is_said_before_what_follows(live: Live, clock: FakeClock) -> None:
    with live.watch() as watcher:
        parts = Stream(watcher, clock, lambda: False, {}).parts(None)
        await anext(parts)
        for number in range(5):
            live.skipped(f"p{number}", "cooldown")
        lost, *others = told(await anext(parts))
        assert lost[1]["events"] == 3
        assert [(name, facts["provider"]) for name, facts in others] == [("skip", "p3"), ("skip", "p4")]
        await parts.aclose()


async def test_silence_is_kept_alive(live: Live, clock: FakeClock) -> None:
    with live.watch() as watcher:
        parts = Stream(watcher, clock, lambda: False, {}).parts(None)
        await anext(parts)
        quiet = await anext(parts)
        clock.move(KEEPALIVE_S)
        assert (quiet, await anext(parts), await anext(parts)) == (b"", KEEPALIVE, b"")
        await parts.aclose()


async def test_after_its_time_a_stream_ends_with_what_waits(live: Live, clock: FakeClock) -> None:
    with live.watch() as watcher:
        parts = Stream(watcher, clock, lambda: False, {}).parts(5)
        await anext(parts)
        clock.move(5.0)
        live.skipped("alpha", "cooldown")
        assert [name for part in [each async for each in parts] for name, _ in told(part)] == ["skip"]


def test_an_event_is_one_line_of_json_whatever_is_in_it() -> None:
    part = framed("request", {"model": "a\nb\u2028c\r"}, 7)
    assert part.startswith(b"event: request\nid: 7\ndata: {")
    assert told(part) == [("request", {"model": "a\nb\u2028c\r"})]
