"""Whatever the first upstream does wrong before its first output, the second one answers; nothing is left behind."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import closing
from typing import Final

import pytest

from tests.e2e import shapes
from tests.e2e.gateway import CHAT, Gateway, chat, client_headers, run_gateway
from tests.e2e.shapes import DONE, completion, delta, dumps, event, role
from tests.e2e.until import until
from tests.e2e.upstreams import (
    CUT,
    HANG,
    RESET,
    RST,
    SILENCE,
    Drip,
    Reply,
    Upstreams,
    error,
    run_upstreams,
    stream,
    whole,
)

JSON: Final = (("content-type", "application/json"),)
WELL: Final = completion("from alpha")
BOTH: Final = {
    "a reset": RESET,
    "silence": HANG,
    "half a head": Reply(framing="raw", steps=(b"HTTP/1.1 200 OK\r\ncontent-ty", CUT)),
    "no HTTP": Reply(framing="raw", steps=(b"SSH-2.0-OpenSSH_9.7\r\n", CUT)),
    "a head of 100 kB": Reply(framing="raw", steps=(b"HTTP/1.1 200 OK\r\nx-a: " + b"y" * 100_000 + b"\r\n\r\n",)),
    "500": error(500),
    "503 in HTML": Reply(503, (("content-type", "text/html"),), (b"<html>busy</html>",), "length"),
    "529": error(529, "overloaded"),
    "500 with a body that never ends": Reply(500, JSON, (b"{", Drip(b" ", 0.1))),
    "a redirect": Reply(302, (("location", "http://127.0.0.1:1/"),), (), "length"),
    "HTML under 200": Reply(200, (("content-type", "text/html"),), (b"<html>hello</html>",), "length"),
    "nothing under 200": whole(b""),
    "an error under 200": whole(shapes.error("over the limit", code=429)),
    "a head and nothing else": Reply(200, JSON, (SILENCE,)),
}
WHOLE: Final = {
    **BOTH,
    "a body cut short": Reply(200, (*JSON, ("content-length", "9999")), (WELL, CUT), "close"),
    "a chunked body cut short": Reply(200, JSON, (WELL[:40], CUT)),
    "a reset in the body": Reply(200, JSON, (WELL[:40], RST)),
    "a dripping body": Reply(200, JSON, (Drip(b" ", 0.1),)),
    "JSON cut short": whole(WELL[:-5]),
    "broken gzip": whole(gzip.compress(WELL)[:-12], content_encoding="gzip"),
    "no choices": whole(b"{}"),
    "empty choices": whole(b'{"choices": []}'),
    "a stream": stream(delta("a"), delta(finish="stop"), DONE),
    "33 MB": whole(completion("z" * (33 << 20))),
}
STREAMED: Final = {
    **BOTH,
    "a role and a cut": stream(role(), CUT),
    "a role and an end": stream(role()),
    "only an end mark": stream(DONE),
    "only comments": stream(Drip(b": ping\n\n", 0.1)),
    "a role and an error": stream(role(), event({"error": {"message": "overloaded", "code": 503}})),
    "an error event": stream(event({"error": {"message": "overloaded", "code": 503}}), DONE),
    "malformed events": stream(b"data: {]\n\n", b"data: {]\n\n", DONE),
    "a whole answer": whole(WELL),
}


@pytest.fixture(scope="module", params=["fast", "httpx"])
def transport(request: pytest.FixtureRequest) -> str:
    """Both adapters of the network: what lies behind a proxy takes the second one."""
    return str(request.param)


@pytest.fixture(scope="module")
def upstreams(transport: str) -> Iterator[Upstreams]:
    """One for each transport: what the first had is not seen by the second."""
    del transport
    with run_upstreams() as running:
        yield running


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, upstreams: Upstreams, transport: str) -> Iterator[Gateway]:
    names = [*(f"whole-{at}" for at in range(len(WHOLE))), *(f"streamed-{at}" for at in range(len(STREAMED)))]
    timeouts = dict.fromkeys(("first_byte_s", "first_output_s", "idle_s", "total_s"), 60)
    config = {
        "providers": {
            "alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none"},
            "beta": {"base_url": upstreams.base_url("beta"), "auth": "none", "timeouts": timeouts},
        },
        "combos": {name: {"members": [f"alpha/{name}", f"beta/{name}"]} for name in names},
    }
    limits = dict.fromkeys(("TROY_STREAM_IDLE_MS", "TROY_UPSTREAM_TIMEOUT_MS", "TROY_FIRST_OUTPUT_MS"), "1000")
    with run_gateway(tmp_path_factory.mktemp(transport), config, TROY_TRANSPORT=transport, **limits) as running:
        yield running


def served_by_the_second(gateway: Gateway, upstreams: Upstreams, model: str, reply: Reply, *, streams: bool) -> bytes:
    """Return the body that the client gets."""
    upstreams.script("alpha", reply, model=model)
    with closing(gateway.call("POST", CHAT, dumps(chat(model, stream=streams)), client_headers())) as answer:
        body = answer.rest()
        assert (answer.status, answer.headers["x-troy-model"]) == (200, f"beta/{model}"), body
        assert answer.headers["x-troy-attempts"] == "2"
    until(lambda: gateway.metric("account_inflight") == 0)
    assert "open" not in until(lambda: upstreams.states("alpha", model=model))
    return body


@pytest.mark.parametrize("number", range(len(WHOLE)), ids=list(WHOLE))
def test_the_second_answers_instead(gateway: Gateway, upstreams: Upstreams, number: int) -> None:
    reply, model = list(WHOLE.values())[number], f"whole-{number}"
    body = served_by_the_second(gateway, upstreams, model, reply, streams=False)
    assert body == completion(f"{model} by beta", model=model)


@pytest.mark.parametrize("number", range(len(STREAMED)), ids=list(STREAMED))
def test_the_second_streams_instead(gateway: Gateway, upstreams: Upstreams, number: int) -> None:
    reply, model = list(STREAMED.values())[number], f"streamed-{number}"
    body = served_by_the_second(gateway, upstreams, model, reply, streams=True)
    assert body == role() + delta(f"{model} by beta") + delta(finish="stop") + DONE


def test_silence_after_output_ends_the_stream_with_one_error(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", stream(delta("half"), Drip(b": ping\n\n", 0.1)), model="silent")
    with closing(gateway.stream(chat("alpha/silent"))) as answer:
        body, request_id = answer.rest(), answer.headers["x-troy-request-id"]
    assert body.startswith(delta("half"))
    assert body.count(b'"error"') == 1
    assert b'"code":"timeout"' in body
    assert DONE not in body
    until(lambda: upstreams.states("alpha", model="silent") == ["left"])
    assert gateway.row(request_id)["outcome"] == "truncated"


def test_an_event_that_is_too_large_ends_the_stream_with_one_error(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", stream(delta("half"), b"data: {" + b"x" * (17 << 20)), model="large")
    with closing(gateway.stream(chat("alpha/large"))) as answer:
        body = answer.rest()
    assert b'"code":"stream_too_large"' in body
    assert DONE not in body


def test_a_client_that_leaves_in_mid_stream_closes_the_upstream(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", stream(role(), delta("half"), SILENCE), model="left")
    answer = gateway.stream(chat("alpha/left"))
    assert answer.read()
    answer.close()
    until(lambda: upstreams.states("alpha", model="left") == ["left"])
    row = gateway.row(answer.headers["x-troy-request-id"])
    assert (row["outcome"], row["status"]) == ("cancelled", 499)
    assert not [lock for lock in gateway.status()["cooldowns"] if lock["model"] == "left"]
