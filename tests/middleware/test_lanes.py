"""The layers around an answer do the same to events that go straight as to those that come in messages."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from tests.asgi import Message
from tests.leaks.chunks import WEATHER
from tests.middleware.test_leak_stream import BESIDE, TEXTS, frames_of, said
from tests.proxy.rig import Rig, finish, usage
from tests.proxy.seat import Seat
from troyproxy.leaks.modes import LeakMode
from troyproxy.leaks.policy import Leak, Policy
from troyproxy.middleware.editing import AnswerEditor, HeadEditor
from troyproxy.middleware.leak_stream import LeakStream
from troyproxy.middleware.usage_injector import _stripped
from troyproxy.proxy.client import Client
from troyproxy.wire.sse import DONE, Frame

EVENTS = ((b"content-type", b"text/event-stream"),)


def _answer(parts: list[list[Frame]], straight: list[bool], mode: LeakMode) -> tuple[bytes, list[Leak]]:
    """Return what the client got, and what leaked. *straight*: which parts need not be messages."""
    got, told = list[bytes](), list[Leak]()
    stream = LeakStream(Policy(mode, WEATHER), told.append)

    async def send(message: Message) -> None:
        got.append(message.get("body", b""))

    async def run() -> None:
        call = Rig().call()
        call.peer, call.framed = Seat(straight=True), True
        guard = AnswerEditor(call, send, lambda frames, last: stream.edit(frames, last=last), lambda _: None)
        layers = AnswerEditor(call, HeadEditor(guard, lambda head: head), _stripped, lambda _: None)
        client = Client(call, layers, stall_s=60.0)
        await client.open(200, EVENTS)
        client.go_straight()
        for part, at_once in zip(parts, straight, strict=False):
            if not (at_once and client.at_once(part, 1.0)):
                await client.frames(part, more=True)
        await client.frames(frames_of(DONE), more=False)

    asyncio.run(run())
    return b"".join(got), told


@given(
    TEXTS,
    st.lists(BESIDE, min_size=8, max_size=8),
    st.lists(st.booleans(), min_size=10, max_size=10),
    st.integers(1, 3),
)
def test_what_leaks_and_what_is_not_asked_for_is_taken_out_either_way(
    texts: list[str], beside: list[object], straight: list[bool], size: int
) -> None:
    frames = frames_of(*map(said, texts, beside), finish(), usage())
    parts = [frames[at : at + size] for at in range(0, len(frames), size)]
    for mode in (LeakMode.AUTO, LeakMode.OBSERVE):
        assert _answer(parts, straight, mode) == _answer(parts, [False] * 10, mode)
