"""What holds for every admin operation there is: the token, the cache, the method, and any path one can think of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.house import KEY, TOKEN, House, build
from tests.asgi import Exchange, Message, drive, http_scope, request_body
from tests.fakes import FakeClock
from troyproxy.api.admin.requests import WRITTEN_S
from troyproxy.api.status import Status
from troyproxy.api.wrong_tokens import WRONG_TOKENS

pytestmark = pytest.mark.anyio

ODD_IDS = [
    "..",
    "../..",
    "%2e%2e%2fstatus",
    "a/b/c",
    "a//b",
    "a%2Fb",
    "%00",
    "a\0b",
    "\r\nset-cookie: x",
    "x" * 5000,
    "é",
    "\ufffd",
    "模型",
    "'; drop table combos; --",
    "{id}",
    "*",
    " ",
    "~",
]
TEMPLATES = ["{}", "/api/{}", "/api/combos/{}", "/api/keys/{}", "/api/keys/{}/revoke", "/api/connections/{}"]
TEMPLATES += [
    "/api/providers/{}",
    "/api/models/{}",
    "/api/requests/{}",
    "/api/combos/{}/test",
    "/api/combos/{}/explain",
]
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"]


class Clock(FakeClock):
    """Stands, but nobody waits for a request that another process might be writing."""

    async def sleep(self, seconds: float) -> None:
        if seconds != WRITTEN_S:
            await super().sleep(seconds)


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: str) -> AsyncIterator[House]:
    found = build(tmp_path, Clock(manual=True))
    async with found.gateway:
        yield found


def operations(house: House) -> list[tuple[str, str]]:
    """Return method and a path of every admin operation."""
    routes = [route for route in house.gateway.table.routes if route.path.startswith("/api/")]
    return [(route.method, route.path.replace("{id:path}", "none").replace("{id}", "none")) for route in routes]


def ending(path: str) -> str:
    """Return a call that ends: the stream of events goes on for as long as somebody watches."""
    return f"{path}?seconds=0" if path == "/api/events" else path


async def each(house: House, **headers: str) -> list[Exchange]:
    """Ask every operation, with these headers."""
    return [await house.ask(method, path, {}, **headers) for method, path in operations(house)]


async def test_there_are_operations(house: House) -> None:
    assert len(operations(house)) > 30


async def test_no_operation_answers_without_the_token(house: House) -> None:
    del house.headers["authorization"]
    answers = await each(house)
    assert {(a.status, a.json()["error"]["code"]) for a in answers} == {(401, "invalid_api_key")}


async def test_a_client_key_opens_no_operation(house: House) -> None:
    del house.headers["authorization"]
    answers = await each(house, x_api_key=KEY)
    assert {a.status for a in answers} == {401}


async def test_a_client_key_as_bearer_is_a_wrong_token(house: House) -> None:
    statuses = [a.status for a in await each(house, authorization=f"Bearer {KEY}")]
    assert statuses[: WRONG_TOKENS + 1] == [401] * WRONG_TOKENS + [429]


@pytest.mark.parametrize("header", ["authorization", "x-api-key"])
@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions", "/v1/embeddings"])
async def test_the_admin_token_opens_nothing_below_v1(house: House, path: str, header: str) -> None:
    del house.headers["authorization"]
    value = f"Bearer {TOKEN}" if header == "authorization" else TOKEN
    answer = await house.ask("GET" if path == "/v1/models" else "POST", path, {}, **{header: value})
    assert answer.status == 401


async def test_no_answer_may_be_kept_by_a_cache(house: House) -> None:
    bodies = (b"", b"{", b'{"no": 1}')
    asked = [(m, ending(path), body) for m, path in operations(house) for body in bodies]
    answers = [await house.ask(*each) for each in asked]
    assert {answer.header("cache-control") for answer in answers} == {"no-store"}


async def test_a_refusal_may_not_be_kept_either(house: House) -> None:
    asked = [("GET", "/api/nothing"), ("BREW", "/api/status"), ("GET", "/api/status?x=1")]
    answers = [await house.ask(*each) for each in asked]
    assert [(a.status, a.header("cache-control")) for a in answers] == [
        (404, "no-store"),
        (405, "no-store"),
        (422, "no-store"),
    ]


async def test_a_bug_of_ours_may_not_be_kept_either(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(status: Status) -> dict[str, object]:
        raise RuntimeError(status)

    monkeypatch.setattr(Status, "page", broken)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    with pytest.raises(RuntimeError):
        await house.app(http_scope("/api/status", method="GET", headers=house.headers), receive, send)
    assert (sent[0]["status"], dict(sent[0]["headers"])[b"cache-control"]) == (500, b"no-store")


async def test_a_query_that_no_operation_declares_is_refused_by_all(house: House) -> None:
    answers = [await house.ask(m, f"{path}?no-such=1", {}) for m, path in operations(house)]
    assert {(a.status, a.json()["error"]["details"][0]["field"]) for a in answers} == {(422, "no-such")}


@pytest.mark.parametrize("path", ["/api/status", "/api/settings", "/api/combos", "/api/openapi.json"])
async def test_head_tells_what_get_would(house: House, path: str) -> None:
    got, told = await house.ask("GET", path), await house.ask("HEAD", path)
    assert (told.status, told.header("content-length")) == (200, got.header("content-length"))


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH", "DELETE", "OPTIONS", "TRACE"])
async def test_the_settings_can_only_be_read(house: House, method: str) -> None:
    answer = await house.ask(method, "/api/settings", {"log": "debug"})
    assert (answer.status, answer.header("allow")) == (405, "GET, HEAD")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
async def test_a_body_that_is_not_json_is_415(house: House, kind: str) -> None:
    answer = await house.ask("POST", "/api/combos", {}, content_type=kind)
    assert (answer.status, answer.json()["error"]["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("odd", ODD_IDS)
async def test_an_odd_id_is_nothing_we_know(house: House, odd: str) -> None:
    paths = [template.format(part) for template in TEMPLATES[2:] for part in (odd, quote(odd, safe=""))]
    answers = [await house.ask(method, path, {}) for path in paths for method in ("GET", "PUT", "DELETE", "POST")]
    assert [answer.status for answer in answers if answer.status >= 500] == []


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_no_path_whatever_fails(house: House, data: st.DataObject) -> None:
    part = data.draw(st.one_of(st.text(max_size=40), st.sampled_from(ODD_IDS)))
    path = data.draw(st.sampled_from(TEMPLATES)).format(part)
    query = data.draw(st.one_of(st.just(b""), st.binary(max_size=30)))
    scope = http_scope("/", method=data.draw(st.sampled_from(METHODS)), headers=house.headers, query=query)
    scope["path"] = path.encode("utf-8", "replace").decode()
    answer = await drive(house.app, scope, request_body(data.draw(st.sampled_from([b"", b"{}", b"[]", b"\xff"]))))
    assert answer.status < 500
