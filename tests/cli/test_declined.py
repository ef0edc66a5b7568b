"""Requests that offer another protocol are read to their end, wherever the network cuts them."""

from __future__ import annotations

import pytest

from tests.cli.test_exchange import Act, Desk, Told

pytestmark = pytest.mark.anyio

OFFER = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAA\r\n"
BODY = b"GET /smuggled HTTP/1.1\r\nhost: h\r\n\r\n"
POST = b"POST /first HTTP/1.1\r\nhost: h\r\n" + OFFER
SIZED = POST + b"content-length: %d\r\n\r\n%b" % (len(BODY), BODY)
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\nx: y\r\n\r\n" % (len(BODY), BODY)
NEXT = b"GET /next HTTP/1.1\r\nhost: h\r\n\r\n"
WITHOUT = b"GET /bare HTTP/1.1\r\nhost: h\r\n%b\r\n" % OFFER


def reading(bodies: list[tuple[str, bytes]]) -> Act:
    async def act(told: Told) -> None:
        body, more = b"", True
        while more:
            message = await told.receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        bodies.append((told.scope["path"], body))
        await told.send({"type": "http.response.start", "status": 204, "headers": []})
        await told.send({"type": "http.response.body"})

    return act


@pytest.mark.parametrize("request_", [SIZED, CHUNKED])
@pytest.mark.parametrize("size", [1, 40, 150, 10_000])
async def test_the_body_behind_an_offer_is_a_body_and_no_request(request_: bytes, size: int) -> None:
    bodies: list[tuple[str, bytes]] = []
    sent = request_ + NEXT
    written = await Desk(reading(bodies)).gets(*(sent[at : at + size] for at in range(0, len(sent), size)))
    assert (bodies, len(written)) == ([("/first", BODY), ("/next", b"")], 2)


async def test_offers_in_a_row_are_declined_one_by_one() -> None:
    bodies: list[tuple[str, bytes]] = []
    desk = Desk(reading(bodies))
    await desk.gets(WITHOUT + SIZED + WITHOUT + NEXT)
    await desk.gets(b"")
    assert [path for path, _ in bodies] == ["/bare", "/first", "/bare", "/next"]


async def test_what_is_no_request_behind_an_offer_ends_the_connection() -> None:
    desk = Desk(reading([]))
    await desk.gets(WITHOUT + b"\0\r\n\r\n")
    assert desk.transport.closed
