"""Field cases SSE-08 to SSE-12: huge events, what is an error and what only looks like one, usage in odd places."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cases.house import (
    circuit,
    data_of,
    ended,
    errors_of,
    events_of,
    failures,
    locks,
    provider,
    streamed,
    text_of,
    tokens,
)
from tests.e2e.cases.reads import ASK_USAGE, DONE, OK, STOP, USAGE, said
from tests.e2e.client import Response
from tests.e2e.gateway import Gateway, run_gateway
from tests.e2e.until import until
from tests.e2e.upstreams import Drip, Step, Upstreams, stream

READ: Final = 16 << 10
MIB: Final = 1 << 20
ARGUMENTS: Final = b"x" * 3_000_000
HUGE: Final = (
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function",'
    b'"function":{"name":"w","arguments":"' + ARGUMENTS + b'"}}]}}]}\n\n'
)
TALK: Final = b'set \\"error\\" to {\\"code\\":429}'
FALSE_ALARM: Final = (
    said(TALK, error=b"null"),
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"error":null}\n\n',
    USAGE,
    DONE,
)
PARTIAL: Final = (
    said(b"a", usage=b"null"),
    said(b"b", usage=b'{"prompt_tokens_details":{"cached_tokens":0}}'),
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}\n\n',
    (
        b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,'
        b'"prompt_tokens_details":null}}\n\n'
    ),
    DONE,
)
RUNNING: Final = (
    said(b"a", usage=b'{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}'),
    said(b"b", usage=b'{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}'),
    (
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}\n\n'
    ),
    (
        b'data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12,'
        b'"prompt_tokens_details":{"cached_tokens":8}}}\n\n'
    ),
    DONE,
)
ODD_USAGES: Final = (
    *(
        "null",
        "{}",
        "[]",
        "0",
        '"5"',
        "true",
        '{"prompt_tokens":null}',
        '{"prompt_tokens":"3","completion_tokens":"2"}',
    ),
    *('{"total_tokens":-1}', '{"prompt_tokens":1.5}', '{"prompt_tokens":1e400}', '{"prompt_tokens":true}'),
    *('{"prompt_tokens_details":{"cached_tokens":"x"}}', '{"completion_tokens_details":[]}', '{"prompt_tokens":NaN}'),
)
NO_ERRORS: Final = ("null", '""', "false", "[]", '{"code":429}', '"rate limit"', "0", '{"message":null}')
ERRORS: Final = ('{"message":"overloaded","code":503}', '"overloaded"', '{"code":"429"}', '{"message":"x","code":null}')
COUNTED: Final = ("sse08-endless", "sse12")


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    alpha = provider(upstreams, "alpha", models={name: {} for name in COUNTED})
    with run_gateway(folder, {"providers": {"alpha": alpha}}) as running:
        yield running


def received(gateway: Gateway, upstreams: Upstreams, model: str, *reads: Step, **more: object) -> Response:
    """Return what the client gets of one stream of exactly these reads."""
    upstreams.script("alpha", stream(*reads), model=model)
    answer = streamed(gateway, f"alpha/{model}", **more)
    assert answer.status == 200, answer.body
    return answer


def test_sse_08_an_event_of_3_mb_is_delivered_whole(gateway: Gateway, upstreams: Upstreams) -> None:
    reads = [HUGE[at : at + READ] for at in range(0, len(HUGE), READ)]
    body = received(gateway, upstreams, "sse08", *reads, STOP, DONE).body
    assert body == HUGE + STOP + DONE
    (call,) = events_of(body)[0]["choices"][0]["delta"]["tool_calls"]
    assert call["function"]["arguments"].encode() == ARGUMENTS


def test_sse_08_a_line_without_end_is_cut_at_16_mib_and_counted(gateway: Gateway, upstreams: Upstreams) -> None:
    endless = Drip(b"x" * (4 * MIB), 0.0)
    body = received(gateway, upstreams, "sse08-endless", OK, b'data: {"choices":"', endless).body
    assert text_of(body) == "ok"
    assert [error["code"] for error in errors_of(body)] == ["stream_too_large"]
    assert "[DONE]" not in data_of(body)
    assert len(body) < MIB
    until(lambda: upstreams.states("alpha", model="sse08-endless") == ["left"])
    until(lambda: failures(gateway, "alpha", "sse08-endless", "transient") == 1)
    assert locks(gateway, "alpha", "sse08-endless")


def test_sse_10_text_about_errors_is_no_error(gateway: Gateway, upstreams: Upstreams) -> None:
    answer = received(gateway, upstreams, "sse10", *FALSE_ALARM, **ASK_USAGE)
    assert answer.body == b"".join(FALSE_ALARM)
    assert text_of(answer.body) == 'set "error" to {"code":429}'
    assert tokens(gateway, answer) == (3, 2)
    assert answer.headers["x-troy-attempts"] == "1"
    assert not locks(gateway, "alpha", "sse10")


@pytest.mark.parametrize("place", ["first", "later"])
@pytest.mark.parametrize("value", NO_ERRORS)
def test_sse_10_an_error_beside_usable_choices_never_ends_a_stream(
    gateway: Gateway, upstreams: Upstreams, value: str, place: str
) -> None:
    model = f"sse10-{place}-{NO_ERRORS.index(value)}"
    odd = said(b"a", error=value.encode())
    reads = (*([] if place == "first" else [OK]), odd, STOP, DONE)
    answer = received(gateway, upstreams, model, *reads)
    assert answer.body == b"".join(reads)
    assert not locks(gateway, "alpha", model)


@pytest.mark.parametrize("choices", ["", ',"choices":[]', ',"choices":null'])
@pytest.mark.parametrize("value", ERRORS)
def test_sse_10_an_error_without_choices_is_one(
    gateway: Gateway, upstreams: Upstreams, value: str, choices: str
) -> None:
    model = f"sse10-error-{ERRORS.index(value)}-{len(choices)}"
    event = f'data: {{"error":{value}{choices}}}\n\n'.encode()
    body = received(gateway, upstreams, model, OK, event, DONE).body
    assert text_of(body) == "ok"
    assert [error["code"] for error in errors_of(body)] == ["upstream_error"]
    assert "[DONE]" not in data_of(body)


def test_sse_11_null_and_partial_usage_is_no_report(gateway: Gateway, upstreams: Upstreams) -> None:
    answer = received(gateway, upstreams, "sse11", *PARTIAL, **ASK_USAGE)
    assert text_of(answer.body) == "ab"
    assert ended(answer.body)
    assert tokens(gateway, answer) == (3, 2)
    assert gateway.row(answer.headers["x-troy-request-id"])["tokens_estimated"] == 0


@pytest.mark.parametrize("asks", [{}, ASK_USAGE], ids=["quiet", "asking"])
@pytest.mark.parametrize("odd", ODD_USAGES)
def test_sse_11_an_odd_report_neither_crashes_nor_replaces_a_good_one(
    gateway: Gateway, upstreams: Upstreams, odd: str, asks: dict[str, object]
) -> None:
    model = f"sse11-{ODD_USAGES.index(odd)}-{len(asks)}"
    strange = said(b"a", usage=odd.encode())
    tail = b'data: {"choices":[],"usage":' + odd.encode() + b"}\n\n"
    answer = received(gateway, upstreams, model, strange, STOP, USAGE, tail, DONE, **asks)
    assert text_of(answer.body) == "a"
    assert ended(answer.body)
    assert tokens(gateway, answer) == (3, 2)
    assert not locks(gateway, "alpha", model)


@pytest.mark.parametrize("odd", ODD_USAGES)
def test_sse_11_odd_reports_alone_leave_an_estimate(gateway: Gateway, upstreams: Upstreams, odd: str) -> None:
    model = f"sse11-alone-{ODD_USAGES.index(odd)}"
    answer = received(gateway, upstreams, model, said(b"a", usage=odd.encode()), STOP, DONE)
    assert ended(answer.body)
    row = gateway.row(answer.headers["x-troy-request-id"])
    assert (row["outcome"], row["tokens_estimated"]) == ("ok", 1)


def test_sse_12_running_totals_are_counted_once(gateway: Gateway, upstreams: Upstreams) -> None:
    answer = received(gateway, upstreams, "sse12", *RUNNING)
    row = gateway.row(answer.headers["x-troy-request-id"])
    assert (row["input_tokens"], row["output_tokens"], row["cached_tokens"]) == (10, 2, 8)
    until(lambda: gateway.metric("tokens_total", model="sse12", kind="input"))
    counted = {kind: gateway.metric("tokens_total", model="sse12", kind=kind) for kind in ("input", "output", "cached")}
    assert counted == {"input": 10, "output": 2, "cached": 8}
    assert text_of(answer.body) == "ab"
    assert not [event for event in events_of(answer.body) if "usage" in event]
    assert ended(answer.body)


def test_sse_12_a_stream_that_is_cut_is_charged_its_last_running_total(gateway: Gateway, upstreams: Upstreams) -> None:
    answer = received(gateway, upstreams, "sse12-cut", *RUNNING[:2], b": end\n\n")
    assert [error["code"] for error in errors_of(answer.body)] == ["upstream_disconnected"]
    assert tokens(gateway, answer) == (10, 2)
    assert json.loads(data_of(answer.body)[0])["choices"][0]["delta"]["content"] == "a"
    assert circuit(gateway, "alpha", "sse12-cut") == "closed"
