"""``TROY_AUTH=off``: no key, but only for programs on this machine that talk to us directly."""

from __future__ import annotations

import pytest

from tests.asgi import Exchange, drive, http_scope
from tests.middleware.apps import RawApp
from troyproxy.middleware.auth_guard import AuthGuard
from troyproxy.proxy.authenticator import OpenDoor

pytestmark = pytest.mark.anyio

JSON = {"content-type": "application/json"}


async def call(method: str = "POST", **headers: str) -> Exchange:
    door = AuthGuard(RawApp(), authenticate=OpenDoor(["https://app.example"]).authenticate)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    given = {**JSON, **named} if method == "POST" else named
    return await drive(door, http_scope(method=method, headers=given), [{"type": "http.request"}])


REFUSED = {
    "Forwarded": {"forwarded": "for=192.0.2.1"},
    "X-Forwarded-For": {"x_forwarded_for": "127.0.0.1"},
    "X-Forwarded-Proto": {"x_forwarded_proto": "https"},
    "Via": {"via": "1.1 proxy"},
    "a Host elsewhere": {"host": "gateway.example"},
    "a Host elsewhere with a port": {"host": "gateway.example:31337"},
    "a Host that only begins well": {"host": "localhost.example"},
    "a Host of the network": {"host": "192.168.0.7:31337"},
    "an empty Host": {"host": ""},
    "an IPv6 Host of the network": {"host": "[2001:db8::1]:31337"},
    "an Origin": {"origin": "https://elsewhere.example"},
    "an Origin of a file": {"origin": "null"},
    "an Origin on this machine that is not allowed": {"origin": "http://localhost:3000"},
}

OPEN = {
    "nothing special": {},
    "localhost": {"host": "localhost:31337"},
    "a name below localhost": {"host": "troy.localhost"},
    "localhost with a dot": {"host": "LOCALHOST."},
    "the loopback net": {"host": "127.1.2.3"},
    "IPv6": {"host": "[::1]:31337"},
    "IPv6 without a port": {"host": "[::1]"},
    "an allowed Origin": {"origin": "https://app.example"},
    "any key": {"authorization": "Bearer whatever"},
    "multipart": {"content_type": "multipart/form-data; boundary=x"},
    "JSON with a charset": {"content_type": "Application/JSON; charset=utf-8"},
}


@pytest.mark.parametrize("headers", REFUSED.values(), ids=REFUSED)
async def test_a_request_that_did_not_come_straight_from_here_is_refused(headers: dict[str, str]) -> None:
    exchange = await call(**headers)
    error = exchange.json()["error"]
    assert (exchange.status, error["type"], error["code"]) == (403, "permission_error", "forbidden_origin")


@pytest.mark.parametrize("headers", OPEN.values(), ids=OPEN)
async def test_a_program_of_this_machine_is_let_in(headers: dict[str, str]) -> None:
    assert (await call(**headers)).status == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_a_post_that_any_web_page_could_make_is_refused(kind: str) -> None:
    exchange = await call(content_type=kind)
    assert (exchange.status, exchange.json()["error"]["code"]) == (415, "unsupported_media_type")


async def test_a_get_needs_no_media_type() -> None:
    assert (await call("GET")).status == 200


async def test_pages_that_are_all_allowed_for_a_closed_door_are_not_for_an_open_one() -> None:
    door = AuthGuard(RawApp(), authenticate=OpenDoor(["*"]).authenticate)
    headers = {**JSON, "origin": "https://any.example"}
    assert (await drive(door, http_scope(headers=headers), [{"type": "http.request"}])).status == 403
