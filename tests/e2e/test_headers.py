"""Headers, both ways: redirects and cookies end here, as does what a hop nominates; nothing splits, nothing tells."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pytest

from tests.e2e.client import Response
from tests.e2e.gateway import CHAT, KEY, Gateway, chat, client_headers, run_gateway
from tests.e2e.shapes import DONE, completion, delta, dumps, error
from tests.e2e.upstreams import CUT, ECHO, HEALTHY, Reply, Upstreams, whole

SECRET: Final = "sk-up-alpha-0123456789abcdef"
JSON: Final = (("content-type", "application/json"),)
SSE: Final = (("content-type", "text/event-stream"),)
EVENTS: Final = (delta("a"), delta(finish="stop"), DONE)
COOKIES: Final = (("set-cookie", "session=1; Path=/"), ("set-cookie", "more=2; Domain=127.0.0.1"))
HOP_BY_HOP: Final = {
    "connection": "x-request-id, keep-alive",
    "x-request-id": "nominated",
    "keep-alive": "timeout=5",
    "proxy-authenticate": "Basic",
    "proxy-connection": "keep-alive",
    "trailer": "x-t",
    "upgrade": "h2c",
    "via": "1.1 elsewhere",
    "server": "up",
    "alt-svc": 'h3=":443"',
    "x-internal-host": "10.0.0.7",
}
ANSWERS: Final[dict[str, tuple[int, tuple[tuple[str, str], ...], tuple[bytes, ...], str]]] = {
    "an answer": (200, JSON, (completion("hi"),), "length"),
    "a stream": (200, SSE, EVENTS, "chunked"),
    "an error": (404, JSON, (error("nothing here"),), "length"),
}
ROUTES: Final[dict[str, dict[str, object]]] = {
    CHAT: {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/completions": {"prompt": "hi"},
    "/v1/embeddings": {"input": "hi"},
}
SPLITTERS: Final[dict[str, bytes]] = {
    "a folded line": b"one\r\n x-evil: 1",
    "a bare carriage return": b"one\rx-evil: 1",
    "a bare line feed": b"one\nx-evil: 1",
    "a null": b"one\x00x-evil: 1",
    "an escape": b"one\x1b[31m",
    "latin-1": b"caf\xe9",
    "UTF-8": "中文".encode(),
    "spelt out": b"one%0d%0ax-evil: 1",
    "a long one": b"x" * 4000,
}


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    def provider(name: str, *accounts: str) -> dict[str, Any]:
        keys = [{"name": account, "api_key": SECRET} for account in accounts]
        return {"base_url": upstreams.base_url(name), **({"accounts": keys} if keys else {"auth": "none"})}

    providers = {"alpha": provider("alpha", "A"), "beta": provider("beta")}
    pairs = {f"moved-{status}": {"members": [f"alpha/moved-{status}", "beta/m"]} for status in range(300, 309)}
    with run_gateway(folder, {"providers": providers, "combos": pairs}, TROY_RETRY_BUDGET="0") as running:
        yield running


def answered(gateway: Gateway, upstreams: Upstreams, model: str, kind: str, *more: tuple[str, str]) -> Response:
    """Return what a client gets when the upstream adds these headers."""
    status, headers, steps, framing = ANSWERS[kind]
    upstreams.script("alpha", Reply(status, (*headers, *more), steps, framing), model=model)
    answer = gateway.post(chat(f"alpha/{model}", stream=kind == "a stream"))
    assert (answer.status, answer.body) == (status, b"".join(steps))
    return answer


# --- redirects and cookies ---


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
def test_a_redirect_is_not_followed(gateway: Gateway, upstreams: Upstreams, status: int, streams: bool) -> None:
    away = (("location", f"{upstreams.base_url('trap')}/chat/completions"), *COOKIES)
    upstreams.script("alpha", Reply(status, away, (), "length"), model=f"moved-{status}")
    alone = gateway.post(chat(f"alpha/moved-{status}", stream=streams))
    assert (alone.status, alone.code) == (502, "upstream_invalid")
    assert "location" not in alone.headers
    assert gateway.post(chat(f"moved-{status}", stream=streams)).headers["x-troy-model"] == "beta/m"
    assert upstreams.requests("trap") == []


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_cookie_is_neither_kept_nor_passed_on(gateway: Gateway, upstreams: Upstreams, kind: str) -> None:
    model = f"cookies-{list(ANSWERS).index(kind)}"
    for _ in range(2):
        assert "set-cookie" not in answered(gateway, upstreams, model, kind, *COOKIES).headers
    assert len(upstreams.requests("alpha", model=model)) == 2
    assert not [seen for seen in upstreams.requests("alpha", model=model) if "cookie" in dict(seen.headers)]


# --- hops ---


@pytest.mark.parametrize("kind", ANSWERS)
def test_what_belongs_to_the_upstreams_hop_ends_there(gateway: Gateway, upstreams: Upstreams, kind: str) -> None:
    answer = answered(gateway, upstreams, f"hop-{list(ANSWERS).index(kind)}", kind, *HOP_BY_HOP.items())
    assert not HOP_BY_HOP.keys() & answer.headers.keys()
    assert "nominated" not in str(answer.headers)


@pytest.mark.parametrize("listed", ["x-title", "X-Title , openai-beta", "close, x-title"])
def test_what_the_clients_hop_nominates_ends_here_even_if_it_may_pass_otherwise(
    gateway: Gateway, upstreams: Upstreams, listed: str
) -> None:
    model = f"nominated-{len(listed)}"
    extra = [
        ("connection", listed),
        ("x-title", "an app"),
        ("openai-beta", "one"),
        ("http-referer", "https://a.example"),
    ]
    body = dumps(chat(f"alpha/{model}"))
    assert gateway.whole("POST", CHAT, body, [*client_headers(), *extra]).status == 200
    seen = dict(upstreams.requests("alpha", model=model)[0].headers)
    assert "x-title" not in seen
    assert ("openai-beta" in seen) is ("openai-beta" not in listed)
    assert seen["http-referer"] == "https://a.example"


# --- splitting ---


@pytest.mark.parametrize("name", ["x-request-id", "content-type", "openai-organization", "retry-after"])
@pytest.mark.parametrize("kind", SPLITTERS)
def test_no_header_of_an_upstream_splits_an_answer(
    gateway: Gateway, upstreams: Upstreams, kind: str, name: str
) -> None:
    model = f"split-{list(SPLITTERS).index(kind)}-{name}"
    for status, body in ((200, completion("hi")), (404, error("nothing here"))):
        head = b"HTTP/1.1 %d Split\r\n%b: %b\r\n" % (status, name.encode(), SPLITTERS[kind])
        framing = b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        upstreams.script("alpha", Reply(framing="raw", steps=(head + framing + body, CUT)), model=model)
        gateway.admin("POST", "/api/cooldowns/clear", {"provider": "alpha"})
        answer = gateway.post(chat(f"alpha/{model}"))
        assert answer.status in {status, 502}
        assert "x-evil" not in answer.headers
        assert all(value.isascii() and value.isprintable() for value in answer.headers.values())
        story = [f"{header}{value}" for header, value in answer.headers.items() if header.startswith("x-troy")]
        assert len("".join(story)) < 1024


@pytest.mark.parametrize("name", ["A\r\nx-evil: 1", "Büro 北京", "a b"])
@pytest.mark.parametrize("place", ['"A"', '"moved-300"'], ids=["account", "combo"])
def test_no_configured_name_splits_an_answer(gateway: Gateway, place: str, name: str) -> None:
    good = gateway.config_path.read_text(encoding="utf-8")
    gateway.write_config(good.replace(place, json.dumps(name)))
    reload = gateway.admin("POST", "/api/config/reload")
    heads = [reload.headers, gateway.post(chat(name)).headers, gateway.post(chat("alpha/named")).headers]
    gateway.write_config(good)
    assert gateway.admin("POST", "/api/config/reload").status == 200
    assert reload.status == (422 if "\r" in name or place == '"A"' else 200)
    assert not [head for head in heads if "x-evil" in head or not str(head).isascii()]


@pytest.mark.parametrize("streams", [False, True])
def test_a_model_of_any_name_is_told_in_ascii_and_kept_as_it_is(gateway: Gateway, streams: bool) -> None:
    answer = gateway.post(chat("beta/模型 \r\nx-evil: 1", stream=streams))
    assert answer.status == 200
    assert "x-evil" not in answer.headers
    assert unquote(answer.headers["x-troy-model"]) == "beta/模型 \r\nx-evil: 1"
    assert f"{answer.headers['x-troy-model']}{answer.headers['x-troy-trail']}".isascii()
    assert gateway.row(answer.headers["x-troy-request-id"])["model"] == "模型 \r\nx-evil: 1"


# --- what nobody may learn ---


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("route", ROUTES)
def test_nothing_of_the_clients_key_goes_upstream(
    gateway: Gateway, upstreams: Upstreams, route: str, streams: bool
) -> None:
    model = f"keyless{route.replace('/', '-')}-{streams}"
    spread = [(name, KEY) for name in ("x-api-key", "api-key", "x-goog-api-key", "cookie")]
    for provider in ("alpha", "beta"):
        body = dumps({"model": f"{provider}/{model}", "stream": streams, **ROUTES[route]})
        answer = gateway.whole("POST", f"{route}?key={KEY}&api_key={KEY}", body, [*client_headers(), *spread])
        assert answer.status == 200
        (seen,) = upstreams.requests(provider, model=model)
        assert KEY not in f"{seen.path} {seen.headers} {seen.body.decode()}"
        assert "sk-troy" not in f"{seen.path} {seen.headers} {seen.body.decode()}"
        carried = [value for name, value in seen.headers if SECRET in value]
        assert carried == ([f"Bearer {SECRET}"] if provider == "alpha" else [])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("status", [400, 404, 422, 500])
def test_an_error_that_repeats_the_request_is_verbatim_but_for_the_credential(
    gateway: Gateway, upstreams: Upstreams, status: int, packed: bool
) -> None:
    model = f"repeats-{status}-{packed}"
    said = dumps({"error": {"message": "no", "request": {"authorization": f"Bearer {SECRET}", "accept": "*/*"}}})
    coded = {"content_encoding": "gzip"} if packed else {}
    reply = whole(gzip.compress(said) if packed else said, status, x_request_id=f"r-{SECRET}", **coded)
    upstreams.script("alpha", reply, model=model)
    answer = gateway.post(chat(f"alpha/{model}"))
    assert (answer.status, answer.body) == (status, said.replace(SECRET.encode(), b"***"))
    assert SECRET not in str(answer.headers)


@pytest.mark.parametrize("kind", ["an answer", "a stream"])
def test_an_upstreams_id_that_repeats_the_credential_is_not_passed_on(
    gateway: Gateway, upstreams: Upstreams, kind: str
) -> None:
    ids = (("x-request-id", f"r-{SECRET}"), ("request-id", "plain"))
    answer = answered(gateway, upstreams, f"id-{kind == 'a stream'}", kind, *ids)
    assert answer.headers["x-troy-upstream-request-id"] == "plain"


def test_an_upstream_sees_the_gateway_and_not_its_clients(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", ECHO, HEALTHY, model="seen")
    extra = [("user-agent", "somebody/1.0"), ("accept-language", "de"), ("x-forwarded-for", "203.0.113.9")]
    assert gateway.whole("POST", CHAT, dumps(chat("alpha/seen")), [*client_headers(), *extra]).status == 200
    seen = dict(upstreams.requests("alpha", model="seen")[0].headers)
    assert seen["user-agent"].startswith("troyproxy/")
    assert not {"accept-language", "x-forwarded-for"} & seen.keys()
