"""Field case BE-07: sound and other bodies that are none of the gateway's business go through untouched, both ways."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cases.house import locks, provider, raw
from tests.e2e.client import Response
from tests.e2e.gateway import KEY, Gateway, client_headers, run_gateway
from tests.e2e.upstreams import Reply, Request, Upstreams, error

BOUNDARY: Final = b"----formdata-undici-0123'(x)+_,-./:=?"
KIND: Final = f'multipart/form-data; boundary="{BOUNDARY.decode()}"; charset=utf-8'
SOUND: Final = (b'\x00\xff\r\n\r\n--data: {"model":"x"}\r\n' + bytes(range(256))) * 3600
TRANSCRIPTIONS: Final = "/v1/audio/transcriptions"
FILE: Final = (
    b'Content-Disposition: form-data; name="file"; filename="model"\r\nContent-Type: audio/wav\r\n\r\n' + SOUND
)
MODEL: Final = b'content-disposition: form-data; name="model"\r\n\r\nalpha/whisper'
FORMAT: Final = b'Content-Disposition: form-data; name="response_format"\r\n\r\nvtt'
VTT: Final = Reply(
    200, (("content-type", "text/plain; charset=utf-8"),), (b"WEBVTT\n\n", b"00:01 \xc3\xa9 \xe2\x80\xa8")
)
MP3: Final = Reply(200, (("content-type", "audio/mpeg"),), (b"\x00\xff\x0a",), "length")


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    with run_gateway(folder, {"providers": {"alpha": provider(upstreams, "alpha", "AB")}}) as running:
        yield running


def form(*parts: bytes) -> bytes:
    """Return a form of *parts*, with a preamble and an epilogue."""
    lines = b"".join(b"--%b\r\n%b\r\n" % (BOUNDARY, part) for part in parts)
    return b"preamble\r\n" + lines + b"--" + BOUNDARY + b"--\r\nepilogue"


ORDERS: Final = {
    "model first": form(MODEL, FILE, FORMAT),
    "model behind the file": form(FILE, MODEL, FORMAT),
    "model last": form(FORMAT, FILE, MODEL),
}


def posted(gateway: Gateway, body: bytes, kind: str = KIND) -> Response:
    return gateway.whole("POST", TRANSCRIPTIONS, body, [client_headers()[0], ("content-type", kind)])


def chunked(gateway: Gateway, body: bytes, size: int) -> tuple[int, bytes]:
    """Post *body* in chunks of *size* bytes, without a length."""
    head = f"POST {TRANSCRIPTIONS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: {KIND}\r\n"
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    sent = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    with closing(raw(gateway.port, head.encode() + b"transfer-encoding: chunked\r\n\r\n" + sent + b"0\r\n\r\n")) as got:
        return got.status, got.read()


def last(upstreams: Upstreams) -> Request:
    return upstreams.requests("alpha")[-1]


@pytest.mark.parametrize("order", ORDERS)
def test_be_07_a_form_arrives_as_it_was_but_for_the_models_name(
    gateway: Gateway, upstreams: Upstreams, order: str
) -> None:
    upstreams.script("alpha", VTT)
    answer = posted(gateway, ORDERS[order])
    seen = last(upstreams)
    expected = ORDERS[order].replace(b"alpha/whisper", b"whisper")
    assert hashlib.sha256(seen.body).digest() == hashlib.sha256(expected).digest()
    headers = dict(seen.headers)
    assert (headers["content-type"], headers["content-length"], seen.path) == (
        KIND,
        str(len(expected)),
        "/alpha/v1/audio/transcriptions",
    )
    assert (answer.status, answer.headers["content-type"], answer.body) == (
        200,
        "text/plain; charset=utf-8",
        b"".join(step for step in VTT.steps if isinstance(step, bytes)),
    )
    assert answer.headers["x-troy-model"] == "alpha/whisper"


@pytest.mark.parametrize("size", [977, 65_536])
def test_be_07_an_upload_in_chunks_arrives_the_same(gateway: Gateway, upstreams: Upstreams, size: int) -> None:
    upstreams.script("alpha", VTT)
    body = ORDERS["model behind the file"]
    status, _ = chunked(gateway, body, size)
    assert (status, last(upstreams).body) == (200, body.replace(b"alpha/whisper", b"whisper"))


def test_be_07_speech_is_the_bytes_it_is(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", MP3, model="tts")
    body = b'{"voice":"x", "model":"alpha/tts","stream":true,"input":"\\ud83d","tools":[{"type":"function"}]}'
    answer = gateway.post(body, "/v1/audio/speech")
    assert (answer.status, answer.headers["content-type"], answer.body) == (200, "audio/mpeg", b"\x00\xff\x0a")
    (request,) = upstreams.requests("alpha", model="tts")
    assert request.body == body.replace(b"alpha/tts", b"tts")


def test_be_07_the_second_account_gets_the_same_form(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", error(429, "slow down", retry_after="1"), VTT)
    body = ORDERS["model last"].replace(b"alpha/whisper", b"alpha/again")
    answer = posted(gateway, body)
    before, after = upstreams.requests("alpha")[-2:]
    assert (answer.status, before.body == after.body, before.key != after.key) == (200, True, True)
    assert len(locks(gateway, "alpha", "again")) == 1


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (form(FILE, FORMAT), "model"),
        (form(FILE, MODEL.replace(b'"model"', b'"model"; filename="model"')), "model"),
        (form(FILE, MODEL)[:-40], None),
        (form(FILE, MODEL).replace(BOUNDARY + b"--", BOUNDARY), None),
        (form(FILE, MODEL).replace(b"--" + BOUNDARY, b"--other"), None),
        (b"no form at all", None),
    ],
    ids=["no model", "the model is a file", "cut", "no closing boundary", "another boundary", "text"],
)
def test_be_07_a_form_without_a_model_or_without_an_end_is_400(
    gateway: Gateway, upstreams: Upstreams, body: bytes, param: str | None
) -> None:
    before = len(upstreams.requests("alpha"))
    answer = posted(gateway, body)
    assert (answer.status, answer.code, answer.json()["error"]["param"]) == (400, "invalid_request", param)
    assert len(upstreams.requests("alpha")) == before


def test_be_07_json_that_is_called_a_form_is_400_and_the_other_way_round(gateway: Gateway) -> None:
    answers = [posted(gateway, b'{"model":"alpha/x"}'), posted(gateway, ORDERS["model last"], "application/json")]
    assert [(answer.status, answer.code) for answer in answers] == [(400, "invalid_request"), (400, "invalid_json")]
