"""Field cases SF-02 to SF-08: before output a stream may go elsewhere, and a client that leaves ends it all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cases.house import (
    calls,
    circuit,
    combo,
    data_of,
    ended,
    errors_of,
    failures,
    locks,
    posted,
    provider,
    streamed,
    text_of,
)
from tests.e2e.cases.reads import ASK_USAGE, DONE, OK, ROLE, STOP, USAGE, said
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.until import until
from tests.e2e.upstreams import CUT, HANG, HEALTHY, RST, SILENCE, Act, Drip, Pause, Reply, Step, Upstreams, stream

JSON: Final = (("content-type", "application/json"),)
OVERLOADED: Final = b'data: {"error":{"message":"overloaded","type":"server_error","code":503}}\n\n'
PING: Final = b": ping\n\n"
EMPTY: Final = (ROLE, STOP, USAGE.replace(b':2,"total_tokens":5', b':0,"total_tokens":3'), DONE)
WELL: Final = (ROLE, OK, STOP, DONE)
MOMENTS: Final[dict[str, Reply]] = {
    "before the head": HANG,
    "in the head": Reply(framing="raw", steps=(b"HTTP/1.1 200 OK\r\ncontent-ty", SILENCE)),
    "behind the head of a stream": stream(SILENCE),
    "behind a role": stream(ROLE, SILENCE),
    "among keep-alives": stream(Drip(PING, 0.05)),
    "behind the head of an answer": Reply(200, JSON, (SILENCE,)),
    "in the body of an answer": Reply(200, JSON, (b'{"choices":[', SILENCE)),
    "in the body of an error": Reply(503, JSON, (b'{"error":', SILENCE)),
}
LATE: Final[dict[str, Step]] = {
    "an error event": OVERLOADED,
    "an error that is a string": b'data: {"error":"overloaded"}\n\n',
    "a reset": RST,
    "a cut": CUT,
    "an end": DONE,
    "no JSON": b"data: {]\n\n",
}
KEEP_ALIVES: Final[dict[str, Step]] = {
    "comments": Drip(PING, 0.2),
    "named pings": Drip(b"event: ping\ndata: {}\n\n", 0.2),
    "empty data": Drip(b"data:\n\n", 0.2),
    "half an event": Drip(b" ", 0.2),
    "silence": Act("hang"),
}
COUNTED: Final = ("sf03", *(f"sf05-{at}" for at in range(len(LATE))), *(f"sf08-{at}" for at in range(len(KEEP_ALIVES))))


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    both = [*(f"sf02-{at}-{streams:d}" for at in range(len(MOMENTS)) for streams in (False, True)), *COUNTED]
    config = {
        "providers": {
            name: provider(upstreams, name, models={model: {} for model in COUNTED}) for name in ("alpha", "beta")
        },
        "combos": {f"c-{model}": combo(f"alpha/{model}", f"beta/{model}") for model in both},
    }
    limits = {"TROY_STREAM_IDLE_MS": "1000", "TROY_FIRST_OUTPUT_MS": "10000"}
    with run_gateway(folder, config, **limits) as running:
        yield running


@pytest.mark.parametrize("streams", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_sf_02_a_client_that_leaves_before_output_ends_it_all(
    gateway: Gateway, upstreams: Upstreams, moment: str, streams: bool
) -> None:
    model = f"sf02-{list(MOMENTS).index(moment)}-{streams:d}"
    upstreams.script("alpha", MOMENTS[moment], model=model)
    connection = gateway.send(*posted(f"c-{model}", stream=streams))
    until(lambda: upstreams.states("alpha", model=model) == ["open"])
    connection.close()
    until(lambda: upstreams.states("alpha", model=model) == ["left"])
    until(lambda: gateway.metric("inflight_requests") == 0)
    assert gateway.metric("account_inflight") == 0
    assert calls(upstreams, f"beta/{model}") == [0]
    assert not locks(gateway, "alpha", model)


def test_sf_03_ten_clients_that_leave_say_nothing_about_the_upstream(gateway: Gateway, upstreams: Upstreams) -> None:
    slow = stream(ROLE, *(step for _ in range(100) for step in (said(b"tick"), Pause(0.1))), STOP, DONE)
    upstreams.script("alpha", *[slow] * 10, HEALTHY, model="sf03")
    before = gateway.metric("requests_total", outcome="cancelled", status="499")
    for _ in range(10):
        with closing(gateway.stream(chat("alpha/sf03"))) as answer:
            assert answer.read()
    until(lambda: upstreams.states("alpha", model="sf03") == ["left"] * 10)
    until(lambda: gateway.metric("requests_total", outcome="cancelled", status="499") == before + 10)
    assert not locks(gateway, "alpha", "sf03")
    assert circuit(gateway, "alpha", "sf03") == "closed"
    after = streamed(gateway, "alpha/sf03")
    assert (after.status, after.headers["x-troy-attempts"]) == (200, "1")
    assert calls(upstreams, "alpha/sf03") == [11]
    assert gateway.metric("attempts_total", model="sf03", outcome="failed") == 0


@pytest.mark.parametrize("end", LATE)
def test_sf_05_a_role_commits_to_nobody(gateway: Gateway, upstreams: Upstreams, end: str) -> None:
    model = f"sf05-{list(LATE).index(end)}"
    upstreams.script("alpha", stream(ROLE, LATE[end]), model=model)
    upstreams.script("beta", stream(*WELL), model=model)
    answer = streamed(gateway, f"c-{model}")
    assert (answer.status, answer.body) == (200, b"".join(WELL))
    assert answer.headers["x-troy-model"] == f"beta/{model}"
    until(lambda: gateway.metric("attempts_total", provider="alpha", model=model, outcome="failed") == 1)
    assert locks(gateway, "alpha", model)


def test_sf_05_alone_the_failure_has_its_true_status(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", stream(ROLE, OVERLOADED), model="sf05-alone")
    answer = streamed(gateway, "alpha/sf05-alone")
    assert (answer.status, answer.headers["content-type"]) == (503, "application/json")
    assert answer.json()["error"]["message"] == "overloaded"


def test_sf_06_an_empty_answer_with_a_finish_reason_is_delivered(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", stream(*EMPTY), model="sf06")
    answer = streamed(gateway, "alpha/sf06", **ASK_USAGE)
    assert (answer.status, answer.body) == (200, b"".join(EMPTY))
    assert answer.headers["x-troy-attempts"] == "1"
    assert not locks(gateway, "alpha", "sf06")


@pytest.mark.parametrize("kind", KEEP_ALIVES)
def test_sf_08_keep_alives_do_not_stop_the_idle_clock(gateway: Gateway, upstreams: Upstreams, kind: str) -> None:
    model = f"sf08-{list(KEEP_ALIVES).index(kind)}"
    upstreams.script("alpha", stream(said(b"a"), KEEP_ALIVES[kind]), model=model)
    body = streamed(gateway, f"alpha/{model}").body
    assert text_of(body) == "a"
    assert [(error["code"], error["message"]) for error in errors_of(body)] == [
        ("timeout", "upstream idle for over 1000 ms")
    ]
    assert "[DONE]" not in data_of(body)
    until(lambda: upstreams.states("alpha", model=model) == ["left"])
    until(lambda: failures(gateway, "alpha", model, "transient") == 1)


def test_sf_08_before_the_first_output_keep_alives_run_against_its_own_limit(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    pings = [step for _ in range(15) for step in (PING, Pause(0.2))]
    upstreams.script("alpha", stream(*pings, *WELL), model="sf08-slow")
    answer = streamed(gateway, "alpha/sf08-slow")
    assert (answer.status, text_of(answer.body)) == (200, "ok")
    assert ended(answer.body)
    assert not locks(gateway, "alpha", "sf08-slow")
