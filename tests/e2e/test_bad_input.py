"""Bad input of every kind: the documented error in the one envelope, nothing upstream, and the next request works."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.client import send
from tests.e2e.gateway import CHAT, KEY, Gateway, chat, client_headers, run_gateway
from tests.e2e.shapes import dumps
from tests.e2e.upstreams import Upstreams
from troyproxy.errors import type_of

MIB: Final = 1 << 20
KEYED: Final = ("authorization", f"Bearer {KEY}")
JSON: Final = ("content-type", "application/json")


@dataclass(frozen=True, slots=True)
class Bad:
    """A request, and what it must be answered with."""

    status: int
    code: str
    body: bytes = dumps(chat("alpha/m1"))
    headers: tuple[tuple[str, str | bytes], ...] = (KEYED, JSON)
    method: str = "POST"
    path: str = CHAT


def body(status: int, code: str, **fields: object) -> Bad:
    return Bad(status, code, dumps(chat("alpha/m1") | fields))


def coded(status: int, code: str, coding: str, content: bytes) -> Bad:
    return Bad(status, code, content, (KEYED, JSON, ("content-encoding", coding)))


def keyed(*headers: tuple[str, str | bytes], path: str = CHAT) -> Bad:
    return Bad(401, "invalid_api_key", headers=(*headers, JSON), path=path)


BAD_JSON: Final = {
    "an empty body": Bad(400, "invalid_json", b""),
    "blanks": Bad(400, "invalid_json", b" \r\n\t "),
    "a byte order mark alone": Bad(400, "invalid_json", b"\xef\xbb\xbf"),
    "no JSON": Bad(400, "invalid_json", b"hello"),
    "JSON cut short": Bad(400, "invalid_json", dumps(chat("alpha/m1"))[:-1]),
    "something after the JSON": Bad(400, "invalid_json", dumps(chat("alpha/m1")) + b"{}"),
    "invalid UTF-8": Bad(400, "invalid_json", b'{"model": "\xff\xfe"}'),
    "UTF-16": Bad(400, "invalid_json", json.dumps(chat("alpha/m1")).encode("utf-16")),
    "a huge integer": Bad(400, "invalid_json", b'{"model": "alpha/m1", "n": ' + b"9" * 5000 + b"}"),
    "JSON too deep": Bad(400, "invalid_json", b'{"model": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "an array": Bad(400, "invalid_request", b"[]"),
    "a string": Bad(400, "invalid_request", b'"alpha/m1"'),
    "null": Bad(400, "invalid_request", b"null"),
    "a number": Bad(400, "invalid_request", b"1"),
}
WRONG_TYPES: Final = {
    "no model": Bad(400, "invalid_request", dumps({"messages": []})),
    "a number as model": body(400, "invalid_request", model=7),
    "null as model": body(400, "invalid_request", model=None),
    "an empty model": body(400, "invalid_request", model=""),
    "no messages": Bad(400, "invalid_request", dumps({"model": "alpha/m1"})),
    "empty messages": body(400, "invalid_request", messages=[]),
    "a string as messages": body(400, "invalid_request", messages="hi"),
    "a string as message": body(400, "invalid_request", messages=["hi"]),
    "a number as content": body(400, "invalid_request", messages=[{"role": "user", "content": 5}]),
    "a string as stream": body(400, "invalid_request", stream="yes"),
    "a number as stream": body(400, "invalid_request", stream=1),
    "an array as stream options": body(400, "invalid_request", stream=True, stream_options=[]),
    "an object as tools": body(400, "invalid_request", tools={}),
    "a string as tools": body(400, "invalid_request", tools="none"),
    "a string as response format": body(400, "invalid_request", response_format="json"),
    "a string as max_tokens": body(400, "invalid_request", max_tokens="many"),
    "a boolean as max_tokens": body(400, "invalid_request", max_tokens=True),
    "an unknown effort": body(400, "invalid_effort", reasoning_effort="heroic"),
    "a number as effort": body(400, "invalid_effort", reasoning_effort=3),
    "an unknown effort inside": body(400, "invalid_effort", reasoning={"effort": "heroic"}),
}
NAMES: Final = {
    "an unknown model": body(404, "model_not_found", model="gpt-of-nobody"),
    "an unknown provider": body(404, "model_not_found", model="nobody/m1"),
    "an unknown combo": body(404, "model_not_found", model="combo/nothing"),
    "an odd model name": body(404, "model_not_found", model="../../etc/passwd\u0000\u202e"),
    "a very long model name": body(404, "model_not_found", model="m" * 100_000),
    "an unknown variant": body(400, "unknown_variant", model="auto/nonsense"),
    "an unknown preference": Bad(
        400, "invalid_request", dumps(chat("default")), (KEYED, JSON, ("x-troy-provider", "nobody"))
    ),
}
KEYS: Final = {
    "no key": keyed(),
    "a wrong key": keyed(("authorization", "Bearer sk-troy-" + "0" * 48)),
    "a malformed key": keyed(("authorization", "Bearer x")),
    "an empty key": keyed(("authorization", "Bearer ")),
    "another scheme": keyed(("authorization", f"Basic {KEY}")),
    "a non-ASCII key": keyed(("authorization", "Bearer schlüssel-ÿ".encode())),
    "a key of bytes": keyed(("authorization", b"Bearer \xff\xfe\x80")),
    "a non-ASCII x-api-key": keyed(("x-api-key", "ключ".encode())),
    "a huge key": keyed(("authorization", "Bearer " + "k" * 20_000)),
    "a key in the query": keyed(path=f"{CHAT}?api_key={KEY}"),
    "authorization decides alone": keyed(("authorization", "Bearer wrong"), ("x-api-key", KEY)),
    "the admin token": keyed(("authorization", "Bearer admin-token-of-the-end-to-end-tests")),
}
WIRE: Final = {
    "a text": Bad(415, "unsupported_media_type", headers=(KEYED, ("content-type", "text/plain"))),
    "a form": Bad(
        415, "unsupported_media_type", headers=(KEYED, ("content-type", "application/x-www-form-urlencoded"))
    ),
    "an unknown coding": coded(415, "unsupported_encoding", "lzma", b"x"),
    "stacked codings": coded(415, "unsupported_encoding", "gzip, gzip", b"x"),
    "no gzip": coded(400, "invalid_request", "gzip", b"this is no gzip"),
    "no brotli": coded(400, "invalid_request", "br", b"\xff\xff\xff\xff\xff\xff"),
    "no zstd": coded(400, "invalid_request", "zstd", b"this is no zstd"),
    "gzip cut short": coded(400, "invalid_request", "gzip", gzip.compress(dumps(chat("alpha/m1")))[:-20]),
    "a gzip bomb": coded(413, "body_too_large", "gzip", gzip.compress(bytes(200 * MIB), 9)),
    "a deflate bomb": coded(413, "body_too_large", "deflate", zlib.compress(bytes(200 * MIB), 9)),
    "33 MB": Bad(413, "body_too_large", b'{"model": "' + b"a" * (33 * MIB) + b'"}'),
    "another method": Bad(405, "method_not_allowed", b"", method="GET"),
    "another path": Bad(404, "not_found", path="/v1/nothing"),
    "a path that climbs": Bad(404, "not_found", path="/v1/../v1/nothing"),
}
EVERY: Final = {**BAD_JSON, **WRONG_TYPES, **NAMES, **KEYS, **WIRE}


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none", "models": {"m1": {}}}}}
    with run_gateway(folder, config) as running:
        yield running


@pytest.mark.parametrize("bad", EVERY.values(), ids=EVERY)
def test_bad_input_gets_its_documented_error_and_the_next_request_works(
    gateway: Gateway, upstreams: Upstreams, bad: Bad
) -> None:
    before = len(upstreams.requests("alpha"))
    answer = gateway.whole(bad.method, bad.path, bad.body, bad.headers)
    assert (answer.status, answer.code) == (bad.status, bad.code)
    error = answer.json()["error"]
    assert error.keys() >= {"message", "type", "param", "code"}
    assert error["type"] == type_of(bad.status)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-troy-request-id"].startswith("req_")
    assert len(answer.body) < 4096
    assert len(upstreams.requests("alpha")) == before
    assert gateway.post(chat("alpha/m1")).status == 200


def test_missing_and_wrong_keys_get_the_same_answer(gateway: Gateway) -> None:
    answers = [gateway.whole(bad.method, bad.path, bad.body, bad.headers) for bad in KEYS.values()]
    assert len({answer.body for answer in answers}) == 1
    assert {answer.headers["www-authenticate"] for answer in answers} == {"Bearer"}


def test_a_body_that_grows_too_large_in_chunks_is_refused(gateway: Gateway) -> None:
    connection = send(gateway.port, "POST", CHAT, headers=[KEYED, JSON, ("transfer-encoding", "chunked")])
    with closing(connection):
        chunk = b"%x\r\n%b\r\n" % (MIB, b"a" * MIB)
        try:
            for _ in range(40):
                connection.send(chunk)
            connection.send(b"0\r\n\r\n")
        except ConnectionError:
            pass  # refused before the end; the answer has been sent by then
        answer = connection.getresponse()
        assert answer.status == 413
        assert json.loads(answer.read())["error"]["code"] == "body_too_large"
    assert gateway.post(chat("alpha/m1")).status == 200


def test_a_client_that_hangs_up_in_the_middle_of_its_body_harms_nobody(gateway: Gateway) -> None:
    connection = send(gateway.port, "POST", CHAT, headers=[KEYED, JSON, ("content-length", "1000")])
    connection.send(b'{"model": ')
    connection.close()
    assert gateway.post(chat("alpha/m1")).status == 200


def test_a_compressed_body_within_the_limit_is_read(gateway: Gateway) -> None:
    headers = [*client_headers(), ("content-encoding", "gzip")]
    assert gateway.whole("POST", CHAT, gzip.compress(dumps(chat("alpha/m1"))), headers).status == 200
