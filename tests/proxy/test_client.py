from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from tests.asgi import Message
from tests.proxy.rig import Rig
from tests.proxy.seat import Seat
from troyproxy.proxy.client import PIECE, Client, ClientGone
from troyproxy.proxy.pulse import Pulse
from troyproxy.wire.sse import Frame

pytestmark = pytest.mark.anyio

A, B = Frame(b"data: a\n\n", b"a"), Frame(b"data: b\n\n", b"b")


class Wire:
    """Where messages arrive; slow or broken on demand."""

    def __init__(self, wait_s: float = 0.0, error: OSError | None = None) -> None:
        self.got: list[Message] = []
        self._wait_s, self._error = wait_s, error

    async def send(self, message: Message) -> None:
        await asyncio.sleep(self._wait_s)
        if self._error is not None:
            raise self._error
        self.got.append(message)


def _client(wire: Wire, rig: Rig, stall_s: float = 60.0) -> Client:
    return Client(rig.call(), wire.send, stall_s=stall_s)


async def test_frames_go_out_as_one_message_and_are_handed_on(rig: Rig) -> None:
    wire, call = Wire(), rig.call()
    await Client(call, wire.send, stall_s=60).frames([A, B], more=True)
    assert (wire.got[0]["body"], call.frames) == (A.raw + B.raw, [A, B])


async def test_nothing_follows_the_last_frame(rig: Rig) -> None:
    wire = Wire()
    client = _client(wire, rig)
    await client.frames([A], more=False)
    await client.frames([B], more=True)
    assert (len(wire.got), client.finished) == (1, True)


async def test_a_head_goes_out_once(rig: Rig) -> None:
    wire = Wire()
    client = _client(wire, rig)
    opened = [await client.open(200, ()), await client.open(500, ())]
    assert (opened, [message["status"] for message in wire.got]) == ([True, False], [200])


async def test_nobody_gets_a_word_in_between_head_and_body_of_a_whole_answer(rig: Rig) -> None:
    wire = Wire(wait_s=1.0)
    client = _client(wire, rig)
    async with Pulse(client, (), open_after_s=0.5, every_s=0.1):
        await client.whole(500, (), b"{}")
        await asyncio.sleep(5)
    assert [message.get("body") for message in wire.got] == [None, b"{}"]


@pytest.mark.parametrize("what", ["open", "frames", "whole"])
async def test_the_walk_waits_for_what_is_said_beside_it(rig: Rig, what: str) -> None:
    wire = Wire(wait_s=1.0)
    client = _client(wire, rig)
    beside = client.beside(200, (), A)
    await asyncio.sleep(0)
    if what == "open":
        assert not await client.open(500, ())
    elif what == "frames":
        await client.frames([B], more=True)
    else:
        await client.whole(500, (), B.raw)
    assert beside.done()
    assert [message.get("body") for message in wire.got[:2]] == [None, A.raw]
    assert [message.get("body") for message in wire.got[2:] if "body" in message] == [B.raw] * (what != "open")


async def test_who_was_ended_before_a_word_beside_the_walk_stops_nobody(rig: Rig) -> None:
    wire = Wire()
    client = _client(wire, rig)
    client.beside(200, (), A).cancel()
    await client.frames([B], more=True)
    assert [message["body"] for message in wire.got] == [B.raw]


async def test_a_client_that_is_told_to_read_is_not_timed(rig: Rig) -> None:
    call = rig.call()
    call.peer = Seat()
    client = Client(call, Wire(wait_s=100.0).send, stall_s=60)
    assert await client.open(200, ())
    call.peer.paused = True
    with pytest.raises(ClientGone, match="does not read"):
        await client.frames([A], more=True)


async def test_a_stream_goes_on_untimed_until_its_client_stops_reading(rig: Rig) -> None:
    call, wire = rig.call(), Wire(wait_s=100.0)
    call.peer = Seat()
    client = Client(call, wire.send, stall_s=60)
    await client.go_on([A, B], 7.0)
    assert (wire.got[0]["body"], wire.got[0]["more_body"], client.sent_at) == (A.raw + B.raw, True, 7.0)
    call.peer.paused = True
    with pytest.raises(ClientGone, match="does not read"):
        await client.go_on([A], 8.0)
    call.peer.paused = False
    with pytest.raises(ClientGone, match="was dropped"):
        await client.go_on([A], 9.0)


async def test_a_stream_that_goes_on_to_a_client_that_has_left_ends(rig: Rig) -> None:
    call = rig.call()
    call.peer = Seat()
    with pytest.raises(ClientGone, match="has gone"):
        await Client(call, Wire(error=BrokenPipeError()).send, stall_s=60).go_on([A], 7.0)


async def test_frames_that_a_layer_keeps_back_are_no_word_to_the_client(rig: Rig) -> None:
    call = rig.call()
    call.peer = Seat()

    async def keep(message: Message) -> None:
        del message
        call.frames = []

    client = Client(call, keep, stall_s=60)
    await client.go_on([A], 7.0)
    assert client.sent_at == 0.0


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 7])
async def test_a_whole_answer_goes_in_pieces_and_only_the_last_one_ends_it(rig: Rig, size: int) -> None:
    wire, body = Wire(), bytes(at % 251 for at in range(size))
    await _client(wire, rig).whole(200, (), body)
    [head, *pieces] = wire.got
    assert (b"content-length", str(size).encode()) in head["headers"]
    assert b"".join(piece["body"] for piece in pieces) == body
    assert [piece.get("more_body", False) for piece in pieces] == [True] * (len(pieces) - 1) + [False]
    assert max(len(piece["body"]) for piece in pieces) <= PIECE


