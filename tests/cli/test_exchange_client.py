"""The client of one request on a connection: its body, its leaving, and that it does not read."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from uvicorn.server import ServerState

from tests.cli.test_exchange import (
    FLOW,
    GET,
    HEAD,
    HI,
    MORE,
    OK,
    POST,
    Desk,
    Told,
    Transport,
    nothing,
    sending,
    settled,
    until_it_leaves,
)
from troyproxy.cli import line
from troyproxy.cli.protocol import Connection
from troyproxy.cli.reading import MAX_BODY
from troyproxy.cli.server_config import ServerConfig
from troyproxy.proxy.answers import Receive, Send
from troyproxy.proxy.call import Scope

pytestmark = pytest.mark.anyio


async def bodies_of(desk: Desk, *data: bytes) -> list[Any]:
    """Return the messages that an app receives until the body is over, or until it waits."""
    got: list[Any] = []

    async def act(told: Told) -> None:
        while not got or got[-1].get("more_body"):
            got.append(await told.receive())
        await sending(OK, HI)(told)

    desk.act = act
    await desk.gets(*data)
    return [(message["body"], message["more_body"]) for message in got]


async def test_a_body_comes_in_the_pieces_in_which_it_arrives() -> None:
    pieces = await bodies_of(Desk(nothing), POST + b"\r\n", b"ab", b"cd")
    assert (b"".join(body for body, _ in pieces), pieces[-1][1]) == (b"abcd", False)


async def test_pieces_that_arrive_together_are_one_message() -> None:
    chunked = b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n"
    assert await bodies_of(Desk(nothing), chunked) == [(b"abc", False)]


async def test_more_of_a_body_than_anybody_asks_for_is_not_read() -> None:
    async def act(told: Told) -> None:
        await asyncio.Event().wait()
        del told

    desk = Desk(act)
    await desk.gets(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 99999999\r\n\r\n", b"x" * (MAX_BODY + 1))
    reading = desk.transport.reading
    for task in desk.state.tasks:
        task.cancel()
    await settled()
    assert not reading


async def test_a_body_that_is_all_here_is_taken_at_once() -> None:
    taken: list[bytes | None] = []

    async def act(told: Told) -> None:
        taken.extend((told.peer.take_body(), told.peer.take_body()))
        await sending(OK, HI)(told)

    await Desk(act).gets(POST + b"\r\nabcd")
    assert taken == [b"abcd", None]


async def test_a_body_of_which_something_is_missing_is_to_be_received() -> None:
    taken: list[bytes | None] = []

    async def act(told: Told) -> None:
        taken.append(told.peer.take_body())
        taken.append((await told.receive())["body"])
        await sending(OK, HI)(told)

    await Desk(act).gets(POST + b"\r\nab")
    assert taken == [None, b"ab"]


async def test_what_the_system_has_not_taken_of_an_answer_is_unsent() -> None:
    unsent: list[int] = []
    desk = Desk(nothing)

    async def act(told: Told) -> None:
        for desk.transport.unsent in (0, 7):
            unsent.append(told.peer.unsent)
        await sending(OK, HI)(told)

    desk.act = act
    await desk.gets(POST + b"\r\nabcd")
    assert unsent == [0, 7]


async def test_a_client_that_waits_to_be_told_is_told_to_go_on() -> None:
    desk = Desk(nothing)
    bodies = await bodies_of(desk, POST + b"expect: 100-continue\r\n\r\n", b"abcd")
    assert (bodies, desk.transport.writes) == ([(b"abcd", False)], [b"HTTP/1.1 100 Continue\r\n\r\n", HEAD + b"hi"])


async def test_a_client_whose_request_is_refused_by_its_head_is_not_told_to_go_on() -> None:
    assert await Desk(sending(OK, HI)).gets(POST + b"expect: 100-continue\r\n\r\n") == [HEAD + b"hi"]


async def test_two_that_listen_both_hear_of_the_end() -> None:
    heard: list[str] = []

    async def act(told: Told) -> None:
        await told.receive()

        async def listen() -> None:
            heard.append((await told.receive())["type"])

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(listen())
            tasks.create_task(listen())
            await settled()
            await sending(OK, HI)(told)

    await Desk(act).gets(GET)
    await settled()
    assert heard == ["http.disconnect"] * 2


async def left(act: Callable[[Told, Callable[[], None]], Awaitable[None]]) -> list[str]:
    """Return how often a watcher was called, of a client that leaves while *act* waits."""
    calls: list[str] = []

    async def watching(told: Told) -> None:
        await act(told, lambda: calls.append("left"))

    desk = Desk(watching)
    await desk.gets(GET)
    desk.connection.connection_lost(None)
    await settled()
    return calls


async def test_who_watches_is_told_once_of_a_leaving() -> None:
    async def act(told: Told, callback: Callable[[], None]) -> None:
        told.peer.watch(callback)
        await until_it_leaves(told)

    assert await left(act) == ["left"]


async def test_who_does_not_watch_any_more_is_not_told() -> None:
    async def act(told: Told, callback: Callable[[], None]) -> None:
        told.peer.watch(callback)
        told.peer.unwatch()
        await until_it_leaves(told)

    assert await left(act) == []


async def test_a_leaving_after_the_answer_is_none() -> None:
    async def act(told: Told, callback: Callable[[], None]) -> None:
        told.peer.watch(callback)
        await sending(OK, HI)(told)

    assert await left(act) == []


async def test_who_watches_too_late_is_told_by_the_loop() -> None:
    order: list[str] = []

    async def act(told: Told, callback: Callable[[], None]) -> None:
        def heard() -> None:
            order.append("told")
            callback()

        await until_it_leaves(told)
        told.peer.watch(heard)
        order.append("watched")

    assert (await left(act), order) == (["left"], ["watched", "told"])


async def test_an_answer_waits_for_a_client_that_does_not_read() -> None:
    paused: list[bool] = []

    async def act(told: Told) -> None:
        await told.send(FLOW)
        await told.send(MORE)
        desk.connection.pause_writing()
        paused.append(told.peer.paused)
        await told.send(MORE)
        paused.append(told.peer.paused)
        await told.send(HI)

    desk = Desk(act)
    stuck = len(await desk.gets(GET))
    desk.connection.resume_writing()
    await settled()
    assert (stuck, len(desk.transport.writes), paused) == (1, 3, [True, False])


async def test_a_client_that_does_not_read_and_leaves_holds_nothing_up() -> None:
    async def act(told: Told) -> None:
        await told.send(FLOW)
        desk.connection.pause_writing()
        await told.send(MORE)

    desk = Desk(act)
    await desk.gets(GET)
    desk.connection.connection_lost(None)
    await settled()
    assert desk.state.tasks == set()


async def test_nothing_of_a_request_waits_for_the_collector() -> None:
    kept: list[weakref.ref[Any]] = []

    class Thing:
        pass

    async def act(told: Told) -> None:
        told.scope["thing"] = thing = Thing()
        kept.append(weakref.ref(thing))
        await sending(OK, HI)(told)

    desk = Desk(act)
    gc.disable()
    try:
        await desk.gets(GET)
        desk.told.clear()
        await settled()
        assert [each() for each in kept] == [None]
    finally:
        gc.enable()


@pytest.mark.parametrize("known", [line.Lowered(), line.Names()])
def test_the_names_that_are_kept_are_bounded(known: dict[bytes, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "MANY", 3)
    assert known[b"A" * (line.LONG + 1)][:2] == b"aa"
    for number in range(10):
        assert known[b"X-%d" % number][:3] == b"x-%d" % number
    assert len(known) <= 3


@pytest.mark.parametrize(
    ("peer", "headers", "client"),
    [
        ("127.0.0.1", b"x-forwarded-for: 10.1.2.3\r\nx-forwarded-proto: https\r\n", ("10.1.2.3", 0)),
        ("127.0.0.1", b"", ("127.0.0.1", 1)),
        ("192.0.2.1", b"x-forwarded-for: 10.1.2.3\r\n", ("192.0.2.1", 1)),
    ],
)
async def test_only_a_trusted_proxy_says_who_the_client_is(peer: str, headers: bytes, client: tuple[str, int]) -> None:
    desk = Desk(sending(OK, HI), {"proxy_headers": True, "forwarded_allow_ips": "127.0.0.1"})
    desk.connection.client = (peer, 1)
    await desk.gets(b"GET / HTTP/1.1\r\nhost: h\r\n" + headers + b"\r\n")
    scope = desk.told[0].scope
    assert (scope["client"], scope["scheme"]) == (client, "https" if b"proto" in headers else "http")


async def test_requests_can_go_past_what_tells_them_from_a_lifespan() -> None:
    seen: list[tuple[str, int]] = []

    async def shortcut(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["client"])
        await sending(OK, HI)(Told(scope, receive, send))

    config = ServerConfig(cast("Any", nothing), interface="asgi3", log_config=None, ws="none", lifespan="off")
    config.requests = shortcut
    connection, transport = Connection(config, ServerState(), {}), Transport()
    connection.connection_made(transport)
    for headers in (b"", b"x-forwarded-for: 192.0.2.7\r\n"):
        connection.data_received(b"GET / HTTP/1.1\r\nhost: h\r\n" + headers + b"\r\n")
        await settled()
    assert (transport.writes, seen) == ([HEAD + b"hi"] * 2, [("127.0.0.1", 1), ("192.0.2.7", 0)])
