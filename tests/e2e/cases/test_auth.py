"""Field cases AU-01, AU-02 and AU-04: every odd key is the same quiet 401, and every honest spelling of one works."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.cases.house import provider
from tests.e2e.client import Response
from tests.e2e.gateway import CHAT, KEY, ROOT, Gateway, chat, client_headers, run_gateway
from tests.e2e.shapes import dumps
from tests.e2e.upstreams import Upstreams

OTHER: Final = "schlüssel-0123456789"
JSON: Final = ("content-type", "application/json")
Pairs = list[tuple[str, str | bytes]]
ODD: Final[dict[str, Pairs]] = {
    "a byte beyond ASCII": [("authorization", b"Bearer caf\xe9")],
    "a smart quote": [("authorization", "Bearer “sk-troy”".encode())],
    "an empty key": [("authorization", "Bearer ")],
    "the scheme alone": [("authorization", "Bearer")],
    "an empty header": [("authorization", "")],
    "20 kB": [("authorization", "Bearer " + "k" * 20_000)],
    "every high byte": [("authorization", b"Bearer " + bytes(range(0x80, 0x100)))],
    "a tab": [("authorization", "Bearer\tx")],
    "a tail": [("authorization", f"Bearer {KEY}x")],
    "a head": [("authorization", f"Bearer {KEY[:-1]}")],
    "two keys": [("authorization", f"Bearer {KEY}, Bearer {KEY}")],
}
ACCEPTED: Final[dict[str, Pairs]] = {
    "lower case": [("authorization", f"bearer {KEY}")],
    "upper case and two blanks": [("authorization", f"BEARER  {KEY}")],
    "a blank behind": [("authorization", f"Bearer {KEY} ")],
    "x-api-key": [("x-api-key", KEY)],
    "x-api-key with blanks": [("x-api-key", f" {KEY} ")],
    "the first of two": [("authorization", f"Bearer {KEY}"), ("authorization", "Bearer wrong")],
    "a key beyond ASCII": [("authorization", f"Bearer {OTHER}".encode())],
}
REFUSED: Final[dict[str, Pairs]] = {
    "no header": [],
    "Basic": [("authorization", "Basic Z3c=")],
    "a bare key": [("authorization", KEY)],
    "an unknown key": [("authorization", "Bearer sk-troy-" + "0" * 48)],
    "another case": [("authorization", f"Bearer {KEY.upper()}")],
    "api-key": [("api-key", KEY)],
    "x-goog-api-key": [("x-goog-api-key", KEY)],
    "the second of two": [("authorization", "Bearer wrong"), ("authorization", f"Bearer {KEY}")],
    "authorization decides alone": [("authorization", "Bearer wrong"), ("x-api-key", KEY)],
}
ROUTES: Final = (("POST", CHAT), ("POST", "/v1/embeddings"), ("POST", "/v1/completions"), ("GET", "/v1/models"))


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    keys = [{"name": "e2e", "key": KEY}, {"name": "other", "key": OTHER}]
    config = {"keys": keys, "providers": {"alpha": provider(upstreams, "alpha", models={"m1": {}})}}
    with run_gateway(folder, config) as running:
        yield running


def assert_refused(answer: Response) -> None:
    """It is the one 401, which repeats nothing of what was sent."""
    error = answer.json()["error"]
    assert (answer.status, error["code"], error["type"]) == (401, "invalid_api_key", "authentication_error")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("kind", ODD)
def test_au_01_an_odd_key_is_401_and_the_connection_lives(gateway: Gateway, upstreams: Upstreams, kind: str) -> None:
    model = f"au01-{list(ODD).index(kind)}"
    body = dumps(chat(f"alpha/{model}", "x" * (1 << 20)))
    with closing(gateway.send("POST", CHAT, body, [*ODD[kind], JSON])) as connection:
        first = connection.getresponse()
        assert (first.status, json.loads(first.read())["error"]["code"]) == (401, "invalid_api_key")
        assert not upstreams.requests("alpha", model=model)
        _send_again(connection, dumps(chat(f"alpha/{model}")))
        assert connection.getresponse().status == 200
    assert "Traceback" not in gateway.output()


def _send_again(connection: http.client.HTTPConnection, body: bytes) -> None:
    # http.client opens a new connection where the server has closed the old one cleanly.
    connection.request("POST", CHAT, body, dict(client_headers()))


@pytest.mark.parametrize("value", [b"Bearer a\x00b", b"Bearer a\x01b"])
def test_au_01_a_control_character_is_refused_by_the_server(gateway: Gateway, value: bytes) -> None:
    with closing(gateway.send("GET", "/v1/models")) as before:
        assert before.getresponse().status == 401
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    with closing(connection):
        connection.connect()
        connection.sock.sendall(b"GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: " + value + b"\r\n\r\n")
        status = int(connection.sock.recv(1 << 16).split(b" ")[1])
    assert status in {400, 401}
    assert gateway.post(chat("alpha/m1")).status == 200
    assert "Traceback" not in gateway.output()


@pytest.mark.parametrize("kind", ACCEPTED)
def test_au_02_every_honest_spelling_is_accepted(gateway: Gateway, upstreams: Upstreams, kind: str) -> None:
    model = f"au02-{list(ACCEPTED).index(kind)}"
    assert gateway.whole("POST", CHAT, dumps(chat(f"alpha/{model}")), [*ACCEPTED[kind], JSON]).status == 200
    (seen,) = upstreams.requests("alpha", model=model)
    assert "authorization" not in dict(seen.headers)


@pytest.mark.parametrize("kind", REFUSED)
def test_au_02_and_no_other(gateway: Gateway, kind: str) -> None:
    assert_refused(gateway.whole("POST", CHAT, dumps(chat("alpha/m1")), [*REFUSED[kind], JSON]))


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_au_04_all_routes_refuse_alike_and_say_nothing(gateway: Gateway, method: str, path: str) -> None:
    body = dumps(chat("alpha/m1")) if method == "POST" else b""
    answers = [gateway.whole(method, path, body, [*headers, JSON]) for headers in REFUSED.values()]
    for answer in answers:
        assert_refused(answer)
    assert len({answer.body for answer in answers}) == 1
    assert_refused(gateway.whole(method, f"{path}?api_key={KEY}&key={KEY}", body, [JSON]))


def test_au_04_nothing_of_a_key_is_logged(gateway: Gateway) -> None:
    typo = "sk-live-0123456789-typo"
    gateway.whole("POST", CHAT, dumps(chat("alpha/m1")), [("authorization", f"Bearer {typo}"), JSON])
    gateway.whole("POST", f"{CHAT}?api_key={typo}", dumps(chat("alpha/m1")), [JSON])
    assert gateway.post(chat("alpha/m1")).status == 200
    assert typo not in gateway.output()
    assert KEY not in gateway.output()


def test_au_04_metrics_and_health_follow_their_own_rule(gateway: Gateway) -> None:
    forwarded: Pairs = [("x-forwarded-for", "203.0.113.9")]
    assert gateway.get("/healthz").status == 200
    assert gateway.get("/metrics").status == 200  # from this machine and not forwarded
    assert gateway.whole("GET", "/metrics", headers=forwarded).status in {401, 403}
    assert gateway.whole("GET", "/api/status", headers=client_headers()).status == 401
    assert gateway.get("/api/status").status == 401


@pytest.mark.parametrize("value", ["", "   ", "short"])
def test_au_04_an_empty_key_in_the_file_stops_the_start(tmp_path: Path, value: str) -> None:
    said: dict[str, Any] = {"keys": [{"name": "none", "key": value}], "providers": {}}
    config = tmp_path / "troyproxy.yaml"
    config.write_text(json.dumps(said), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TROY_CONFIG": str(config), "TROY_PORT": "0"}
    command = [sys.executable, "-m", "troyproxy", "serve"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, timeout=40, check=False)
    assert done.returncode != 0
    assert b"keys" in done.stderr
