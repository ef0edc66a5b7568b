"""Field cases SSE-01 to SSE-07: however a stream is cut and spelled, the client reads the same events."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from openai import OpenAI

from tests.e2e.cases.house import (
    data_of,
    ended,
    events_of,
    finishes_of,
    locks,
    posted,
    provider,
    streamed,
    text_of,
    tokens,
)
from tests.e2e.cases.reads import ASK_USAGE, DONE, OK, STOP, TOOLS, USAGE, each_byte, said, splits, with_line_ends
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.until import until
from tests.e2e.upstreams import CUT, Gate, Step, Upstreams, stream

CITY: Final = "北京🙂"
CITY_READS: Final = (
    b'data: {"choices":[{"index":0,"delta":{"content":"\xe5',
    b"\x8c\x97\xe4\xba\xac\xf0\x9f",
    b'\x99\x82"},"finish_reason":null}]}\n\n',
    STOP,
    DONE,
)
IN_A_TOOL_CALL: Final = (
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":'
    b'{"name":"w","arguments":"\xe5\x8c\x97\xe4\xba\xac\xf0\x9f\x99\x82"}}]},"finish_reason":null}]}\n\n'
)
IN_REASONING: Final = (
    b'data: {"choices":[{"index":0,"delta":{"reasoning_content":"\xe5\x8c\x97\xe4\xba\xac\xf0\x9f\x99\x82"},'
    b'"finish_reason":null}]}\n\n'
)
CITY_BODY: Final = b"".join(CITY_READS)
CITY_BODIES: Final = {
    "content": CITY_BODY,
    "tool call": IN_A_TOOL_CALL + STOP + DONE,
    "reasoning": IN_REASONING + STOP + DONE,
}
ODD: Final = (said(b"a\xe2\x80\xa8b\xc2\x85c\xe2\x80\xa9d"), STOP, USAGE, DONE)
NO_SPACE: Final = tuple(read.replace(b"data: ", b"data:") for read in (OK, STOP, USAGE, DONE))
PINGS: Final = (
    *(b": PROCESSING\n\n", b": PROCESSING\n\n", b"data: : keepalive\n\n"),
    *(b"event: ping\ndata: {}\n\n", b"retry: 3000\nid: 7\n\n"),
)
FOUR: Final = (OK, STOP, USAGE, DONE)


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    with run_gateway(
        folder, {"providers": {"alpha": provider(upstreams, "alpha", models={"sse05-held": {}, "sse07": {}})}}
    ) as running:
        yield running


def received(gateway: Gateway, upstreams: Upstreams, model: str, *reads: Step, **more: object) -> bytes:
    """Return what the client gets of one stream of exactly these reads."""
    upstreams.script("alpha", stream(*reads), model=model)
    answer = streamed(gateway, f"alpha/{model}", **more)
    assert answer.status == 200, answer.body
    return answer.body


def is_well(gateway: Gateway, model: str) -> bool:
    """Whether no failure is held against the model."""
    return not locks(gateway, "alpha", model)


def test_sse_01_reads_that_cut_characters_leave_them_whole(gateway: Gateway, upstreams: Upstreams) -> None:
    body = received(gateway, upstreams, "sse01", *CITY_READS, **ASK_USAGE)
    assert text_of(body) == CITY
    assert body == CITY_BODY


@pytest.mark.parametrize(
    ("kind", "tools"), [("content", []), ("content", TOOLS), ("tool call", TOOLS), ("reasoning", TOOLS)]
)
def test_sse_01_a_cut_anywhere_changes_nothing(
    gateway: Gateway, upstreams: Upstreams, kind: str, tools: list[object]
) -> None:
    body, model = CITY_BODIES[kind], f"sse01-{kind}-{len(tools)}"
    cuts = [*splits(body), each_byte(body)]
    upstreams.script("alpha", *(stream(*reads) for reads in cuts), model=model)
    bodies = {streamed(gateway, f"alpha/{model}", tools=tools).body for _ in cuts}
    assert bodies == {body}


def test_sse_01_a_stream_that_ends_inside_a_character_loses_only_that_tail(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    body = received(gateway, upstreams, "sse01-tail", OK, CITY_READS[0], CUT)
    first, error = events_of(body)
    assert text_of(body) == "ok"
    assert first == json.loads(OK[6:])
    assert error["error"]["code"] == "upstream_disconnected"


def test_sse_02_characters_that_python_takes_for_line_ends_cut_no_event(gateway: Gateway, upstreams: Upstreams) -> None:
    body = received(gateway, upstreams, "sse02", *ODD, **ASK_USAGE)
    assert body == b"".join(ODD)
    assert text_of(body) == "a\u2028b\x85c\u2029d"
    upstreams.script("alpha", stream(*ODD), model="sse02-quiet")
    quiet = streamed(gateway, "alpha/sse02-quiet")
    assert quiet.body == b"".join((ODD[0], STOP, DONE))
    assert tokens(gateway, quiet) == (3, 2)
    assert is_well(gateway, "sse02")


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\xa0", "\ufeff", "\u0000"])
def test_sse_02_every_such_character_passes_to_the_official_client(
    gateway: Gateway, upstreams: Upstreams, client: OpenAI, character: str
) -> None:
    model = f"sse02-{ord(character):x}"
    text = f"a{character}b"
    spelled = json.dumps(text, ensure_ascii=character == "\u0000").encode()[1:-1]
    upstreams.script("alpha", stream(said(spelled), STOP, DONE), model=model)
    body = streamed(gateway, f"alpha/{model}").body
    assert text_of(body) == text
    chunks = client.chat.completions.create(**chat(f"alpha/{model}"), stream=True)  # type: ignore[call-overload]
    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == text


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_sse_04_the_space_behind_the_colon_may_be_missing(gateway: Gateway, upstreams: Upstreams, end: bytes) -> None:
    model = f"sse04-{end.hex()}"
    upstreams.script("alpha", stream(*with_line_ends(NO_SPACE, end)), model=model)
    answer = streamed(gateway, f"alpha/{model}", **ASK_USAGE)
    body = answer.body.replace(end, b"\n")
    assert text_of(body) == "ok"
    assert finishes_of(body) == ["stop"]
    assert events_of(body)[-1]["usage"]["total_tokens"] == 5
    assert ended(body)
    assert tokens(gateway, answer) == (3, 2)
    assert is_well(gateway, model)


@pytest.mark.parametrize("empty", [b"data\n\n", b"data:\n\n", b"data: \n\n", b"data\ndata:\n\n"])
def test_sse_04_an_empty_data_field_is_no_event(gateway: Gateway, upstreams: Upstreams, empty: bytes) -> None:
    model = f"sse04-empty-{empty.hex()}"
    reads = tuple(step for read in NO_SPACE for step in (empty, read))
    body = received(gateway, upstreams, model, *reads, **ASK_USAGE)
    assert body == b"".join(NO_SPACE)
    assert is_well(gateway, model)


def test_sse_04_exactly_one_space_goes(gateway: Gateway, upstreams: Upstreams) -> None:
    reads = tuple(read.replace(b"data: ", b"data:  ") for read in (OK, STOP, DONE))
    body = received(gateway, upstreams, "sse04-two", *reads)
    assert text_of(body) == "ok"
    assert finishes_of(body) == ["stop"]
    assert is_well(gateway, "sse04-two")


def test_sse_05_keep_alives_never_become_data(gateway: Gateway, upstreams: Upstreams, client: OpenAI) -> None:
    reads = (*PINGS, OK, *PINGS, STOP, *PINGS, DONE)
    upstreams.script("alpha", stream(*reads), model="sse05")
    chunks = list(client.chat.completions.create(**chat("alpha/sse05"), stream=True))  # type: ignore[call-overload]
    assert [choice.delta.content for chunk in chunks for choice in chunk.choices] == ["ok", None]
    body = streamed(gateway, "alpha/sse05").body
    assert data_of(body) == [OK[6:].decode().strip(), STOP[6:].decode().strip(), "[DONE]"]
    assert is_well(gateway, "sse05")


def test_sse_05_what_was_dropped_is_told_in_the_log(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", stream(*PINGS, OK, *PINGS, STOP, DONE), model="sse05-log")
    streamed(gateway, "alpha/sse05-log")
    [line] = until(lambda: [line for line in gateway.output().split("\n") if "alpha/sse05-log: dropped" in line])
    assert re.search(r"dropped [24] data lines that were no JSON objects", line)


def test_sse_05_keep_alives_commit_nothing_and_are_no_first_token(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", stream(*PINGS, Gate("sse05"), OK, STOP, DONE), model="sse05-held")
    connection = gateway.send(*posted("alpha/sse05-held", stream=True))
    until(lambda: upstreams.states("alpha", model="sse05-held") == ["open"])
    connection.sock.settimeout(0.2)
    with pytest.raises(TimeoutError):
        connection.sock.recv(1)
    assert gateway.metric("time_to_first_token_seconds_count", model="sse05-held") == 0
    upstreams.open("sse05")
    connection.sock.settimeout(20)
    answer = connection.getresponse()
    assert answer.status == 200
    assert ended(answer.read())
    connection.close()


def test_sse_07_one_read_and_four_reads_are_the_same_stream(gateway: Gateway, upstreams: Upstreams) -> None:
    cuts = [(b"".join(FOUR),), FOUR, *splits(b"".join(FOUR))]
    upstreams.script("alpha", *(stream(*reads) for reads in cuts), model="sse07")
    answers = [streamed(gateway, "alpha/sse07", **ASK_USAGE) for _ in cuts]
    assert {answer.body for answer in answers} == {b"".join(FOUR)}
    assert {tokens(gateway, answer) for answer in answers[:3]} == {(3, 2)}
    until(lambda: gateway.metric("tokens_total", model="sse07", kind="input") == 3 * len(cuts))


def test_sse_07_what_follows_the_end_mark_is_dropped_and_the_connection_is_given_back(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    upstreams.script("alpha", stream(*FOUR, OK, b": more\n\n", Gate("never")), model="sse07-after")
    assert streamed(gateway, "alpha/sse07-after", **ASK_USAGE).body == b"".join(FOUR)
    until(lambda: upstreams.states("alpha", model="sse07-after") == ["left"])
    until(lambda: gateway.metric("account_inflight") == 0)
    assert is_well(gateway, "sse07-after")
