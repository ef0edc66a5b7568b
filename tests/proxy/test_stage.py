"""How a call is handed from one layer to the next."""

from __future__ import annotations

import pytest

from tests.asgi import Message, Receive, Scope, Send, drive, http_scope
from troyproxy.ports import Headers
from troyproxy.proxy.answers import send_json
from troyproxy.proxy.call import Call
from troyproxy.proxy.stage import Stage, straight, told

pytestmark = pytest.mark.anyio


def new_call() -> Call:
    return Call("r", 0.0, 0.0, "/v1/chat/completions")


class Inner(Stage):
    """A layer that is also an app."""

    async def __call__(self, *asked: object) -> None:
        raise AssertionError(f"asked as an app: {asked}")


def test_one_of_ours_is_handed_the_call() -> None:
    inner = Inner()
    assert straight(inner) == inner.serve


def test_a_stage_says_how_it_serves() -> None:
    with pytest.raises(NotImplementedError):
        straight(Inner())(new_call(), {}, None, None)  # type: ignore[arg-type]  # never used


async def test_any_other_app_is_called_as_one() -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)
        await send_json(send, 200, {})

    async def outer(scope: Scope, receive: Receive, send: Send) -> None:
        await straight(app)(new_call(), scope, receive, send)

    scope = http_scope()
    assert ((await drive(outer, scope)).status, seen[0]["path"]) == (200, scope["path"])


def adding(call: Call, headers: Headers) -> list[tuple[bytes, bytes]]:
    """Stand for the edge."""
    return [*headers, (b"x-route", call.route.encode())]


async def test_the_head_of_an_app_that_does_not_ask_the_call_is_completed() -> None:
    call, sent = new_call(), list[Message]()
    call.complete = adding

    async def send(message: Message) -> None:
        sent.append(message)

    await send_json(told(call, send), 201, {})
    assert (call.begun, call.ledger.status, sent[0]["status"]) == (True, 201, 201)
    assert (b"x-route", b"/v1/chat/completions") in sent[0]["headers"]
    assert sent[1]["body"] == b"{}"


def test_without_an_edge_a_head_is_as_it_is_given() -> None:
    call = new_call()
    assert (call.head(200, ((b"a", b"b"),)), call.ledger.status) == ([(b"a", b"b")], 200)
