"""ToolLeakGuard alone: streams, whole answers, modes, and what a host hears of it."""

from __future__ import annotations

import json

import pytest

from tests.asgi import AfterSent, Exchange, Message, Receive, Scope, Send, drive, http_scope, post, request_body
from tests.middleware.apps import (
    DONE,
    JSON,
    LEAK,
    SSE,
    STOP,
    TOOLS,
    USAGE,
    RawApp,
    ask,
    contents,
    cut_everywhere,
    delta,
    event,
    stream_app,
)
from troyproxy import ToolLeakGuard
from troyproxy.leaks.policy import Leak
from troyproxy.proxy.call import Call, put_call

pytestmark = pytest.mark.anyio

PARTS = ["<", "func", "tion", "=get_", 'weather>{"city":', '"Oslo"}</fun', "ction>"]
LEAKED = b"".join([*map(delta, PARTS), STOP, USAGE, DONE])
PLAIN = b"".join(
    [b": hello\n\n", delta("", role="assistant"), delta("a <"), delta(" b, else <func"), STOP, USAGE, DONE]
)


async def streamed(app: RawApp, mode: str = "suppress", **more: object) -> Exchange:
    return await post(ToolLeakGuard(app, mode), ask(stream=True, tools=TOOLS, **more))


async def test_a_leak_is_gone_wherever_the_stream_is_cut() -> None:
    for chunks in cut_everywhere(LEAKED):
        assert (await streamed(stream_app(*chunks))).body == STOP + USAGE + DONE


async def test_an_honest_stream_is_the_same_wherever_it_is_cut() -> None:
    for chunks in cut_everywhere(PLAIN):
        assert (await streamed(stream_app(*chunks))).body == PLAIN


async def test_a_leak_is_gone_however_its_text_is_split() -> None:
    for size in range(1, len(LEAK)):
        deltas = [delta(LEAK[at : at + size]) for at in range(0, len(LEAK), size)]
        assert contents((await streamed(stream_app(*deltas, STOP, DONE))).body) == ""


async def test_odd_spacing_and_line_ends_survive() -> None:
    odd = b'event: x\r\nid: 7\r\ndata:{ "choices":[ {"index":0,"delta":{"content":"h\\u0069"}}] }\r\n\r\n'
    assert (await streamed(stream_app(odd, DONE))).body == odd + DONE


async def test_what_is_no_json_passes_in_its_place() -> None:
    assert (await streamed(stream_app(delta("<func"), b"data: oops\n\n", DONE))).body == (
        delta("<func") + b"data: oops\n\n" + DONE
    )


async def test_a_role_that_was_held_with_a_leak_survives_byte_for_byte() -> None:
    role = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","reasoning":"so"}}], "x":1.0}\n\n'
    app = stream_app(delta("<func"), role, delta("tion=get_weather>{}"), STOP, DONE)
    assert (await streamed(app)).body == role + STOP + DONE


async def test_held_text_comes_before_done() -> None:
    assert (await streamed(stream_app(delta("so <func"), DONE))).body == delta("so <func") + DONE


async def test_held_text_is_released_when_the_stream_just_ends() -> None:
    assert (await streamed(stream_app(delta("<func"), b""))).body == delta("<func")


async def test_comments_overtake_held_text() -> None:
    app = stream_app(delta("<func"), b": keep-alive\n\n", DONE)
    assert (await streamed(app)).body == b": keep-alive\n\n" + delta("<func") + DONE


async def test_nothing_is_held_of_plain_text() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [SSE]})
        for text in ("Hello", " there"):
            await send({"type": "http.response.body", "body": delta(text), "more_body": True})
            assert (await receive())["type"] == "http.request"
        await send({"type": "http.response.body", "body": DONE})

    turn = {"type": "http.request", "body": b"", "more_body": False}
    script = [*request_body(ask(stream=True, tools=TOOLS)), AfterSent(2), turn, AfterSent(3), turn]
    assert len((await drive(ToolLeakGuard(app), http_scope(), script)).chunks) == 3


async def test_each_choice_is_judged_by_itself() -> None:
    frames = [delta(LEAK, index=1), delta("Hello", index=0), delta(finish="stop", index=1), STOP, DONE]
    body = (await streamed(stream_app(*frames), n=2)).body
    assert (contents(body, 0), contents(body, 1)) == ("Hello", "")


