from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import weakref

import pytest

from tests.asgi import Message
from tests.proxy.rig import Rig
from troyproxy.proxy.client import PIECE, Client, ClientGone, Disconnect
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
    async with asyncio.TaskGroup() as group:
        group.create_task(client.whole(500, (), b"{}"))
        await asyncio.sleep(0)
        group.create_task(client.open(200, ()))
        group.create_task(client.frames([A], more=True))
    assert [message.get("body") for message in wire.got] == [None, b"{}"]


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 7])
async def test_a_whole_answer_goes_in_pieces_and_only_the_last_one_ends_it(rig: Rig, size: int) -> None:
    wire, body = Wire(), bytes(at % 251 for at in range(size))
    await _client(wire, rig).whole(200, (), body)
    [head, *pieces] = wire.got
    assert (b"content-length", str(size).encode()) in head["headers"]
    assert b"".join(piece["body"] for piece in pieces) == body
    assert [piece.get("more_body", False) for piece in pieces] == [True] * (len(pieces) - 1) + [False]
    assert max(len(piece["body"]) for piece in pieces) <= PIECE


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


# --- watching ---


class Line:
    """A `receive`: the messages, each after its wait, then silence."""

    def __init__(self, *messages: tuple[float, str] | OSError) -> None:
        self._messages = list(messages)

    async def receive(self) -> Message:
        if not self._messages:
            await asyncio.Event().wait()
        step = self._messages.pop(0)
        if isinstance(step, OSError):
            raise step
        await asyncio.sleep(step[0])
        return {"type": step[1]}


async def test_a_disconnect_cancels_the_work_and_is_swallowed(rig: Rig) -> None:
    began = rig.clock.monotonic()
    async with Disconnect(Line((2.0, "http.disconnect")).receive, _client(Wire(), rig)) as watch:
        await asyncio.sleep(100)
    assert (watch.gone, rig.clock.monotonic() - began) == (True, 2.0)


async def test_the_task_is_not_marked_as_cancelled_afterwards(rig: Rig) -> None:
    async with Disconnect(Line((2.0, "http.disconnect")).receive, _client(Wire(), rig)):
        await asyncio.sleep(100)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_disconnect_after_the_whole_answer_is_none(rig: Rig) -> None:
    client = _client(Wire(), rig)
    async with Disconnect(Line((2.0, "http.disconnect")).receive, client) as watch:
        await client.whole(200, (), b"")
        await asyncio.sleep(100)
    assert not watch.gone


async def test_other_messages_are_read_over(rig: Rig) -> None:
    line = Line((1.0, "http.request"), (1.0, "http.request"), (1.0, "http.disconnect"))
    async with Disconnect(line.receive, _client(Wire(), rig)) as watch:
        await asyncio.sleep(100)
    assert watch.gone


async def test_a_host_that_repeats_itself_without_waiting_does_not_stop_the_loop(rig: Rig) -> None:
    async def receive() -> Message:
        return {"type": "http.request"}

    async with Disconnect(receive, _client(Wire(), rig)) as watch:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert not watch.gone


async def test_a_receive_that_raises_is_told_and_ends_nothing(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with Disconnect(Line(OSError("secret")).receive, _client(Wire(), rig)) as watch:
            await asyncio.sleep(1)
    assert (watch.gone, caplog.messages) == (False, ["the client could not be watched: OSError"])


async def test_a_bug_inside_passes_through_although_the_client_has_left(rig: Rig) -> None:
    async def work() -> None:
        async with Disconnect(Line((2.0, "http.disconnect")).receive, _client(Wire(), rig)):
            try:
                await asyncio.sleep(100)
            finally:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()


async def test_somebody_elses_cancellation_passes_through(rig: Rig) -> None:
    async def work() -> None:
        async with Disconnect(Line().receive, _client(Wire(), rig)):
            await asyncio.sleep(100)

    task = asyncio.get_running_loop().create_task(work())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


async def test_a_receive_that_swallows_its_cancellation_cannot_cancel_us_any_more(rig: Rig) -> None:
    async def receive() -> Message:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(100)
        return {"type": "http.disconnect"}

    async with Disconnect(receive, _client(Wire(), rig)) as watch:
        await asyncio.sleep(1)
    assert not watch.gone


async def test_what_was_watched_is_let_go_before_the_collector_comes(rig: Rig) -> None:
    client = _client(Wire(), rig)
    kept = weakref.ref(client)
    gc.disable()
    try:
        async with Disconnect(Line().receive, client):
            await asyncio.sleep(0)  # the watcher has begun to wait
        del client
        gone = kept() is None
    finally:
        gc.enable()
    assert gone
