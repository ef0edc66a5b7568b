"""Streams always ask their upstream for usage; a client that did not ask sees everything but that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.shapes import DONE, delta, role, usage_event
from tests.e2e.until import until
from tests.e2e.upstreams import Reply, Upstreams, stream

USAGE: Final = {
    "prompt_tokens": 21,
    "completion_tokens": 9,
    "total_tokens": 30,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
ODD: Final = (
    'data: {"choices":[{"index":0,"delta":{"content":"a\u2028b \\ud83d\\ude42 北京"},"finish_reason":null}]}\r\n\r\n'
)
BEFORE: Final = (role(), delta("one "), ODD.encode(), b": a comment\n\n", delta(" two"), delta(finish="stop"))
EVENTS: Final = (*BEFORE, usage_event(USAGE), DONE)
EXPECTED: Final = b"".join((*BEFORE, DONE))
TOTALS: Final = {"input_tokens": 21, "output_tokens": 9, "cached_tokens": 4, "reasoning_tokens": 2}
ALL: Final = b"".join(EVENTS)
CUTS: Final = {
    "event by event": EVENTS,
    "at once": (ALL,),
    "in reads of 7": tuple(ALL[at : at + 7] for at in range(0, len(ALL), 7)),
}


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none"}}}
    with run_gateway(folder, config) as running:
        yield running


def received(gateway: Gateway, upstreams: Upstreams, model: str, reply: Reply, **more: object) -> tuple[bytes, str]:
    """Return the bytes that the client gets, and the request's id."""
    upstreams.script("alpha", reply, model=model)
    with closing(gateway.stream(chat(f"alpha/{model}") | more)) as answer:
        assert answer.status == 200
        return answer.rest(), answer.headers["x-troy-request-id"]


@pytest.mark.parametrize("reads", CUTS.values(), ids=CUTS)
def test_a_client_that_did_not_ask_gets_every_byte_but_the_usage_event(
    gateway: Gateway, upstreams: Upstreams, reads: tuple[bytes, ...]
) -> None:
    body, request_id = received(gateway, upstreams, f"quiet-{len(reads)}", stream(*reads))
    assert body == EXPECTED
    row = gateway.row(request_id)
    assert {name: row[name] for name in TOTALS} == TOTALS
    assert (row["outcome"], row["tokens_estimated"]) == ("ok", 0)


def test_a_client_that_asked_gets_every_byte(gateway: Gateway, upstreams: Upstreams) -> None:
    body, request_id = received(
        gateway,
        upstreams,
        "asked",
        stream(*EVENTS),
        stream_options={"include_usage": True, "include_obfuscation": False},
    )
    assert body == ALL
    assert gateway.row(request_id)["input_tokens"] == 21


def test_the_upstream_is_always_asked(gateway: Gateway, upstreams: Upstreams) -> None:
    received(gateway, upstreams, "options", stream(*EVENTS), stream_options={"include_obfuscation": False})
    sent = upstreams.requests("alpha", model="options")[0].json
    assert sent["stream_options"] == {"include_obfuscation": False, "include_usage": True}


def test_usage_beside_a_finish_reason_is_cut_out_and_the_reason_survives(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    events = (delta("one"), delta(finish="length", usage=USAGE), DONE)
    body, request_id = received(gateway, upstreams, "beside", stream(*events))
    assert body == delta("one") + delta(finish="length") + DONE
    assert gateway.row(request_id)["output_tokens"] == 9


def test_a_whole_answer_is_passed_on_as_it_is_and_counted(gateway: Gateway, upstreams: Upstreams) -> None:
    answer = gateway.post(chat("alpha/whole"))
    row = gateway.row(answer.headers["x-troy-request-id"])
    assert answer.json()["usage"]["total_tokens"] == 10
    assert (row["input_tokens"], row["output_tokens"], row["stream"]) == (7, 3, 0)


def test_the_story_of_a_request_can_be_read_back(gateway: Gateway, upstreams: Upstreams) -> None:
    _, request_id = received(gateway, upstreams, "story", stream(*EVENTS))
    path = f"/api/requests/{request_id}"
    until(lambda: gateway.admin("GET", path).status == 200)
    story = gateway.admin("GET", path).body
    assert request_id.encode() in story
    assert b"alpha/story#alpha-keyless=ok" in story


def test_the_tokens_are_in_the_metrics(gateway: Gateway, upstreams: Upstreams) -> None:
    received(gateway, upstreams, "counted", stream(*EVENTS))
    until(lambda: gateway.metric("tokens_total", provider="alpha", kind="output") >= 9)
    assert gateway.metric("tokens_total", provider="alpha", kind="input") >= 21