async def test_a_third_choice_that_comes_late_is_judged_too() -> None:
    frames = [delta("Hello", index=0), delta("Hi", index=1), delta(LEAK, index=2), DONE]
    body = (await streamed(stream_app(*frames), n=3)).body
    assert (contents(body, 0), contents(body, 1), contents(body, 2)) == ("Hello", "Hi", "")


async def test_only_the_text_of_a_frame_with_two_choices_is_taken_out() -> None:
    both = event({"choices": [{"index": 0, "delta": {"content": LEAK}}, {"index": 1, "delta": {"content": "Hi"}}]})
    body = (await streamed(stream_app(both, DONE), n=2)).body
    assert (contents(body, 0), contents(body, 1)) == ("", "Hi")


async def test_an_n_that_is_no_number_counts_as_one() -> None:
    assert contents((await streamed(stream_app(delta(LEAK), STOP, DONE), n="many")).body) == ""


async def test_the_request_after_a_leak_is_untouched() -> None:
    guarded = ToolLeakGuard(app := stream_app(delta(LEAK + "\nHere is the forecast"), STOP, DONE), "suppress")
    first = await post(guarded, ask(stream=True, tools=TOOLS))
    app.chunks = (delta("Hello"), STOP, DONE)
    second = await post(guarded, ask(stream=True, tools=TOOLS))
    assert (first.body, second.body) == (STOP + DONE, delta("Hello") + STOP + DONE)


