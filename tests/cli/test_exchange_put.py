"""A part that is put is written as one that is sent."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tests.cli.test_exchange import FLOW, GET, MORE, OK, POST, Desk, Told, settled
from troyproxy.cli.exchange import Exchange
from troyproxy.proxy.answers import Message

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("uvicorn_heard")]
END: Message = {"type": "http.response.body"}
HEAD = b"HEAD / HTTP/1.1\r\nhost: h\r\n\r\n"
OLD = b"GET / HTTP/1.0\r\nhost: h\r\n\r\n"


def _writes(head: Message, *, put: bool, first: bool) -> Desk:
    """An app that begins with *head* and goes on by one part, which may be the *first*."""

    async def act(told: Told) -> None:
        await told.send(head)
        if not first:
            await told.send({**MORE, "body": b""})
            await asyncio.sleep(0)
        if put:
            told.peer.put(b"hi")
        else:
            await told.send(MORE)
        await told.send(END)

    return Desk(act)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("head", [FLOW, OK])
@pytest.mark.parametrize("request_", [GET, HEAD, OLD])
async def test_it_is_framed_as_any_other(request_: bytes, head: Message, first: bool) -> None:
    written = [await _writes(head, put=put, first=first).gets(request_) for put in (True, False)]
    assert written[0] == written[1]
    assert (b"hi" in b"".join(written[0])) is (request_ is not HEAD)


async def test_more_than_was_announced_is_refused() -> None:
    async def act(told: Told) -> None:
        await told.send(OK)
        with pytest.raises(RuntimeError, match="longer than Content-Length"):
            told.peer.put(b"hello")
        told.peer.put(b"hi")
        await told.send(END)

    assert (await Desk(act).gets(GET))[-1].endswith(b"hi")


async def test_nothing_is_put_to_a_client_that_has_left() -> None:
    async def act(told: Told) -> None:
        await told.send(FLOW)
        await told.send(MORE)
        while (await told.receive())["type"] != "http.disconnect":
            pass
        told.peer.put(b"late")

    desk = Desk(act)
    await desk.gets(POST + b"\r\nbody")
    desk.connection.connection_lost(None)
    await settled()
    assert b"late" not in b"".join(desk.transport.writes)


async def test_a_send_is_owned_by_whom_the_app_got_it_from() -> None:
    async def act(told: Told) -> None:
        owned = [told.peer.owns(send) for send in (told.send, partial(told.send))]
        assert (owned, isinstance(told.peer, Exchange)) == ([True, False], True)
        await told.send(OK)
        await told.send({**END, "body": b"hi"})

    assert (await Desk(act).gets(GET))[-1].endswith(b"hi")
