"""``TROY_AUTH=off`` at a real server: no key, but only for programs of this machine that talk to us directly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cases.house import raw
from tests.e2e.client import Response
from tests.e2e.gateway import ADMIN, CHAT, ROOT, Gateway, chat, run_gateway
from tests.e2e.upstreams import Upstreams

PAGE: Final = "https://page.example"
JSON: Final = ("content-type", "application/json")
ROUTES: Final = (
    ("POST", CHAT),
    ("POST", "/v1/completions"),
    ("POST", "/v1/embeddings"),
    ("POST", "/v1/moderations"),
    ("POST", "/v1/audio/speech"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/alpha/m1"),
)
FORWARDED: Final = {
    "forwarded": "for=127.0.0.1",
    "x-forwarded-for": "127.0.0.1",
    "x-forwarded-host": "localhost",
    "x-forwarded-proto": "http",
    "x-forwarded-anything": "1",
    "via": "1.1 proxy",
}
HOSTS_HERE: Final = (
    "localhost",
    "localhost:31337",
    "LOCALHOST.",
    "troy.localhost",
    "127.0.0.1",
    "127.9.9.9:80",
    "[::1]:5",
)
HOSTS_ELSEWHERE: Final = (
    "rebound.example",  # a name that an attacker's DNS leads to 127.0.0.1
    "rebound.example:31337",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "192.168.0.7",
    "[2001:db8::1]",
    "[::1].evil.example",
    "0.0.0.0",
    "",
)


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none", "models": {"m1": {}}}}}
    with run_gateway(folder, config, TROY_AUTH="off", TROY_CORS_ORIGINS=PAGE) as running:
        yield running


def ask(gateway: Gateway, method: str, path: str, *headers: tuple[str, str]) -> Response:
    """Send a request without a key; a POST asks for something that works on every route."""
    body = json.dumps({**chat("alpha/m1"), "prompt": "hi", "input": "hi", "voice": "v"}).encode()
    return gateway.whole(method, path, body if method == "POST" else b"", headers)


def with_host(gateway: Gateway, host: str) -> int:
    """Return the status of a request whose Host is exactly *host*."""
    lines = ["GET /v1/models HTTP/1.1", f"host: {host}", "connection: close", "", ""]
    return raw(gateway.port, "\r\n".join(lines).encode()).status


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_program_of_this_machine_needs_no_key(gateway: Gateway, method: str, path: str) -> None:
    assert ask(gateway, method, path, JSON).status == 200


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("name", FORWARDED)
def test_what_a_proxy_passed_on_is_refused(gateway: Gateway, method: str, path: str, name: str) -> None:
    answer = ask(gateway, method, path, JSON, (name, FORWARDED[name]))
    assert (answer.status, answer.code) == (403, "forbidden_origin")


@pytest.mark.parametrize("host", HOSTS_HERE)
def test_a_loopback_name_is_a_host(gateway: Gateway, host: str) -> None:
    assert with_host(gateway, host) == 200


@pytest.mark.parametrize("host", HOSTS_ELSEWHERE)
def test_any_other_host_is_refused(gateway: Gateway, host: str) -> None:
    assert with_host(gateway, host) == 403


def test_a_host_is_read_whole_when_it_comes_twice(gateway: Gateway) -> None:
    request = b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\nconnection: close\r\n\r\n"
    assert raw(gateway.port, request).status in {400, 403}


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:3000", f"{PAGE}.evil.example"])
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_page_that_is_not_allowed_is_refused(gateway: Gateway, method: str, path: str, origin: str) -> None:
    answer = ask(gateway, method, path, JSON, ("origin", origin))
    assert (answer.status, answer.headers.get("access-control-allow-origin")) == (403, None)


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_an_allowed_page_is_let_in(gateway: Gateway, method: str, path: str) -> None:
    answer = ask(gateway, method, path, JSON, ("origin", PAGE))
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, PAGE)


@pytest.mark.parametrize(("origin", "status"), [(PAGE, 200), ("https://evil.example", 400)])
def test_a_preflight_is_for_allowed_pages(gateway: Gateway, origin: str, status: int) -> None:
    asked = [("origin", origin), ("access-control-request-method", "POST")]
    assert ask(gateway, "OPTIONS", CHAT, *asked).status == status


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
@pytest.mark.parametrize("path", [path for method, path in ROUTES if method == "POST"])
def test_a_post_that_any_page_can_make_is_refused(gateway: Gateway, upstreams: Upstreams, path: str, kind: str) -> None:
    before = len(upstreams.requests("alpha"))
    answer = ask(gateway, "POST", path, *([("content-type", kind)] if kind else []))
    assert (answer.status, answer.code) == (415, "unsupported_media_type")
    assert len(upstreams.requests("alpha")) == before


def test_the_admin_api_still_wants_its_token(gateway: Gateway) -> None:
    assert gateway.get("/api/status").status == 401
    assert gateway.get("/api/status", token=ADMIN).status == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "gateway.example"])
def test_it_does_not_start_on_any_other_listener(tmp_path: Path, host: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TROY_PORT": "0", "TROY_AUTH": "off", "TROY_HOST": host}
    command = [sys.executable, "-m", "troyproxy", "serve"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, timeout=40, check=False)
    assert done.returncode != 0
    assert b"TROY_AUTH" in done.stderr
