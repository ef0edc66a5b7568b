"""The driver itself: what it lets happen, what it refuses."""

from __future__ import annotations

import asyncio

import pytest

from tests.asgi import DISCONNECT, AfterSent, App, Message, Receive, Scope, Send, drive, http_scope, post, request_body

START: Message = {"type": "http.response.start", "status": 200, "headers": []}


def sends(*messages: Message) -> App:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)

    return app


async def echo(_scope: Scope, receive: Receive, send: Send) -> None:
    more, body = True, b""
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    await send({**START, "headers": [(b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})


async def until_it_leaves(_scope: Scope, receive: Receive, send: Send) -> None:
    await send(START)
    await send({"type": "http.response.body", "body": b"one", "more_body": True})
    while (await receive())["type"] != "http.disconnect":
        pass


@pytest.mark.anyio
async def test_a_body_arrives_in_the_pieces_of_the_script() -> None:
    exchange = await drive(echo, http_scope(), request_body(b"abcdef", cuts=[2, 4]))
    assert exchange.body == b"abcdef"
    assert exchange.order.count("receive http.request") == 3


@pytest.mark.anyio
async def test_json_goes_out_and_comes_back() -> None:
    exchange = await post(echo, {"model": "m"}, x_api_key="k")
    assert (exchange.status, exchange.json()) == (200, {"model": "m"})


@pytest.mark.anyio
async def test_a_client_can_leave_after_what_it_has_seen() -> None:
    exchange = await drive(until_it_leaves, http_scope(), [*request_body(), AfterSent(2), DISCONNECT])
    assert exchange.order[-1] == "receive http.disconnect"


@pytest.mark.anyio
async def test_an_app_that_never_ends_is_a_timeout() -> None:
    with pytest.raises(TimeoutError):
        await drive(until_it_leaves, http_scope(), request_body(), limit_s=0.05)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "messages",
    [
        [{"type": "http.response.body", "body": b""}],
        [START, START],
        [START, {"type": "http.response.body"}, {"type": "http.response.body"}],
        [{**START, "headers": [(b"Upper", b"x")]}],
        [{**START, "headers": [(b"a", b"x\r\nb: y")]}],
        [{**START, "headers": [("a", b"x")]}],
        [{**START, "headers": [(b"content-length", b"3")]}, {"type": "http.response.body", "body": b"four"}],
        [{**START, "headers": [(b"content-length", b"3")]}, {"type": "http.response.body", "body": b"tw"}],
        [START, {"type": "http.response.body", "body": "text"}],
        [{"type": "http.response.trailers"}],
    ],
)
async def test_a_wrong_sequence_fails(messages: list[Message]) -> None:
    with pytest.raises(AssertionError):
        await drive(sends(*messages), http_scope())


@pytest.mark.anyio
async def test_the_event_loop_is_asyncio() -> None:
    assert asyncio.get_running_loop().is_running()
