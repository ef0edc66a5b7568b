"""A stream that is cut anywhere, read by the official SDK: the full answer or an exception, never a quiet half."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from openai import APIError, OpenAI

from tests.e2e.gateway import Gateway, chat, run_gateway, sdk
from tests.e2e.shapes import DONE
from tests.e2e.until import until
from tests.e2e.upstreams import CUT, RST, Reply, Step, Upstreams, stream

AT_ONCE: Final = 4
TOOL: Final = {"type": "function", "function": {"name": "w", "parameters": {"type": "object", "properties": {}}}}


def event(finish: str | None = None, index: int = 0, **delta: object) -> bytes:
    """Return one event, as short as they get: each of its bytes is a place to cut."""
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}, separators=(",", ":")).encode() + b"\n\n"


def call(arguments: str, **first: object) -> bytes:
    function = {"arguments": arguments, **({"name": "w"} if first else {})}
    return event(tool_calls=[{"index": 0, "function": function, **first}])


TEXT: Final = (event(role="assistant", content=""), event(content="hé"), event(content="y"), event("stop"), DONE)
CHOICES: Final = (
    *(event(content="a"), event(content="b", index=1), event("stop"), event(content="c", index=1)),
    *(event("length", index=1), DONE),
)
CALL: Final = (call('{"a', id="c1", type="function"), call('":1}'), event("tool_calls"), DONE)
STREAMS: Final = {"text": TEXT, "two choices": CHOICES, "a tool call": CALL}
MORE: Final[dict[str, dict[str, Any]]] = {"text": {}, "two choices": {"n": 2}, "a tool call": {"tools": [TOOL]}}
ENDS: Final[dict[str, tuple[tuple[Step, ...], str]]] = {
    "closed": ((CUT,), "chunked"),
    "reset": ((RST,), "chunked"),
    "ended": ((), "chunked"),
    "closed without framing": ((CUT,), "close"),
}
CASES: Final = [*(("text", end) for end in ENDS), ("two choices", "closed"), ("a tool call", "closed")]


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none"}}}
    with run_gateway(folder, config) as running:
        yield running


def whole_at(kind: str) -> int:
    """Return the length from which on a stream has everything but its end mark."""
    return len(b"".join(STREAMS[kind][:-1]))


def cut(kind: str, at: int, end: str) -> Reply:
    """Return the first *at* bytes of a stream, and this end."""
    steps, framing = ENDS[end]
    return stream(b"".join(STREAMS[kind])[:at], *steps, framing=framing)


def heard(client: OpenAI, model: str, kind: str) -> object:
    """Return what an application makes of a stream: text, calls and finish reason of each choice, or the exception."""
    text: dict[int, str] = defaultdict(str)
    finishes: dict[int, str] = {}
    try:
        for chunk in client.chat.completions.create(**chat(model), stream=True, **MORE[kind]):  # type: ignore[call-overload]
            for choice in chunk.choices:
                text[choice.index] += choice.delta.content or ""
                text[choice.index] += "".join(it.function.arguments for it in choice.delta.tool_calls or ())
                finishes.update({choice.index: choice.finish_reason} if choice.finish_reason else {})
    except APIError as exc:
        return exc
    return dict(text), finishes


WHOLE: Final[dict[str, object]] = {
    "text": ({0: "héy"}, {0: "stop"}),
    "two choices": ({0: "a", 1: "bc"}, {0: "stop", 1: "length"}),
    "a tool call": ({0: '{"a":1}'}, {0: "tool_calls"}),
}


@pytest.mark.parametrize(("kind", "end"), CASES)
def test_a_cut_at_any_byte_is_the_whole_answer_or_an_exception(
    gateway: Gateway, upstreams: Upstreams, kind: str, end: str
) -> None:
    name = f"{kind}-{end}".replace(" ", "-")
    places = range(len(b"".join(STREAMS[kind])) + 1)
    for at in places:
        upstreams.script("alpha", cut(kind, at, end), model=f"{name}-{at}")
    with sdk(gateway) as client, ThreadPoolExecutor(AT_ONCE) as pool:
        came = list(pool.map(lambda at: heard(client, f"alpha/{name}-{at}", kind), places))
    quiet = {at: it for at, it in enumerate(came) if not isinstance(it, APIError) and it != WHOLE[kind]}
    assert quiet == {}
    lost = [at for at, it in enumerate(came) if at >= whole_at(kind) and isinstance(it, APIError)]
    assert lost == []
    early = [at for at, it in enumerate(came) if at < whole_at(kind) - 2 and not isinstance(it, APIError)]
    assert early == []
    until(lambda: gateway.metric("inflight_requests") == 0)


@pytest.mark.parametrize("kind", STREAMS)
def test_a_cut_between_events_leaves_whole_events_and_one_ending(
    gateway: Gateway, upstreams: Upstreams, kind: str
) -> None:
    for count in range(1, len(STREAMS[kind])):
        model = f"between-{kind}-{count}".replace(" ", "-")
        upstreams.script("alpha", stream(*STREAMS[kind][:count], CUT), model=model)
        with closing(gateway.stream(chat(f"alpha/{model}") | MORE[kind])) as answer:
            body = answer.rest()
        if answer.status != 200:  # nothing had been sent, so the client gets a true status
            assert count == 1
            continue
        *before, last, after = body.split(b"\n\n")
        assert (after, b"".join(part + b"\n\n" for part in before)) == (b"", b"".join(STREAMS[kind][:count]))
        assert (last == b"data: [DONE]") is (count == len(STREAMS[kind]) - 1)
        assert (b'"error"' in last) is (count < len(STREAMS[kind]) - 1)
