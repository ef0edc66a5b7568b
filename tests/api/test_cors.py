"""CORS on every route of the table: allowed pages read every answer of the client API, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.house import KEY, House, build
from tests.asgi import Exchange, drive, http_scope, request_body
from tests.fakes import FakeClock
from troyproxy.api.gateway import Embedded
from troyproxy.proxy.answers import Receive, Send, send_json
from troyproxy.proxy.call import Scope

pytestmark = pytest.mark.anyio

PAGE = "https://page.example"
EVIL = "https://evil.example"
ASKED = "authorization,content-type,x-troy-provider,x-troy-trace,x-stainless-os"
ALLOW = "access-control-allow-origin"


async def opened(folder: Path, origins: str) -> AsyncIterator[House]:
    found = build(folder, FakeClock(manual=True), cors_origins=origins)
    async with found.gateway:
        yield found


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: str) -> AsyncIterator[House]:
    """A gateway that one page may call."""
    async for found in opened(tmp_path, PAGE):
        yield found


@pytest.fixture
async def open_to_all(tmp_path: Path, anyio_backend: str) -> AsyncIterator[House]:
    async for found in opened(tmp_path, "*"):
        yield found


def routes(house: House, *, client: bool) -> list[tuple[str, str]]:
    """Return method and path of every route, a template filled in."""
    found = [
        (r.method, r.path.replace("{id:path}", "alpha/gpt-x").replace("{id}", "x")) for r in house.gateway.table.routes
    ]
    return [(m, p.replace("{rest:path}", "x")) for m, p in found if p.startswith("/v1/") is client and m != "OPTIONS"]


async def preflight(house: House, method: str, path: str, origin: str = PAGE, asked: str = ASKED) -> Exchange:
    headers = {"origin": origin, "access_control_request_method": method, "access_control_request_headers": asked}
    return await house.ask("OPTIONS", path, authorization="", **headers)


async def test_every_client_route_has_a_preflight_that_needs_no_key(house: House) -> None:
    answers = [await preflight(house, method, path) for method, path in routes(house, client=True)]
    assert len(answers) > 4
    assert {(a.status, a.header(ALLOW)) for a in answers} == {(200, PAGE)}


async def test_a_preflight_has_a_request_id_as_every_answer_has(house: House) -> None:
    granted = await preflight(house, "POST", "/v1/chat/completions")
    refused = await preflight(house, "POST", "/v1/nothing", EVIL)
    assert [str(answer.header("x-troy-request-id"))[:4] for answer in (granted, refused)] == ["req_", "req_"]


async def test_a_preflight_grants_the_headers_that_are_asked_for(house: House) -> None:
    answer = await preflight(house, "POST", "/v1/chat/completions")
    granted = {name.strip() for name in (answer.header("access-control-allow-headers") or "").split(",")}
    assert granted >= set(ASKED.split(","))


async def test_a_preflight_grants_the_methods_of_the_table(house: House) -> None:
    answer = await preflight(house, "GET", "/v1/models")
    assert answer.header("access-control-allow-methods") == "GET, POST"


async def test_a_preflight_of_a_path_that_is_not_there_lets_the_page_read_its_404(house: House) -> None:
    answer = await preflight(house, "POST", "/v1/nothing")
    assert (answer.status, answer.header(ALLOW)) == (200, PAGE)


async def test_a_preflight_for_another_method_is_refused(house: House) -> None:
    assert (await preflight(house, "DELETE", "/v1/models")).status == 400


async def test_every_client_route_lets_the_page_read_its_401(house: House) -> None:
    for method, path in routes(house, client=True):
        answer = await house.ask(method, path, {}, origin=PAGE, authorization="")
        assert (path, answer.status, answer.header(ALLOW)) == (path, 401, PAGE)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/models/nobody/nothing", 404),
        ("DELETE", "/v1/models", 405),
        ("POST", "/v1/chat/completions", 400),
        ("GET", "/v1/models", 200),
    ],
)
async def test_any_answer_may_be_read_with_its_headers(house: House, method: str, path: str, status: int) -> None:
    answer = await house.ask(method, path, [], origin=PAGE, authorization=f"Bearer {KEY}")
    assert (answer.status, answer.header(ALLOW)) == (status, PAGE)
    assert answer.header("access-control-expose-headers") == "*"


async def test_a_stream_may_be_read(house: House) -> None:
    answer = await house.chat("demo/ok", stream=True)
    assert answer.status == 200
    body = {"model": "demo/ok", "stream": True, "messages": [{"role": "user", "content": "x"}]}
    answer = await house.post("/v1/chat/completions", body, origin=PAGE, authorization=f"Bearer {KEY}")
    assert (answer.status, answer.header(ALLOW), answer.header("content-type")) == (
        200,
        PAGE,
        "text/event-stream; charset=utf-8",
    )


async def test_no_answer_speaks_of_credentials(house: House) -> None:
    answers = [
        await preflight(house, "POST", "/v1/chat/completions"),
        await house.ask("GET", "/v1/models", origin=PAGE, cookie="a=b"),
    ]
    assert [a.header("access-control-allow-credentials") for a in answers] == [None, None]


@pytest.mark.parametrize("origin", [PAGE, EVIL, None])
async def test_every_answer_varies_with_the_origin_and_says_so_once(house: House, origin: str | None) -> None:
    headers = {} if origin is None else {"origin": origin}
    for path in ("/v1/models", "/v1/nothing"):
        answer = await house.ask("GET", path, **headers)
        assert [value.lower() for name, value in answer.raw_headers if name == b"vary"] == [b"origin"]


@pytest.mark.parametrize("origin", [EVIL, "null", f"{PAGE}.evil.example", "http://page.example", f"{PAGE}:444"])
async def test_another_page_reads_nothing(house: House, origin: str) -> None:
    asked = await preflight(house, "GET", "/v1/models", origin)
    answer = await house.ask("GET", "/v1/models", origin=origin, authorization=f"Bearer {KEY}")
    assert (asked.status, asked.header(ALLOW), answer.header(ALLOW)) == (400, None, None)


async def test_no_other_route_is_for_pages(house: House) -> None:
    for method, path in routes(house, client=False):
        asked = await preflight(house, method, path)
        answer = await house.ask(method, path, {}, origin=PAGE, authorization="Bearer no")
        assert (path, asked.status, asked.header(ALLOW), answer.header(ALLOW)) == (path, 405, None, None)


async def test_everybody_is_one_star(open_to_all: House) -> None:
    answer = await open_to_all.ask("GET", "/v1/models", origin=EVIL)
    assert (answer.header(ALLOW), answer.header("access-control-allow-credentials")) == ("*", None)


async def host(scope: Scope, receive: Receive, send: Send) -> None:
    """Whatever is not ours."""
    await send_json(send, 200, {"host": True})


async def test_embedded_the_same_holds_for_our_routes_and_the_hosts_are_its_own(house: House) -> None:
    app = Embedded(host, house.gateway, prefix="/llm")
    headers = {"origin": PAGE, "access-control-request-method": "POST", "access-control-request-headers": ASKED}
    asked = await drive(app, http_scope("/llm/v1/chat/completions", method="OPTIONS", headers=headers))
    refused = await drive(app, http_scope("/llm/v1/models", method="GET", headers={"origin": PAGE}))
    theirs = await drive(app, http_scope("/llm/v1/nothing", method="GET", headers={"origin": PAGE}), request_body(b""))
    assert [(a.status, a.header(ALLOW)) for a in (asked, refused, theirs)] == [(200, PAGE), (401, PAGE), (200, None)]
