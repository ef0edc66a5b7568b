"""Routes that pass bodies through, over sockets: both directions, failover, cuts, refusals, records."""

from __future__ import annotations

import gzip
import http.client
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cases.house import combo, failures, provider
from tests.e2e.client import Response
from tests.e2e.gateway import Gateway, client_headers, run_gateway
from tests.e2e.shapes import dumps, event
from tests.e2e.until import until
from tests.e2e.upstreams import CUT, RESET, RST, SILENCE, Gate, Reply, Step, Upstreams, error, stream, whole

KIND: Final = "multipart/form-data; boundary=b"
SPEECH: Final = "/v1/audio/speech"
USED: Final = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
PICTURE: Final = dumps({"created": 1, "data": [{"b64_json": "iVBORw0KGgo="}], "usage": USED})
POSTS: Final = {
    "/v1/audio/speech": b'{"model":"two","input":"hi","voice":"x"}',
    "/v1/images/generations": b'{"model":"two","prompt":"a cat"}',
    "/v1/moderations": b'{"model":"two","input":"x"}',
    "/v1/rerank": b'{"model":"two","query":"q","documents":["a"]}',
    "/v1/audio/voices/add": b'{"model":"two"}',
}


def binary(*steps: Step, kind: str = "audio/wav", framing: str = "chunked") -> Reply:
    return Reply(200, (("content-type", kind),), steps, framing)


LOST: Final = (
    RESET,
    binary(framing="length"),
    binary(CUT),
    binary(b"<p>", kind="text/html"),
    whole(b'{"error":{"message":"x"}}'),
)
"""Answers that end before their first byte, or are none."""


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {
        "providers": {name: provider(upstreams, name) for name in ("alpha", "beta", "gamma")},
        "combos": {
            "two": combo("alpha/two", "beta/second"),
            "picture": combo("alpha/picture", "beta/second"),
            **{f"lost-{number}": combo(f"alpha/lost-{number}", "beta/whole") for number in range(len(LOST))},
        },
    }
    with run_gateway(folder, config, TROY_STREAM_IDLE_MS="1000", TROY_RETRY_BUDGET="0") as running:
        yield running


def form(model: str, extra: bytes = b"") -> bytes:
    field = b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n%b\r\n' % model.encode()
    file = b'--b\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\n\x89PNG\r\n\x1a\n\r\n'
    return field + file + extra + b"--b--\r\n"


def posted(gateway: Gateway, body: bytes, path: str, kind: str = KIND, **more: str) -> Response:
    headers = [client_headers()[0], ("content-type", kind)]
    return gateway.whole("POST", path, body, [*headers, *((name.replace("_", "-"), v) for name, v in more.items())])


@pytest.mark.parametrize("path", POSTS)
def test_every_route_fails_over_and_tells_its_story(gateway: Gateway, upstreams: Upstreams, path: str) -> None:
    upstreams.script("alpha", error(404, "Invalid URL"), model="two")
    upstreams.script("beta", whole(b'{"ok" : true}'), model="second")
    answer = gateway.post(POSTS[path], path)
    assert (answer.status, answer.body, answer.headers["x-troy-model"]) == (200, b'{"ok" : true}', "beta/second")
    assert (answer.headers["x-troy-combo"], answer.headers["x-troy-attempts"]) == ("two", "2")
    request = upstreams.requests("beta", model="second")[-1]
    assert (request.path, request.body) == (f"/beta{path}", POSTS[path].replace(b'"two"', b'"second"'))
    route = path if path.count("/") == 2 else f"{path[: path.index('/', 4)]}/{{path}}"
    assert gateway.row(answer.headers["x-troy-request-id"])["route"] == route
    assert gateway.metric("requests_total", route=route, outcome="ok") >= 1


def test_a_picture_is_edited_through_a_form(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", error(503), model="")
    upstreams.script("beta", whole(PICTURE), model="")
    answer = posted(gateway, form("picture"), "/v1/images/edits")
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, PICTURE, "application/json")
    assert upstreams.requests("beta", model="")[-1].body == form("second")
    row = gateway.row(answer.headers["x-troy-request-id"])
    assert (row["input_tokens"], row["output_tokens"]) == (7, 3)


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_a_compressed_form_goes_on_plain(gateway: Gateway, upstreams: Upstreams, coding: str) -> None:
    upstreams.script("alpha", whole(b"{}"), model="")
    body = gzip.compress(form("alpha/m")) if coding == "gzip" else form("alpha/m")
    answer = posted(gateway, body, "/v1/images/variations", content_encoding=coding)
    request = upstreams.requests("alpha", model="")[-1]
    assert (answer.status, request.body, "content-encoding" in dict(request.headers)) == (200, form("m"), False)
    assert dict(request.headers)["accept-encoding"] == "identity"


def test_a_compressed_answer_is_passed_plain(gateway: Gateway, upstreams: Upstreams) -> None:
    packed = gzip.compress(b"WEBVTT\n")
    headers = (("content-type", "text/vtt"), ("content-encoding", "gzip"))
    upstreams.script("alpha", Reply(200, headers, (packed,), "length"), model="packed")
    answer = gateway.post(b'{"model":"alpha/packed"}', "/v1/audio/transcriptions")
    assert (answer.body, "content-encoding" in answer.headers) == (b"WEBVTT\n", False)


