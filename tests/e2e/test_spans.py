"""Spans on the wire: a real gateway sends them to a receiver of OTLP, and tells its upstreams of the trace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.receiver import CLIENT, ERROR, SERVER, Received, Receiver, run_receiver
from tests.e2e.shapes import completion
from tests.e2e.until import until
from tests.e2e.upstreams import Upstreams, error, whole

TRACE: Final = "0af7651916cd43dd8448eb211c80319c"
CALLER: Final = "b7ad6b7169203331"
SAID: Final = "what-nobody-else-may-read"
SECRET: Final = "sk-up-0123456789abcdef"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with run_receiver() as running:
        yield running


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams, receiver: Receiver) -> Iterator[Gateway]:
    config = {
        "providers": {
            name: {"base_url": upstreams.base_url(name), "accounts": [{"name": "main", "api_key": SECRET + name}]}
            for name in ("alpha", "beta")
        },
        "combos": {"daily": {"members": ["alpha/m1", "beta/m2"], "strategy": "fallback"}},
    }
    upstreams.script("alpha", error(429, "slow down", retry_after="60"))
    upstreams.script("beta", whole(completion(SAID)))
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_SERVICE_NAME": "edge-1"}
    with run_gateway(folder, config, TROY_TRACE="1", **env) as running:
        yield running


@pytest.fixture(scope="module")
def request_id(gateway: Gateway) -> str:
    """One request that fails over, and its id."""
    answer = gateway.post(chat("daily", SAID), traceparent=f"00-{TRACE}-{CALLER}-01", tracestate="vendor=1")
    assert answer.status == 200
    return dict(answer.headers)["x-troy-request-id"]


@pytest.fixture
def spans(receiver: Receiver, request_id: str) -> list[Received]:
    """Its spans, and what the receiver got."""
    assert request_id
    return until(lambda: receiver.trace(TRACE) if len(receiver.trace(TRACE)) == 3 else [])


def test_the_receiver_has_the_request_and_its_attempts_as_the_ledger_has_them(
    gateway: Gateway, request_id: str, spans: list[Received]
) -> None:
    request, *attempts = spans
    row = gateway.row(request_id)
    names = ("troy.provider", "gen_ai.request.model", "troy.account", "troy.outcome", "http.response.status_code")
    assert [tuple(span.attributes[name] for name in names) for span in attempts] == [
        tuple(it[name] for name in ("provider", "model", "account", "outcome", "status")) for it in row["attempts"]
    ]
    assert (request.service, request.kind, request.parent_id) == ("edge-1", SERVER, CALLER)
    assert [(span.kind, span.status == ERROR, span.parent_id) for span in attempts] == [
        (CLIENT, True, request.span_id),
        (CLIENT, False, request.span_id),
    ]
    assert request.attributes["troy.request_id"] == request_id


def test_each_upstream_was_told_of_its_attempt_and_of_the_callers_state(
    upstreams: Upstreams, spans: list[Received]
) -> None:
    told = [_headers(upstreams, name) for name in ("alpha", "beta")]
    assert [headers["traceparent"] for headers in told] == [f"00-{TRACE}-{span.span_id}-01" for span in spans[1:]]
    assert [headers["tracestate"] for headers in told] == ["vendor=1", "vendor=1"]


def test_no_prompt_no_answer_and_no_key_is_sent(receiver: Receiver, spans: list[Received]) -> None:
    assert spans
    assert not any(word.encode() in receiver.raw for word in (SAID, SECRET))


def test_the_access_line_and_the_play_by_play_tell_the_same(gateway: Gateway, request_id: str) -> None:
    lines = until(lambda: [line for line in gateway.output().splitlines() if request_id in line and "{" in line])
    line: dict[str, Any] = json.loads(lines[0])
    assert (line["trace_id"], line["attempts"], line["trail"]) == (
        TRACE,
        2,
        "alpha/m1#main=rate,beta/m2#main=ok",
    )
    block = gateway.output().partition(f"── {request_id}\n")[2].partition("\n──")[0]
    said = (
        "model 'daily'",
        "try alpha/m1 #main",
        "rate after",
        "cooldown alpha/m1 #main: 60 s",
        "commit beta/m2",
        "end 200 ok",
    )
    assert [word for word in said if word not in block] == []


def test_what_is_left_at_the_stop_is_delivered(folder: Path, upstreams: Upstreams, receiver: Receiver) -> None:
    provider = {"base_url": upstreams.base_url("beta"), "accounts": [{"name": "main", "api_key": SECRET}]}
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_BSP_SCHEDULE_DELAY": "600000"}
    (folder / "stopped").mkdir()
    with run_gateway(folder / "stopped", {"providers": {"beta": provider}}, **env) as stopped:
        assert stopped.post(chat("beta/m2"), traceparent=f"00-{'5' * 32}-{CALLER}-01").status == 200
    assert [span.kind for span in receiver.trace("5" * 32)] == [SERVER, CLIENT]


def _headers(upstreams: Upstreams, name: str) -> dict[str, str]:
    """Return the headers of the first request of the trace that *name* got."""
    told = (dict(request.headers) for request in upstreams.requests(name))
    return next(headers for headers in told if TRACE in headers["traceparent"])
