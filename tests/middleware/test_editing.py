"""The bounds of editing: long events, long bodies, and messages that are neither head nor body."""

from __future__ import annotations

import json

import pytest

from tests.asgi import Message, post
from tests.middleware.apps import DONE, JSON, LEAK, SSE, TOOLS, RawApp, ask, delta, stream_app
from troyproxy import ToolLeakGuard
from troyproxy.middleware import bodies
from troyproxy.middleware.bodies import BodyEditor
from troyproxy.middleware.frames import FrameEditor
from troyproxy.proxy.call import Call
from troyproxy.wire.sse import Frame

pytestmark = pytest.mark.anyio

START: Message = {"type": "http.response.start", "status": 200, "headers": [JSON]}
TRAILERS: Message = {"type": "http.response.trailers", "headers": []}


def new_call() -> Call:
    return Call(request_id="req_1", at=0, started=0, route="/")


async def sent_by_bodies(*messages: Message) -> list[Message]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    editor = BodyEditor(send, lambda _: {"edited": True})
    for message in messages:
        await editor(message)
    return sent


async def test_the_head_waits_for_the_body() -> None:
    assert await sent_by_bodies(START, {"type": "http.response.body", "body": b"{", "more_body": True}) == []


async def test_a_body_over_the_bound_passes_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "LIMIT", 4)
    pieces: list[Message] = [
        {"type": "http.response.body", "body": b'{"a":', "more_body": True},
        {"type": "http.response.body", "body": b"1}", "more_body": False},
    ]
    assert await sent_by_bodies(START, *pieces) == [START, *pieces]


async def test_a_body_that_comes_as_a_file_passes() -> None:
    path: Message = {"type": "http.response.pathsend", "path": "/x.json"}
    assert await sent_by_bodies(START, path) == [START, path]


async def test_what_was_held_is_sent_before_a_message_of_another_kind() -> None:
    piece: Message = {"type": "http.response.body", "body": b"{", "more_body": True}
    assert await sent_by_bodies(START, piece, TRAILERS) == [START, piece, TRAILERS]


async def test_trailers_follow_an_edited_body() -> None:
    sent = await sent_by_bodies(START, {"type": "http.response.body", "body": b"{}"}, TRAILERS)
    assert [message["type"].rpartition(".")[2] for message in sent] == ["start", "body", "trailers"]


async def test_an_event_over_the_bound_ends_the_stream_in_band() -> None:
    long = b"data: " + b"x" * (17 << 20)
    app = stream_app(delta("Hi"), delta("so") + long, DONE, b"more")
    exchange = await post(ToolLeakGuard(app), ask(stream=True, tools=TOOLS))
    whole, _, error = exchange.body.partition(b'data: {"error"')
    assert whole == delta("Hi") + delta("so")
    assert json.loads(b'{"error"' + error)["error"]["code"] == "stream_too_large"


async def test_messages_of_other_kinds_pass_a_stream() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await FrameEditor(new_call(), send, lambda frames, _: frames)(TRAILERS)
    assert sent == [TRAILERS]


async def test_a_message_without_frames_to_send_is_not_sent() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    def none(_: list[Frame], __: bool) -> list[Frame]:
        return []

    editor = FrameEditor(new_call(), send, none)
    await editor({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
    await editor({"type": "http.response.body", "body": b""})
    assert sent == [{"type": "http.response.body", "body": b"", "more_body": False}]


async def test_a_body_without_a_head_passes() -> None:
    message: Message = {"type": "http.response.body", "body": b"?"}
    assert await sent_by_bodies(message) == [message]


async def test_an_app_may_leave_out_headers_altogether() -> None:
    app = RawApp(chunks=[LEAK.encode()], headers=())
    assert (await post(ToolLeakGuard(app), ask(tools=TOOLS))).body == LEAK.encode()


async def test_the_end_of_a_stream_that_was_cut_off_is_sent() -> None:
    app = RawApp(chunks=[delta("Hi"), b'data: {"cut'], headers=[SSE])
    exchange = await post(ToolLeakGuard(app), ask(stream=True, tools=TOOLS))
    assert exchange.body == delta("Hi") + b'data: {"cut\n\n'


async def test_a_layer_that_keeps_frames_back_tells_the_clients_side() -> None:
    call = new_call()
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    editor = FrameEditor(call, send, lambda _, last: [])  # noqa: ARG005 -- the editor's protocol
    call.frames = [Frame(raw=b"data: {}\n\n", data=b"{}")]
    await editor({"type": "http.response.body", "body": b"data: {}\n\n", "more_body": True})
    assert (sent, call.frames) == ([], [])