def completion(*contents: object) -> bytes:
    choices = [
        {"index": at, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        for at, said in enumerate(contents)
    ]
    return json.dumps({"choices": choices, "usage": {"total_tokens": 5}}).encode()


async def whole(app: RawApp, mode: str = "suppress", **headers: str) -> Exchange:
    return await post(ToolLeakGuard(app, mode), ask(tools=TOOLS), **headers)


async def test_a_leak_in_a_whole_answer_is_gone_wherever_it_is_cut() -> None:
    for chunks in cut_everywhere(completion(LEAK)):
        exchange = await whole(RawApp(chunks=chunks, headers=[JSON, (b"content-length", b"178")]))
        assert exchange.json()["choices"][0]["message"]["content"] == ""
        assert exchange.header("content-length") == str(len(exchange.body))


async def test_finish_reason_and_usage_of_a_leaked_answer_survive() -> None:
    answer = (await whole(RawApp(chunks=[completion(LEAK)]))).json()
    assert (answer["choices"][0]["finish_reason"], answer["usage"]) == ("stop", {"total_tokens": 5})


async def test_only_leaked_choices_of_a_whole_answer_are_emptied() -> None:
    answer = (await whole(RawApp(chunks=[completion("Hello", LEAK)]))).json()
    assert [choice["message"]["content"] for choice in answer["choices"]] == ["Hello", ""]


async def test_the_leak_is_named_in_the_head_of_a_whole_answer() -> None:
    assert (await whole(RawApp(chunks=[completion(LEAK)]))).header("x-troy-leak") == "F01;suppressed"


async def test_an_answer_without_a_leak_names_none() -> None:
    assert (await whole(RawApp(chunks=[completion("Hello")]))).header("x-troy-leak") is None


async def test_an_app_that_names_leaks_itself_is_not_contradicted() -> None:
    app = RawApp(chunks=[completion(LEAK)], headers=[JSON, (b"x-troy-leak", b"theirs")])
    assert [value for name, value in (await whole(app)).raw_headers if name == b"x-troy-leak"] == [b"theirs"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_host_hears_of_each_leak_once(stream: bool) -> None:
    heard: list[Leak] = []
    app = stream_app(delta(LEAK), delta(LEAK), STOP, DONE) if stream else RawApp(chunks=[completion(LEAK)])
    await post(ToolLeakGuard(app, "suppress", heard.append), ask(stream=stream, tools=TOOLS))
    assert [(leak.choice, leak.format, str(leak.action)) for leak in heard] == [(0, "F01", "suppressed")]


@pytest.mark.parametrize("tools", [{}, {"tools": []}, {"tools": TOOLS, "tool_choice": "none"}])
async def test_without_tools_on_offer_the_text_is_the_answer(tools: dict[str, object]) -> None:
    stream = b"".join([delta(LEAK), STOP, DONE])
    assert (await post(ToolLeakGuard(stream_app(stream)), ask(stream=True, **tools))).body == stream


@pytest.mark.parametrize(("asked", "same"), [({}, True), ({"tools": TOOLS}, False)])
async def test_without_tools_the_answer_takes_no_detour(asked: dict[str, object], same: bool) -> None:
    sends: list[Send] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        sends.append(send)

    async def send(message: Message) -> None:
        del message

    call = Call(request_id="r", at=0, started=0, route="/v1/chat/completions", payload=asked)
    await ToolLeakGuard(app)(put_call(http_scope(), call), _nothing, send)
    assert (sends == [send], len(call.gates) == 0, call.tool_turn) == (same, same, not same)


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def test_mode_off_changes_nothing() -> None:
    assert (await streamed(stream_app(LEAKED), "off")).body == LEAKED


@pytest.mark.parametrize("mode", ["auto", "AUTO", "repair", "suppress", "failover"])
async def test_no_mode_that_acts_lets_a_leak_be_seen(mode: str) -> None:
    assert contents((await streamed(stream_app(LEAKED), mode)).body) == ""


def test_an_unknown_mode_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="unknown leak mode 'nothing'; allowed: off, observe, suppress"):
        ToolLeakGuard(RawApp(), "nothing")


@pytest.mark.parametrize(
    ("mode", "asked", "left"), [("suppress", "off", LEAK), ("off", "suppress", ""), ("off", "", LEAK)]
)
async def test_one_request_may_choose_its_mode(mode: str, asked: str, left: str) -> None:
    answer = (await whole(RawApp(chunks=[completion(LEAK)]), mode, x_troy_leak_mode=asked)).json()
    assert answer["choices"][0]["message"]["content"] == left


async def test_a_wrong_mode_in_the_header_is_the_clients_mistake() -> None:
    exchange = await whole(RawApp(), x_troy_leak_mode="mend")
    assert exchange.status == 400
    assert exchange.json()["error"]["message"] == (
        "x-troy-leak-mode: unknown leak mode 'mend'; allowed: off, observe, suppress, repair, failover, auto"
    )


async def test_the_app_is_not_asked_to_compress_what_the_guard_must_read() -> None:
    await whole(app := RawApp(), accept_encoding="gzip, br")
    assert app.header(b"accept-encoding") is None


async def test_an_app_that_the_guard_does_not_watch_may_compress() -> None:
    await post(ToolLeakGuard(app := RawApp()), ask(), accept_encoding="gzip, br")
    assert app.header(b"accept-encoding") == b"gzip, br"


@pytest.mark.parametrize("kind", [JSON, SSE])
async def test_an_answer_that_is_compressed_all_the_same_passes_untouched(kind: tuple[bytes, bytes]) -> None:
    head = [kind, (b"content-encoding", b"gzip"), (b"content-length", b"3")]
    exchange = await whole(RawApp(chunks=[b"\x1f\x8b\x08"], headers=head))
    assert (exchange.raw_headers, exchange.body) == (head, b"\x1f\x8b\x08")


async def test_identity_is_no_compression() -> None:
    app = RawApp(chunks=[completion(LEAK)], headers=[JSON, (b"content-encoding", b"identity")])
    assert LEAK not in (await whole(app)).body.decode()


async def test_an_app_that_streams_unasked_is_guarded() -> None:
    assert (await whole(RawApp(chunks=[LEAKED], headers=[SSE]))).body == STOP + USAGE + DONE


async def test_an_app_that_answers_a_stream_with_a_whole_body_is_guarded() -> None:
    answer = (await streamed(RawApp(chunks=[completion(LEAK)]))).json()
    assert answer["choices"][0]["message"]["content"] == ""


async def test_a_stream_is_given_no_length() -> None:
    app = stream_app(PLAIN, headers=[SSE, (b"content-length", str(len(PLAIN)).encode())])
    assert (await streamed(app)).raw_headers == [SSE]


@pytest.mark.parametrize(("left", "status", "code"), [("error", 502, "leak"), ("suppress", 200, None)])
async def test_nobody_to_fail_over_to_is_an_error_where_that_is_wished_for(
    left: str, status: int, code: str | None
) -> None:
    app = RawApp(chunks=[completion(LEAK)])
    answer = await post(ToolLeakGuard(app, "failover", on_exhausted=left), ask(tools=TOOLS))
    assert (answer.status, answer.json().get("error", {}).get("code")) == (status, code)
    assert answer.header("content-length") == str(len(answer.body))
    assert "get_weather" not in answer.body.decode()


async def test_an_answer_with_a_good_choice_is_no_error() -> None:
    app = RawApp(chunks=[completion("Hello", LEAK)])
    answer = await post(ToolLeakGuard(app, "failover", on_exhausted="error"), ask(tools=TOOLS))
    assert [choice["message"]["content"] for choice in answer.json()["choices"]] == ["Hello", ""]
