"""SIGTERM with a stream in flight: it finishes, its row is written, and the process ends well."""

from __future__ import annotations

import http.client
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.client import Open
from tests.e2e.gateway import CHAT, Gateway, chat, client_headers, run_gateway
from tests.e2e.shapes import DONE, delta, dumps, usage_event
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, Gate, Upstreams, behind, stream


@pytest.fixture
def gateway(tmp_path: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none"}}}
    with run_gateway(tmp_path, config, TROY_SHUTDOWN_S="30") as running:
        yield running


def refuses(gateway: Gateway) -> bool:
    """Whether a new client is told to go elsewhere."""
    try:
        return gateway.get("/readyz").status == 503
    except (OSError, http.client.HTTPException):
        return True  # nobody listens; on loopback a connection to a free port may even meet itself


def test_a_stream_in_flight_finishes_and_its_row_is_written(gateway: Gateway, upstreams: Upstreams) -> None:
    first, last = delta("one"), delta("two", finish="stop")
    upstreams.script("alpha", stream(first, Gate("goes on"), last, usage_event(), DONE), model="long")
    with closing(gateway.stream(chat("alpha/long"))) as answer:
        got = b""
        while len(got) < len(first):
            got += answer.read()
        gateway.signal(signal.SIGTERM)
        until(lambda: refuses(gateway))
        upstreams.open("goes on")
        assert got + answer.rest() == first + last + DONE
        request_id = answer.headers["x-troy-request-id"]
    assert gateway.wait() == 0
    row = gateway.row(request_id)
    assert (row["outcome"], row["status"], row["output_tokens"]) == ("ok", 200, 3)


def test_a_whole_answer_in_flight_arrives(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", behind("whole goes on"), model="slow")
    connection = gateway.send("POST", CHAT, dumps(chat("alpha/slow")), client_headers())
    until(lambda: upstreams.requests("alpha", model="slow"))
    gateway.signal(signal.SIGTERM)
    until(lambda: refuses(gateway))
    upstreams.open("whole goes on")
    with closing(Open(connection)) as answer:
        assert answer.status == 200
        assert b"waited for" in answer.rest()
    assert gateway.wait() == 0


def test_an_idle_gateway_ends_at_once_with_status_0(gateway: Gateway) -> None:
    gateway.signal(signal.SIGTERM)
    assert gateway.wait() == 0


def test_a_gateway_that_drains_serves_who_comes_and_tells_them_to_go_elsewhere(
    tmp_path: Path, upstreams: Upstreams
) -> None:
    upstreams.script("alpha", HEALTHY)
    config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none"}}}
    with run_gateway(tmp_path, config, TROY_DRAIN_S="600") as gateway:
        gateway.signal(signal.SIGTERM)
        until(lambda: gateway.get("/readyz").status == 503)
        answer = gateway.post(chat("alpha/any"))
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        gateway.signal(signal.SIGINT)
        assert gateway.wait() == 0
