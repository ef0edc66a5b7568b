"""The bridge inside the gateway: how it comes by a body."""

from __future__ import annotations

import pytest

from tests.asgi import Scope, drive, http_scope, request_body
from tests.middleware.apps import DONE, ask
from tests.middleware.test_in_gateway import Endpoint, new_call, streaming
from tests.peers import FakePeer
from troyproxy.middleware.bridge import Bridge
from troyproxy.proxy.call import Call, put_call

pytestmark = pytest.mark.anyio


async def test_the_bridge_fills_the_call() -> None:
    call = new_call()
    body, call.body, call.payload = call.body, b"", {}
    endpoint = Endpoint(call, streaming("alpha", DONE))
    await drive(Bridge(endpoint), put_call(http_scope(), call), request_body(body, cuts=[3]))
    assert (call.body, call.payload) == (body, ask())


def sent_by(peer: FakePeer, call: Call, **headers: str) -> Scope:
    """Return the scope of a request of *peer*, as our own server makes it."""
    call.peer, call.headers = peer, tuple((name.encode(), text.encode()) for name, text in headers.items())
    call.fields = dict(call.headers)
    call.fields = dict(call.headers)
    return put_call(http_scope(), call)


async def test_a_body_that_is_here_is_not_waited_for() -> None:
    call = new_call()
    peer, call.body, call.payload = FakePeer(call.body), b"", {}
    exchange = await drive(Bridge(Endpoint(call, streaming("alpha", DONE))), sent_by(peer, call), [])
    assert (exchange.body, call.payload, "receive http.request" in exchange.order) == (DONE, ask(), False)


@pytest.mark.parametrize(("body", "headers"), [(None, {}), (b"{}", {"content-encoding": "identity"})])
async def test_a_body_that_is_not_here_or_is_packed_is_gathered(body: bytes | None, headers: dict[str, str]) -> None:
    call = new_call()
    whole, call.body = call.body, b""
    scope = sent_by(FakePeer(body, whole), call, **headers)
    await drive(Bridge(Endpoint(call, streaming("alpha", DONE))), scope, [])
    assert call.body == whole


@pytest.mark.parametrize(("limit", "status"), [(3, 413), (100, 400)])
async def test_a_body_that_is_here_is_refused_like_any_other(limit: int, status: int) -> None:
    call = new_call()
    bridged = Bridge(Endpoint(call, streaming("alpha", DONE)), max_body=limit)
    exchange = await drive(bridged, sent_by(FakePeer(b"[no JSON"), call), [])
    assert (exchange.status, call.ledger.refused) == (status, True)


async def test_the_bridge_refuses_and_writes_it_down() -> None:
    call = new_call()
    bridged = Bridge(Endpoint(call, streaming("alpha", DONE)))
    exchange = await drive(bridged, put_call(http_scope(), call), request_body())
    assert (exchange.status, call.ledger.refused, call.ledger.lines) == (400, True, ["refused: 400 invalid_json"])


async def test_the_bridge_notes_a_client_that_left_while_sending() -> None:
    call = new_call()
    endpoint = Endpoint(call, streaming("alpha", DONE))
    exchange = await drive(Bridge(endpoint), put_call(http_scope(), call), [{"type": "http.disconnect"}])
    assert (exchange.sent, call.client_left, endpoint.calls) == ([], True, [])


async def test_the_bridge_passes_what_is_no_call() -> None:
    call = new_call()
    exchange = await drive(Bridge(Endpoint(call, streaming("alpha", DONE))), http_scope())
    assert exchange.body == DONE