@dataclass(slots=True)
class Pipe:
    """Between our server and a client: it takes *taken* bytes in each *turn_s* seconds, of what is written."""

    seat: Seat
    taken: int
    turn_s: float = 50.0
    messages: list[tuple[int, bool]] = field(default_factory=list)

    async def send(self, message: Message) -> None:
        while self.seat.paused:
            await asyncio.sleep(self.turn_s)
            self.seat.unsent = max(0, self.seat.unsent - self.taken)
            self.seat.paused = self.seat.unsent > 0
        if message["type"] == "http.response.body":
            self.messages.append((len(message["body"]), message.get("more_body", False)))
            self.seat.unsent += len(message["body"])
            self.seat.paused = self.seat.unsent > self.taken


def _piped(rig: Rig, taken: int) -> tuple[Client, Pipe]:
    call = rig.call()
    call.peer = seat = Seat()
    pipe = Pipe(seat, taken)
    return Client(call, pipe.send, stall_s=60), pipe


async def test_a_large_answer_that_the_client_takes_is_two_messages(rig: Rig) -> None:
    client, pipe = _piped(rig, 10 * PIECE)
    await client.whole(200, (), b"x" * (5 * PIECE + 7))
    assert (pipe.messages, client.finished) == ([(5 * PIECE, True), (7, False)], True)


async def test_the_end_of_a_large_answer_waits_while_its_client_takes_a_piece_in_time(rig: Rig) -> None:
    client, pipe = _piped(rig, PIECE)
    await client.whole(200, (), b"x" * (5 * PIECE + 7))
    assert (pipe.messages, client.finished) == ([(5 * PIECE, True), (0, True), (7, False)], True)


async def test_a_client_that_takes_less_than_a_piece_in_time_is_gone_before_the_end(rig: Rig) -> None:
    client, pipe = _piped(rig, PIECE - 1)
    with pytest.raises(ClientGone, match="does not read"):
        await client.whole(200, (), b"x" * (5 * PIECE + 7))
    assert (pipe.messages, client.finished) == ([(5 * PIECE, True)], False)


async def test_a_client_that_leaves_a_large_answer_is_gone(rig: Rig) -> None:
    client, pipe = _piped(rig, PIECE)

    async def break_off(message: Message) -> None:
        if pipe.messages:
            raise BrokenPipeError
        await pipe.send(message)

    client._send = break_off
    with pytest.raises(ClientGone, match="has gone"):
        await client.whole(200, (), b"x" * (5 * PIECE + 7))


async def test_a_client_that_stops_reading_a_whole_answer_is_gone_before_its_end(rig: Rig) -> None:
    wire = Wire()
    client = _client(wire, rig)

    async def read_once(message: Message) -> None:
        if len(wire.got) > 1:
            await asyncio.sleep(100)
        await wire.send(message)

    client._send = read_once
    with pytest.raises(ClientGone, match="does not read"):
        await client.whole(200, (), b"x" * (3 * PIECE))
    assert not client.finished


async def test_a_small_answer_to_a_client_that_reads_is_not_timed(rig: Rig) -> None:
    call, wire = rig.call(), Wire(wait_s=100.0)
    call.peer = Seat()
    await Client(call, wire.send, stall_s=60).whole(200, (), b"hello")
    assert [message.get("body") for message in wire.got] == [None, b"hello"]


async def test_the_body_of_a_small_answer_is_timed_when_its_head_was_too_much(rig: Rig) -> None:
    call, wire, seat = rig.call(), Wire(wait_s=100.0), Seat()
    call.peer = seat

    async def send(message: Message) -> None:
        await wire.send(message)
        seat.paused = True

    with pytest.raises(ClientGone, match="does not read"):
        await Client(call, send, stall_s=60).whole(200, (), b"hello")
    assert [message["type"] for message in wire.got] == ["http.response.start"]


async def test_a_small_answer_to_a_client_that_has_left_ends(rig: Rig) -> None:
    call = rig.call()
    call.peer = Seat()
    with pytest.raises(ClientGone, match="has gone"):
        await Client(call, Wire(error=BrokenPipeError()).send, stall_s=60).whole(200, (), b"hello")


async def test_a_client_that_does_not_read_is_gone_after_the_stall(rig: Rig) -> None:
    with pytest.raises(ClientGone, match="does not read"):
        await _client(Wire(wait_s=100.0), rig).open(200, ())


async def test_a_broken_pipe_is_a_client_that_has_gone(rig: Rig) -> None:
    with pytest.raises(ClientGone, match="has gone"):
        await _client(Wire(error=BrokenPipeError()), rig).open(200, ())


async def test_a_client_that_was_dropped_gets_nothing_more_at_once(rig: Rig) -> None:
    client = _client(Wire(wait_s=100.0), rig)
    with pytest.raises(ClientGone):
        await client.open(200, ())
    began = rig.clock.monotonic()
    with pytest.raises(ClientGone, match="was dropped"):
        await client.frames([A], more=True)
    assert rig.clock.monotonic() == began
