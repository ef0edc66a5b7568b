"""The gateway's parts one by one, in this process: each alone, around an app that does nothing.

    python -m tests.bench.layers

Processor time, the best of the rounds. A layer that stands alone reads and decodes the body itself, which the gateway
does once for all of them. About ten seconds.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Final

import uvloop
from msgspec.structs import replace

from tests.asgi import App, Message, Receive, Scope, Send
from tests.bench.figures import Layer
from tests.bench.inprocess import whole_gateway
from tests.bench.rows import request as usage_row
from tests.bench.shapes import DONE, FIRST, LAST, moment, request
from tests.fakes import FakeClock
from tests.proxy.auto_desk import AutoDesk
from tests.proxy.rig import provider
from troyproxy.catalog.combos import Combo, Member
from troyproxy.middleware.auth_guard import AuthGuard
from troyproxy.middleware.preflight import Preflight
from troyproxy.middleware.tool_leak_guard import ToolLeakGuard
from troyproxy.middleware.usage_injector import UsageInjector
from troyproxy.store import migrations
from troyproxy.store.batches import inserting
from troyproxy.store.daily import Grouping
from troyproxy.store.database import Database, parse_url
from troyproxy.store.tables import USAGE_ROWS
from troyproxy.telemetry.labels import Labels
from troyproxy.telemetry.metrics import Metrics
from troyproxy.wire.sse import FrameDecoder

EVENTS: Final = 500
BATCH: Final = 100
KEY: Final = "sk-one-two-three-four-five-six"
MOMENTS: Final = [moment(at, 0.0) for at in range(EVENTS)]
Work = Callable[[], Awaitable[object]]


async def _best_us(work: Work, each: int, rounds: int, count: int = 20) -> float:
    """Return the microseconds of one of the *each* things that *work* does."""
    times = []
    await work()
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(count):
            await work()
        times.append((time.process_time() - began) / count)
    return min(times) / each * 1e6


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


def _streaming(events: list[bytes]) -> App:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for event in (FIRST, *events, LAST):
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": DONE})

    return app


def _calling(app: App, body: bytes, times: int = 1) -> Work:
    """Return what calls *app* with *body*."""
    headers = [(b"content-type", b"application/json"), (b"authorization", b"Bearer " + KEY.encode())]
    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "root_path": "", "headers": headers}

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        pass

    async def work() -> None:
        for _ in range(times):
            await app(dict(scope), receive, send)

    return work


async def _alone(rounds: int) -> list[Layer]:
    small, streamed = request("fast"), request("fast", stream=True, tools=True)
    bare = await _best_us(_calling(_nothing, small, 100), 100, rounds)
    auth = await _best_us(_calling(AuthGuard(_nothing, {"one": KEY}), small, 100), 100, rounds)
    preflight = await _best_us(_calling(Preflight(_nothing), small, 100), 100, rounds)
    found = [Layer("AuthGuard", auth - bare), Layer("Preflight: read, decode, needs", preflight - bare)]
    for layer in (ToolLeakGuard, UsageInjector):
        many = await _best_us(_calling(layer(_streaming(MOMENTS)), streamed), EVENTS, rounds)
        none = await _best_us(_calling(layer(_streaming([])), streamed), EVENTS, rounds)
        found.append(Layer(f"{layer.__name__}: an event", many - none))
    return found


async def _plan(rounds: int) -> Layer:
    members = (Member(model="alpha/m1"), Member(model="beta/m1"))
    desk = AutoDesk(FakeClock(), provider("alpha"), provider("beta"), Combo("main", "main", members=members))

    async def work() -> None:
        for call in calls:
            desk.planner.plan(call)

    calls = [desk.call("main") for _ in range(200)]
    return Layer("planner: a combo of two", await _best_us(work, len(calls), rounds, 1))


async def _framing(rounds: int) -> Layer:
    async def work() -> None:
        decoder = FrameDecoder()
        for event in MOMENTS:
            decoder.feed(event)

    return Layer("SSE framing: an event", await _best_us(work, EVENTS, rounds))


async def _metrics(rounds: int) -> Layer:
    models = {f"provider-{at}": [f"model-{number}" for number in range(40)] for at in range(8)}
    metrics, rows = Metrics(Labels(lambda: models, lambda: ("combo-1",))), [usage_row(at) for at in range(40)]

    async def work() -> None:
        for row in rows:
            metrics.request_started()
            for attempt in row.attempts:
                metrics.attempt_finished(attempt)
            metrics.request_finished(row)

    return Layer("metrics: a request", await _best_us(work, len(rows), rounds))


async def _writer(rounds: int) -> Layer:
    with tempfile.TemporaryDirectory() as folder:
        database, grouping, numbers = Database(parse_url(f"sqlite:///{folder}/rows.db")), Grouping(), iter(range(10**9))
        await migrations.upgrade(str(database.url))

        async def write() -> None:
            batch = [replace(usage_row(next(numbers)), at=1.8e9) for _ in range(BATCH)]
            await database.insert(inserting({USAGE_ROWS: batch}, grouping))

        found = await _best_us(write, BATCH, rounds, 3)
        await database.close()
    return Layer(f"usage row: written with {BATCH - 1} others", found)


async def layers(rounds: int) -> list[Layer]:
    """Return what each part costs; the best of *rounds*."""
    single = [await part(rounds) for part in (_plan, _framing, _metrics, _writer)]
    return [*await whole_gateway(rounds), *await _alone(rounds), *single]


def main() -> None:
    """Measure and print."""
    for layer in uvloop.run(layers(5)):
        calls = "" if layer.calls is None else f"{layer.calls:>9,.0f} calls"
        sys.stdout.write(f"{layer.what:<40}{layer.us:>9.2f} µs{calls}\n")


if __name__ == "__main__":
    main()
