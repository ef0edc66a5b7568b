"""How events leave without messages: through every edit that a message would meet, or not at all."""

from __future__ import annotations

import pytest

from tests.asgi import Message
from tests.proxy.rig import Rig
from tests.proxy.seat import Seat
from troyproxy.middleware.editing import AnswerEditor, HeadEditor
from troyproxy.proxy.answers import Send
from troyproxy.proxy.call import Call
from troyproxy.proxy.client import Client
from troyproxy.proxy.lane import EditFrames, Laned, lane_of
from troyproxy.wire.sse import Frame

pytestmark = pytest.mark.anyio
EVENTS = [(b"content-type", b"text/event-stream")]
JSON = [(b"content-type", b"application/json")]
A, B = Frame(b"data: a\n\n", b"a"), Frame(b"data: b\n\n", b"b")


async def _sent(message: Message) -> None:
    """Send *message*."""


def _adds(letter: bytes) -> EditFrames:
    return lambda frames, _: [Frame(frame.raw[:-2] + letter + b"\n\n", None) for frame in frames]


def _around(call: Call, send: Send, *letters: bytes) -> Send:
    for letter in letters:
        send = HeadEditor(AnswerEditor(call, send, _adds(letter), lambda _: None), lambda head: head)
    return send


async def _begun(send: Send, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def test_the_edits_are_those_of_messages_and_in_their_order() -> None:
    call, seat = Rig().call(), Seat(straight=True)
    send = _around(call, _sent, b"1", b"2")
    await _begun(send, EVENTS)
    lane = lane_of(send, seat)
    assert lane is not None
    frames = [A]
    for edit in lane.edits:
        frames = edit(frames, False)
    lane.put(frames[0].raw)
    assert seat.parts == [b"data: a21\n\n"]


async def test_an_answer_that_is_not_edited_event_by_event_has_no_lane() -> None:
    call, seat = Rig().call(), Seat(straight=True)
    send = AnswerEditor(call, _sent, _adds(b"1"), lambda _: None)
    await _begun(send, JSON)
    assert lane_of(send, seat) is None


async def test_what_does_not_know_a_lane_gets_messages() -> None:
    call, got = Rig().call(), list[Message]()
    call.peer, call.framed = Seat(), True

    async def somebody(message: Message) -> None:
        got.append(message)

    send = _around(call, somebody, b"1")
    await _begun(send, EVENTS)
    client = Client(call, send, stall_s=60.0)
    client.go_straight()
    assert client.at_once([A, B], 7.0)
    assert (got[-1]["body"], client.sent_at) == (b"data: a1\n\ndata: b1\n\n", 7.0)


async def test_events_go_straight_and_several_together() -> None:
    call, seat = Rig().call(), Seat(straight=True)
    call.peer = seat
    send = _around(call, _sent, b"1")
    await _begun(send, EVENTS)
    client = Client(call, send, stall_s=60.0)
    client.go_straight()
    await client.go_on([A], 6.0)
    assert client.at_once([A, B], 7.0)
    assert (seat.parts, client.sent_at) == ([b"data: a1\n\n", b"data: a1\n\ndata: b1\n\n"], 7.0)


async def test_what_an_edit_keeps_back_is_no_word_to_the_client() -> None:
    call = Rig().call()
    call.peer = seat = Seat(straight=True)
    send = AnswerEditor(call, _sent, lambda _frames, _last: [], lambda _: None)
    await _begun(send, EVENTS)
    client = Client(call, send, stall_s=60.0)
    client.go_straight()
    assert client.at_once([A], 7.0)
    assert (seat.parts, client.sent_at) == ([], 0.0)


async def test_nothing_is_put_while_the_client_does_not_read() -> None:
    call = Rig().call()
    call.peer = seat = Seat(straight=True)
    client = Client(call, _sent, stall_s=60.0)
    client.go_straight()
    seat.paused = True
    assert (client.at_once([A], 7.0), seat.parts) == (False, [])
    await client.go_on([A], 8.0)
    assert (seat.parts, client.sent_at > 0) == ([], True)


def test_the_base_says_nothing_of_itself() -> None:
    with pytest.raises(NotImplementedError):
        Laned().lane(Seat())
