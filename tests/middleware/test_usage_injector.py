"""UsageInjector alone: who asked for usage, who sees it, and who hears of it."""

from __future__ import annotations

import json

import pytest

from tests.asgi import Exchange, post
from tests.middleware.apps import (
    DONE,
    JSON,
    SSE,
    STOP,
    USAGE,
    RawApp,
    ask,
    cut_everywhere,
    delta,
    event,
    stream_app,
)
from troyproxy import UsageInjector
from troyproxy.accounting.usage import Usage

pytestmark = pytest.mark.anyio

REPORT = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
HEARD = Usage(input=3, output=2)
HEAD = b"".join(
    [b": hi\n\n", delta("a", role="assistant"), b'data:{"choices":[{"index":0,"delta":{}}], "x" : 1}\r\n\r\n']
)
STREAM = b"".join([HEAD, STOP, USAGE, DONE])
STREAMING = {"stream": True}
ASKING = {"stream": True, "stream_options": {"include_usage": True}}


async def streamed(*chunks: bytes, **fields: object) -> Exchange:
    return await post(UsageInjector(stream_app(*chunks)), ask(**fields))


async def test_a_client_that_did_not_ask_gets_the_stream_byte_for_byte_minus_the_usage() -> None:
    for chunks in cut_everywhere(STREAM):
        assert (await streamed(*chunks, **STREAMING)).body == HEAD + STOP + DONE


async def test_a_client_that_asked_gets_every_byte() -> None:
    for chunks in cut_everywhere(STREAM):
        assert (await streamed(*chunks, **ASKING)).body == STREAM


async def test_a_finish_reason_beside_usage_survives() -> None:
    beside = event({"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "length"}], "usage": REPORT})
    without = event({"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "length"}]})
    assert (await streamed(beside, DONE, **STREAMING)).body == without + DONE


@pytest.mark.parametrize("choices", [{"choices": []}, {"choices": None}, {}])
async def test_an_event_that_is_usage_only_is_dropped_wherever_it_stands(choices: dict[str, object]) -> None:
    only = event({**choices, "usage": REPORT})
    assert (await streamed(only, delta("a"), only + DONE, **STREAMING)).body == delta("a") + DONE


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (None, {"include_usage": True}),
        ({"include_obfuscation": False, "include_usage": False}, {"include_obfuscation": False, "include_usage": True}),
        ({"include_usage": 1}, {"include_usage": True}),
        ("all", "all"),
    ],
)
async def test_usage_is_merged_into_what_the_client_sent(options: object, sent: object) -> None:
    await post(UsageInjector(app := stream_app(DONE)), ask(stream=True, stream_options=options))
    assert app.got["stream_options"] == sent


@pytest.mark.parametrize("stream", [{}, {"stream": None}, {"stream": False}, {"stream": 1}, {"stream": "true"}])
async def test_only_a_stream_that_is_exactly_true_is_asked(stream: dict[str, object]) -> None:
    await post(UsageInjector(app := RawApp()), ask(**stream))
    assert app.got == ask(**stream)


async def test_a_client_that_asks_itself_is_sent_on_byte_for_byte() -> None:
    body = b'{"model":"m1","stream":true, "stream_options": {"include_usage" :true}}'
    await post(UsageInjector(app := stream_app(DONE)), body)
    assert app.bodies == [body]


@pytest.mark.parametrize("fields", [STREAMING, ASKING])
async def test_usage_is_told_once_per_stream(fields: dict[str, object]) -> None:
    heard: list[Usage] = []
    early = event({"choices": [{"index": 0, "delta": {}}], "usage": REPORT})
    app = stream_app(early, STOP, USAGE, DONE, b"")
    await post(UsageInjector(app, on_usage=heard.append), ask(**fields))
    assert heard == [HEARD]


async def test_usage_of_a_stream_without_done_is_told_at_its_end() -> None:
    heard: list[Usage] = []
    await post(UsageInjector(stream_app(STOP, USAGE), on_usage=heard.append), ask(stream=True))
    assert heard == [HEARD]


async def test_usage_is_told_of_a_whole_answer_which_passes_byte_for_byte() -> None:
    heard: list[Usage] = []
    body = b' {"choices": [], "usage":' + json.dumps(REPORT).encode() + b"} "
    exchange = await post(UsageInjector(RawApp(chunks=[body[:9], body[9:]]), on_usage=heard.append), ask())
    assert (heard, exchange.body) == ([HEARD], body)


@pytest.mark.parametrize("body", [b"{}", b"[1]", b"no json", b'{"usage": null}'])
async def test_an_answer_without_usage_tells_nothing(body: bytes) -> None:
    heard: list[Usage] = []
    exchange = await post(UsageInjector(RawApp(chunks=[body]), on_usage=heard.append), ask())
    assert (heard, exchange.body) == ([], body)


async def test_events_that_cannot_be_read_tell_nothing_and_pass() -> None:
    heard: list[Usage] = []
    bad = b'data: {"usage": \n\n'
    exchange = await post(UsageInjector(stream_app(bad, DONE), on_usage=heard.append), ask(stream=True))
    assert (heard, exchange.body) == ([], bad + DONE)


async def test_an_answer_that_is_no_json_and_no_stream_passes() -> None:
    app = RawApp(chunks=[b"<html>", b"</html>"], headers=[(b"content-type", b"text/html")], status=502)
    exchange = await post(UsageInjector(app), ask(stream=True))
    assert (exchange.status, exchange.chunks) == (502, [b"<html>", b"</html>"])


async def test_an_error_under_a_stream_request_passes_byte_for_byte() -> None:
    app = RawApp(chunks=[b'{"error": {"message" : "no"}}'], headers=[JSON], status=429)
    exchange = await post(UsageInjector(app), ask(stream=True))
    assert (exchange.status, exchange.body) == (429, b'{"error": {"message" : "no"}}')


async def test_the_app_is_not_asked_to_compress_a_stream_that_is_read() -> None:
    await post(UsageInjector(app := stream_app(DONE)), ask(stream=True), accept_encoding="gzip")
    assert app.header(b"accept-encoding") is None


async def test_a_content_type_with_parameters_and_capitals_is_a_stream() -> None:
    app = stream_app(STREAM, headers=[(SSE[0], b" Text/Event-Stream; charset=utf-8")])
    assert (await post(UsageInjector(app), ask(stream=True))).body == HEAD + STOP + DONE
