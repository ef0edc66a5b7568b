from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import weakref

import pytest

from tests.asgi import Message
from tests.proxy.rig import Rig, answer
from tests.proxy.seat import Seat
from troyproxy.proxy.client import Client
from troyproxy.proxy.disconnect import Disconnect, HangUp

pytestmark = pytest.mark.anyio


async def _send(_: Message) -> None:
    """Where messages arrive."""


def _client(rig: Rig) -> Client:
    return Client(rig.call(), _send, stall_s=60)


async def test_a_hang_up_cancels_the_work_and_is_swallowed(rig: Rig) -> None:
    seat, began, task = Seat(), rig.clock.monotonic(), asyncio.current_task()
    with HangUp(seat, _client(rig)) as watch:
        seat.leave_in(2.0)
        await asyncio.sleep(100)
    assert task is not None
    assert (watch.gone, rig.clock.monotonic() - began, task.cancelling(), seat.watcher) == (True, 2.0, 0, None)


async def test_a_hang_up_after_the_whole_answer_is_none(rig: Rig) -> None:
    seat, client = Seat(), _client(rig)
    with HangUp(seat, client) as watch:
        seat.leave_in(2.0)
        await client.whole(200, (), b"")
        await asyncio.sleep(100)
    assert not watch.gone


async def test_a_hang_up_and_somebody_elses_cancellation_at_once_stay_a_cancellation(rig: Rig) -> None:
    seat = Seat()

    async def work() -> None:
        with HangUp(seat, _client(rig)):
            await asyncio.sleep(100)

    task = asyncio.get_running_loop().create_task(work())
    seat.leave_in(1.0)
    asyncio.get_running_loop().call_later(1.0, task.cancel)
    await asyncio.wait({task})
    assert task.cancelled()


async def test_a_hang_up_lets_go_of_what_was_watched_before_the_collector_comes(rig: Rig) -> None:
    seat, client = Seat(), _client(rig)
    kept = weakref.ref(client)
    gc.disable()
    try:
        with HangUp(seat, client):
            await asyncio.sleep(0)
        del client
        gone = kept() is None
    finally:
        gc.enable()
    assert gone


@pytest.mark.parametrize("timed", [True, False])
async def test_a_walk_ends_when_its_peer_leaves(rig: Rig, *, timed: bool) -> None:
    rig.script(alpha=answer(before=[50.0]))
    call, seat = rig.call(), Seat()
    call.peer, seat.paused = seat, timed
    seat.leave_in(3.0)
    began = rig.clock.monotonic()
    served = await rig.ask(call=call)
    assert (served.call.client_left, rig.idle, rig.untouched) == (True, True, True)
    assert (rig.clock.monotonic() - began, seat.watcher) == (3.0, None)


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
    async with Disconnect(Line((2.0, "http.disconnect")).receive, _client(rig)) as watch:
        await asyncio.sleep(100)
    assert (watch.gone, rig.clock.monotonic() - began) == (True, 2.0)


async def test_the_task_is_not_marked_as_cancelled_afterwards(rig: Rig) -> None:
    async with Disconnect(Line((2.0, "http.disconnect")).receive, _client(rig)):
        await asyncio.sleep(100)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_disconnect_after_the_whole_answer_is_none(rig: Rig) -> None:
    client = _client(rig)
    async with Disconnect(Line((2.0, "http.disconnect")).receive, client) as watch:
        await client.whole(200, (), b"")
        await asyncio.sleep(100)
    assert not watch.gone


async def test_other_messages_are_read_over(rig: Rig) -> None:
    line = Line((1.0, "http.request"), (1.0, "http.request"), (1.0, "http.disconnect"))
    async with Disconnect(line.receive, _client(rig)) as watch:
        await asyncio.sleep(100)
    assert watch.gone


async def test_a_host_that_repeats_itself_without_waiting_does_not_stop_the_loop(rig: Rig) -> None:
    async def receive() -> Message:
        return {"type": "http.request"}

    async with Disconnect(receive, _client(rig)) as watch:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert not watch.gone


async def test_a_receive_that_raises_is_told_and_ends_nothing(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with Disconnect(Line(OSError("secret")).receive, _client(rig)) as watch:
            await asyncio.sleep(1)
    assert (watch.gone, caplog.messages) == (False, ["the client could not be watched: OSError"])


async def test_a_bug_inside_passes_through_although_the_client_has_left(rig: Rig) -> None:
    async def work() -> None:
        async with Disconnect(Line((2.0, "http.disconnect")).receive, _client(rig)):
            try:
                await asyncio.sleep(100)
            finally:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()


async def test_somebody_elses_cancellation_passes_through(rig: Rig) -> None:
    async def work() -> None:
        async with Disconnect(Line().receive, _client(rig)):
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

    async with Disconnect(receive, _client(rig)) as watch:
        await asyncio.sleep(1)
    assert not watch.gone


async def test_what_was_watched_is_let_go_before_the_collector_comes(rig: Rig) -> None:
    client = _client(rig)
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
