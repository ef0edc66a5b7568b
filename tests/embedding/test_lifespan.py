"""Start and stop of an embedded gateway: around the host's, whatever the host makes of its lifespan."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware

from tests.asgi import App, Exchange, Message, Receive, Scope, Send, drive, post
from tests.embedding.hosts import LIFESPAN, ROUTES, UP_AND_DOWN, Wrap, get, live, raw_host, starlette_host
from tests.middleware.apps import ask
from troyproxy import TroyProxy, create_app
from troyproxy.app import Wiring
from troyproxy.settings.load import load

pytestmark = pytest.mark.anyio


def watching(app: TroyProxy, order: list[str]) -> TroyProxy:
    """Write into *order* when the gateway starts and stops."""
    life = app.gateway.life
    start, stop = life.start, life.stop

    async def start_noted() -> None:
        await start()
        order.append("we start")

    async def stop_noted() -> None:
        if app.gateway.life.started:
            order.append("we stop")
        await stop()

    life.start, life.stop = start_noted, stop_noted  # type: ignore[method-assign]
    return app


def host_with_lifespan(order: list[str], *, fails: bool = False) -> App:
    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        del app
        order.append("the host starts")
        if fails:
            raise RuntimeError("the host cannot start")
        yield
        order.append("the host stops")

    return Starlette(routes=ROUTES, lifespan=lifespan)


async def test_our_start_and_stop_are_around_the_hosts(wrap: Wrap) -> None:
    order: list[str] = []
    app = watching(wrap(host_with_lifespan(order)), order)
    exchange = await drive(app, LIFESPAN, UP_AND_DOWN)
    assert order == ["we start", "the host starts", "the host stops", "we stop"]
    assert [message["type"] for message in exchange.sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


async def test_a_host_that_cannot_start_stops_us(wrap: Wrap) -> None:
    order: list[str] = []
    app = watching(wrap(host_with_lifespan(order, fails=True)), order)
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "lifespan.startup"}

    async def send(message: Message) -> None:
        sent.append(message)

    with pytest.raises(RuntimeError, match="the host cannot start"):
        await app(LIFESPAN, receive, send)
    assert order[:3] == ["we start", "the host starts", "we stop"]
    assert ([message["type"] for message in sent], app.gateway.life.started) == (["lifespan.startup.failed"], False)


async def silent_host(scope: Scope, receive: Receive, send: Send) -> None:
    del receive, send
    assert scope["type"] in {"lifespan", "http"}


async def curious_host(scope: Scope, receive: Receive, send: Send) -> None:
    del send
    message = await receive()
    if scope["type"] == "lifespan":
        raise KeyError(message["type"])


@pytest.mark.parametrize("host", [raw_host, silent_host, curious_host])
async def test_a_host_that_knows_no_lifespan_leaves_us_ours(host: App, wrap: Wrap) -> None:
    order: list[str] = []
    exchange = await drive(watching(wrap(host), order), LIFESPAN, UP_AND_DOWN)
    assert order == ["we start", "we stop"]
    assert [message["type"] for message in exchange.sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


async def hasty_host(scope: Scope, receive: Receive, send: Send) -> None:
    del scope
    await receive()
    await send({"type": "lifespan.startup.complete"})


async def test_a_host_that_starts_and_is_not_heard_of_again_leaves_us_our_stop(wrap: Wrap) -> None:
    order: list[str] = []
    exchange = await drive(watching(wrap(hasty_host), order), LIFESPAN, UP_AND_DOWN)
    assert order == ["we start", "we stop"]
    assert [message["type"] for message in exchange.sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


async def test_a_host_that_breaks_after_its_start_stops_us_and_is_heard(wrap: Wrap) -> None:
    async def breaking(scope: Scope, receive: Receive, send: Send) -> None:
        await hasty_host(scope, receive, send)
        raise OSError("the host broke")

    app = wrap(breaking)
    with pytest.raises(OSError, match="the host broke"):
        await drive(app, LIFESPAN, UP_AND_DOWN)
    assert not app.gateway.life.started


async def test_a_host_without_lifespan_that_took_the_shutdown_ends_with_it(wrap: Wrap) -> None:
    async def draining(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, send
        await receive()
        await receive()

    app = wrap(draining)
    exchange = await drive(app, LIFESPAN, [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    assert [message["type"] for message in exchange.sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


async def test_what_such_a_host_raised_is_logged(wrap: Wrap, caplog: pytest.LogCaptureFixture) -> None:
    await drive(wrap(curious_host), LIFESPAN, UP_AND_DOWN)
    assert "the host does not take part in the lifespan (KeyError: 'lifespan.startup')" in caplog.text


async def broken_database(app: App) -> list[Message]:
    return (await drive(app, LIFESPAN, [{"type": "lifespan.startup"}])).sent


async def test_a_wrong_configuration_fails_the_startup_and_the_host_is_never_called(tmp_path: Path, wrap: Wrap) -> None:
    (tmp_path / "no.db").write_bytes(b"this is no database at all" * 100)
    order: list[str] = []
    settings = {"database_url": f"sqlite+aiosqlite:///{tmp_path}/no.db", "admin_token": "t" * 32}
    [failed] = await broken_database(wrap(host_with_lifespan(order), settings=settings))
    assert (failed["type"], "no.db" in failed["message"], order) == ("lifespan.startup.failed", True, [])


async def test_a_gateway_alone_starts_and_stops(options: dict[str, object]) -> None:
    gateway = create_app(load({f"TROY_{name.upper()}": str(value) for name, value in options.items()}))
    exchange = await drive(gateway, LIFESPAN, UP_AND_DOWN)
    assert [message["type"] for message in exchange.sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


async def test_a_scope_that_nobody_knows_is_left_alone(options: dict[str, object]) -> None:
    gateway = create_app(load({f"TROY_{name.upper()}": str(value) for name, value in options.items()}))
    assert (await drive(gateway, {"type": "something.new"})).order == []


async def test_a_gateway_alone_fails_its_startup_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_bytes(b"this is no database at all" * 100)
    env = {"TROY_DATABASE_URL": f"sqlite+aiosqlite:///{tmp_path}/no.db", "TROY_ADMIN_TOKEN": "t" * 32}
    [failed] = await broken_database(create_app(load(env)))
    assert failed["type"] == "lifespan.startup.failed"


async def test_as_starlette_middleware_it_starts_with_the_host(options: dict[str, object]) -> None:
    middleware = Middleware(TroyProxy, auth="off", settings=options, wiring=Wiring(demo=True))
    app = Starlette(routes=ROUTES, middleware=[middleware])
    answered: list[Exchange] = []

    async def meanwhile(message: Message) -> None:
        if message["type"] == "lifespan.startup.complete":
            answered.extend((await post(app, ask(model="demo")), await get(app, "/hello")))

    await live(app, meanwhile)
    assert [exchange.status for exchange in answered] == [200, 200]
    assert [exchange.header("x-troy-combo") for exchange in answered] == ["demo", None]


def test_a_gateway_starts_again_on_another_event_loop(tmp_path: Path, wrap: Wrap) -> None:
    app = wrap(raw_host)

    async def once() -> None:
        async with app.gateway:
            await post(app, ask(model="demo"))

    for _ in range(2):
        asyncio.run(once())
    with sqlite3.connect(tmp_path / "troy.db") as database:
        rows = database.execute("select count(*) from usage_rows").fetchone()
    database.close()
    assert rows == (2,)


async def test_nothing_is_logged_of_a_quiet_start_and_stop(wrap: Wrap, caplog: pytest.LogCaptureFixture) -> None:
    await drive(wrap(starlette_host()), LIFESPAN, UP_AND_DOWN)
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []
