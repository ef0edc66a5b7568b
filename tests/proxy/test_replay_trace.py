from __future__ import annotations

import io
import json

import pytest

from tests.proxy.rig import Rig
from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.auto.fitness import Task
from troyproxy.auto.gist import Gist
from troyproxy.catalog.keys import Key
from troyproxy.proxy.replay import trace
from troyproxy.proxy.replay.trace import (
    Target,
    TracedKey,
    TracedRequest,
    TraceError,
    head_line,
    lines_of,
    read_trace,
    request_line,
    routed,
    traced,
)
from troyproxy.proxy.rows import row_of
from troyproxy.routing.needs import Needs

HEAD = head_line(exported_at=10.0, since=0.0)
ATTEMPT = AttemptRecord("alpha", "m1", "A", "rate", 429, 1.0, 20.0, "429: rate", 3.0, Usage(1, 2), 1.5)
REQUEST = TracedRequest(
    request_id="req_1",
    at=1.0,
    model="daily",
    stream=True,
    seed=str(2**64 - 1),
    needs=Needs(tools=True, est_tokens=12),
    headers={"x-troy-mode": "fast"},
    auto=Gist(Task.CODING, 12.5, tools=True),
    key=TracedKey("k1", "alpha", ("daily", "auto/*")),
    attempts=(ATTEMPT,),
    skipped=(("beta/m2", "circuit"),),
    served=Target("alpha", "m1", "A"),
    outcome="truncated",
    usage=Usage(3, 4),
    cost_usd=0.5,
    duration_ms=30.0,
    first_token_ms=20.0,
)


def read(*lines: bytes) -> list[TracedRequest]:
    return list(read_trace(lines, "t.jsonl"))


def changed(**fields: object) -> bytes:
    return json.dumps({**json.loads(request_line(REQUEST)), **fields}).encode()


def test_a_request_comes_back_as_it_was_written() -> None:
    assert read(HEAD, request_line(REQUEST)) == [REQUEST]


def test_the_head_names_the_version() -> None:
    assert json.loads(HEAD) == {"trace": "troyproxy", "version": 1, "exported_at": 10.0, "since": 0.0}


def test_what_a_later_version_adds_is_ignored_and_blank_lines_too() -> None:
    assert read(b"\n", HEAD, b"  \n", changed(mood="good")) == [REQUEST]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((), "t.jsonl: is empty"),
        ((b"{}",), "t.jsonl:1: is not the head of a trace"),
        ((b'{"trace": "other", "version": 1}',), "trace is 'other'; allowed: troyproxy"),
        ((b'{"trace": "troyproxy", "version": 2}',), "version 2 is unknown; this program reads version 1"),
        ((HEAD, b"{"), "t.jsonl:2: "),
        ((HEAD, b"\xff"), "t.jsonl:2: "),
        ((HEAD, b"[" * 100_000), "t.jsonl:2: "),
        (
            (
                HEAD,
                changed(deep=json.loads("[" * 500 + "]" * 500))[:-1] + b', "x": ' + b"[" * 9999 + b"]" * 9999 + b"}",
            ),
            "deep",
        ),
        ((HEAD, b'{"at": 1}'), "t.jsonl:2: Object missing required field `request_id`"),
        ((HEAD, changed(at="now")), r"t.jsonl:2: Expected `float`, got `str` - at `$.at`"),
        ((HEAD, changed(at=-1.0)), "came before the request of the line above"),
        ((HEAD, changed(duration_ms=-1.0)), "is below 0"),
        ((HEAD, changed(seed="x")), "seed is 'x'"),
        ((HEAD, changed(), changed(at=0.5)), "t.jsonl:3: came before the request of the line above"),
        ((HEAD, changed(attempts=[{**json.loads(request_line(REQUEST))["attempts"][0], "outcome": "odd"}])), "odd"),
    ],
)
def test_a_bad_line_is_named_with_its_file_and_number(lines: tuple[bytes, ...], told: str) -> None:
    with pytest.raises(TraceError) as raised:
        read(*lines)
    assert told in str(raised.value)


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "LONGEST_LINE", 10)
    with pytest.raises(TraceError, match=r"t\.jsonl:2: is longer than 10 bytes"):
        list(lines_of(io.BytesIO(b"short\n" + b"x" * 20), "t.jsonl"))


def row(**fields: object) -> UsageRow:
    base: dict[str, object] = {"request_id": "r", "at": 1.0, "route": "/v1/chat/completions", "key_id": "k1"}
    base |= {"key_name": "ci", "requested_model": "daily", "combo": None, "strategy": None, "stream": False}
    return UsageRow(**{**base, "status": 200, "outcome": "ok", **fields})  # type: ignore[arg-type]  # fields by name


def test_a_row_is_traced_with_the_key_that_is_known_now() -> None:
    kept = traced(row(seed=7), Key("k1", "ci", b"digest", ("daily",), "alpha"))
    assert kept.key == TracedKey("k1", "alpha", ("daily",))
    assert kept.seed == "7"


def test_a_row_of_a_key_that_is_gone_names_it_alone() -> None:
    assert traced(row(), None).key == TracedKey("k1")


def test_a_row_without_a_key_has_none() -> None:
    assert traced(row(key_id=None), None).key is None


def test_routing_headers_and_the_gist_are_kept_and_no_text() -> None:
    rig = Rig()
    call = rig.call("two", headers={"x-troy-mode": "fast", "x-troy-session": "Jane Doe", "x-troy-task": "a b c !"})
    call.gist = Gist(Task.REVIEW, 3.0, tools=False)
    kept = traced(row_of(call, duration_s=0.1), None)
    assert kept.headers["x-troy-mode"] == "fast"
    assert set(kept.headers) == {"x-troy-mode", "x-troy-session"}
    assert kept.auto == call.gist
    assert b"Jane" not in request_line(kept)


@pytest.mark.parametrize(
    ("fields", "is_routed"),
    [
        ({"attempts": (ATTEMPT,)}, True),
        ({"skipped": (("a/b", "circuit"),), "status": 429}, True),
        ({"status": 503}, True),
        ({"status": 429}, False),
        ({"status": 400, "requested_model": ""}, False),
    ],
)
def test_only_what_came_to_routing_belongs_into_a_trace(fields: dict[str, object], is_routed: bool) -> None:
    assert routed(row(**fields)) is is_routed
