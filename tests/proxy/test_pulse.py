from __future__ import annotations

import asyncio
import logging

import pytest

from tests.asgi import Message
from tests.fakes import Step
from tests.proxy.rig import DONE, Rig, answer, delta, finish, good, stream
from troyproxy.proxy.client import Client
from troyproxy.proxy.pulse import Pulse
from troyproxy.wire.sse import Frame

pytestmark = pytest.mark.anyio

COMMENT = b": keep-alive\n\n"


async def test_a_silent_stream_is_kept_alive_by_comments(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), 40.0, finish(), DONE))
    served = await rig.ask(stream=True)
    assert served.exchange.body == delta("a") + COMMENT * 2 + finish() + DONE


async def test_a_stream_that_speaks_needs_no_comments(rig: Rig) -> None:
    steady: list[Step] = [delta("a"), 10.0]
    rig.script(alpha=stream(*steady * 6, finish(), DONE))
    served = await rig.ask(stream=True)
    assert COMMENT not in served.exchange.body


async def test_before_the_head_nothing_is_sent(rig: Rig) -> None:
    rig.script(alpha=stream(50.0, delta("a"), finish(), DONE))
    served = await rig.ask(stream=True)
    assert COMMENT not in served.exchange.body


async def test_keep_alives_can_be_turned_off(rig: Rig) -> None:
    rig.set(keepalive_s=0.0)
    rig.script(alpha=stream(delta("a"), 40.0, finish(), DONE))
    served = await rig.ask(stream=True)
    assert COMMENT not in served.exchange.body


async def test_a_whole_answer_gets_no_comment(rig: Rig) -> None:
    rig.script(alpha=answer(before=[100.0]))
    served = await rig.ask()
    assert COMMENT not in served.exchange.body


async def test_an_early_head_goes_out_with_a_comment_and_no_content(rig: Rig) -> None:
    rig.set(early_commit_s=2.0)
    rig.script(alpha=stream(before=[20.0]), beta=good())
    rig.upstream.add("alpha")
    call = rig.call(stream=True)
    rig.planner.plan(call)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    task = asyncio.get_running_loop().create_task(rig.walk.run(call, asyncio.Event().wait, send))  # type: ignore[arg-type]
    await asyncio.sleep(3)
    early = [(message["type"], message.get("body")) for message in sent]
    await task
    assert early == [("http.response.start", None), ("http.response.body", COMMENT)]


async def test_a_stream_that_begins_in_time_gets_its_own_head(rig: Rig) -> None:
    rig.set(early_commit_s=2.0, keepalive_s=0.0)
    rig.script(alpha=stream(delta("a"), 10.0, finish(), DONE))
    served = await rig.ask(stream=True)
    assert (served.exchange.body, served.exchange.header("x-troy-account")) == (delta("a") + finish() + DONE, "A")


async def test_an_error_in_time_keeps_its_true_status(rig: Rig) -> None:
    rig.set(early_commit_s=2.0)
    rig.script(alpha=answer({"error": {"message": "no"}}, 400, before=[1.0]))
    served = await rig.ask(stream=True)
    assert served.exchange.status == 400


def _client(rig: Rig, error: Exception) -> Client:
    async def send(_: Message) -> None:
        raise error

    return Client(rig.call(), send, stall_s=60)


async def test_a_client_that_has_gone_ends_the_beat_quietly(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    async with Pulse(_client(rig, BrokenPipeError()), (), open_after_s=1.0, every_s=1.0):
        await asyncio.sleep(10)
    assert caplog.messages == []


async def test_a_bug_in_a_layer_outside_is_told(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        async with Pulse(_client(rig, ZeroDivisionError()), (), open_after_s=1.0, every_s=0.0):
            await asyncio.sleep(10)
    assert caplog.messages == ["the keep-alive had failed"]


async def test_a_comment_that_is_on_its_way_at_the_end_is_given_up(rig: Rig) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        if message.get("body") == COMMENT:
            await asyncio.sleep(50)
        sent.append(message)

    client = Client(rig.call(), send, stall_s=60)
    began = rig.clock.monotonic()
    async with Pulse(client, (), open_after_s=0.0, every_s=1.0):
        await client.open(200, ())
        await asyncio.sleep(10)
    assert (len(sent), rig.clock.monotonic() - began) == (1, 10.0)


async def test_a_finished_answer_ends_the_beat(rig: Rig) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    client = Client(rig.call(), send, stall_s=60)
    async with Pulse(client, (), open_after_s=0.0, every_s=1.0):
        await client.whole(200, (), b"x")
        await asyncio.sleep(10)
    assert len(sent) == 2


async def test_what_a_layer_keeps_back_is_silence(rig: Rig) -> None:
    call = rig.call(stream=True)

    async def send(message: Message) -> None:
        if b"leak" in message.get("body", b""):
            call.frames = []

    client = Client(call, send, stall_s=60)
    await client.frames([Frame(raw=b"data: {}", data=b"{}")], more=True)
    began = client.sent_at
    await asyncio.sleep(10)
    await client.frames([Frame(raw=b"data: leak", data=b"leak")], more=True)
    assert client.sent_at == began