def test_sound_flows_before_it_is_whole(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", binary(b"RIFF", Gate("flow"), b"\x00\xff"), model="flow")
    with closing(gateway.call("POST", SPEECH, b'{"model":"alpha/flow"}', client_headers())) as answer:
        first = answer.read()
        upstreams.open("flow")
        assert (first, answer.rest()) == (b"RIFF", b"\x00\xff")


def test_events_pass_as_they_are(gateway: Gateway, upstreams: Upstreams) -> None:
    done = event({"type": "transcript.text.done", "text": "hi", "usage": USED})
    upstreams.script("alpha", stream(b": hello\n\n", b"data: {}\r\n", b"\r\n", done), model="events")
    answer = gateway.post(b'{"model":"alpha/events","stream":true}', "/v1/audio/transcriptions")
    assert answer.body == b": hello\n\ndata: {}\r\n\r\n" + done
    assert answer.headers["content-type"] == "text/event-stream"
    row = gateway.row(answer.headers["x-troy-request-id"])
    assert (row["input_tokens"], row["output_tokens"]) == (7, 3)


@pytest.mark.parametrize("number", range(len(LOST)))
def test_nothing_is_lost_before_the_first_byte(gateway: Gateway, upstreams: Upstreams, number: int) -> None:
    upstreams.script("alpha", LOST[number], model=f"lost-{number}")
    upstreams.script("beta", binary(b"\x01\x02"), model="whole")
    answer = gateway.post(dumps({"model": f"lost-{number}"}), SPEECH)
    assert (answer.status, answer.body, answer.headers["x-troy-model"]) == (200, b"\x01\x02", "beta/whole")
    assert failures(gateway, "alpha", f"lost-{number}", "transient") == 1


@pytest.mark.parametrize(
    ("reply", "model"),
    [
        (binary(b"RIFF", CUT), "half-cut"),
        (binary(b"RIFF", RST), "half-reset"),
        (binary(b"RIFF", SILENCE), "half-silent"),
        (
            Reply(
                framing="raw",
                steps=(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\ncontent-type: audio/wav\r\n\r\nRIFF", CUT),
            ),
            "half-length",
        ),
        (stream(event({"type": "speech.audio.delta"}), CUT), "half-events"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_half_an_answer_never_looks_whole(gateway: Gateway, upstreams: Upstreams, reply: Reply, model: str) -> None:
    upstreams.script("alpha", reply, model=model)
    body = dumps({"model": f"alpha/{model}"})
    with closing(gateway.call("POST", SPEECH, body, client_headers())) as answer:
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            answer.rest()
        assert answer.status == 200
    row = gateway.row(answer.headers["x-troy-request-id"])
    assert (row["outcome"], [attempt["outcome"] for attempt in row["attempts"]]) == ("truncated", ["transient"])
    assert len(upstreams.requests("alpha", model=model)) == 1
    assert "ASGI" not in gateway.output()


def test_a_client_that_leaves_closes_the_upstream(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", binary(b"RIFF", Gate("never")), model="left")
    with closing(gateway.call("POST", SPEECH, b'{"model":"alpha/left"}', client_headers())) as answer:
        assert answer.read() == b"RIFF"
    assert until(lambda: upstreams.states("alpha", model="left") == ["left"])
    assert gateway.row(answer.headers["x-troy-request-id"])["outcome"] == "cancelled"


def test_a_redirect_is_not_followed(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", Reply(307, (("location", "http://127.0.0.1:9/x"),), (), "length"), model="moved")
    answer = gateway.post(b'{"model":"alpha/moved"}', SPEECH)
    assert (answer.status, answer.code) == (502, "upstream_invalid")


def test_a_refused_credential_is_ours_to_mend(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("gamma", error(401, "bad key"), model="locked")
    answer = gateway.post(b'{"model":"gamma/locked"}', "/v1/rerank")
    assert (answer.status, answer.code, answer.headers["x-troy-upstream-status"]) == (502, "upstream_auth", "401")


@pytest.mark.parametrize(
    "path",
    ["/v1/audio/..%2f..%2fadmin", "/v1/audio/%2e%2e/models", "/v1/audio/a%3Fb=c", "/v1/images/a//b", "/v1/audio/x/"],
)
def test_a_path_that_an_upstream_could_read_as_another_is_404(
    gateway: Gateway, upstreams: Upstreams, path: str
) -> None:
    before = len(upstreams.requests("alpha"))
    answer = gateway.post(b'{"model":"alpha/m"}', path)
    assert (answer.status, answer.code, len(upstreams.requests("alpha"))) == (404, "not_found", before)


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        (SPEECH, "GET", 405),
        ("/v1/rerank", "DELETE", 405),
        ("/v1/audio", "POST", 404),
        ("/v1/audio/", "POST", 404),
        ("/v1/moderations/x", "POST", 404),
    ],
)
def test_what_is_not_a_route_is_refused(gateway: Gateway, path: str, method: str, status: int) -> None:
    assert gateway.whole(method, path, b"", client_headers()).status == status


@pytest.mark.parametrize("path", POSTS)
def test_every_route_needs_a_key_before_its_body_is_read(gateway: Gateway, path: str) -> None:
    answer = gateway.whole("POST", path, b"\x00", [("content-type", "text/plain")])
    assert (answer.status, answer.code) == (401, "invalid_api_key")


@pytest.mark.parametrize("path", [path for path in POSTS if path != "/v1/moderations"])
def test_a_missing_model_is_named(gateway: Gateway, path: str) -> None:
    answer = gateway.post(b'{"input":"x"}', path)
    assert (answer.status, answer.json()["error"]["param"]) == (400, "model")


def test_an_unknown_model_is_404(gateway: Gateway) -> None:
    answer = gateway.post(b'{"model":"nobody/x"}', SPEECH)
    assert (answer.status, answer.code) == (404, "model_not_found")


def test_moderations_without_a_model_need_who_has_openais(gateway: Gateway) -> None:
    answer = gateway.post(b'{"input":"x"}', "/v1/moderations")
    assert (answer.status, "omni-moderation-latest" in answer.json()["error"]["message"]) == (404, True)
