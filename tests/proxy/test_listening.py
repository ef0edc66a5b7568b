"""Events that are passed on without the task: the client gets, and is recorded as getting, what the task would give."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.asgi import Message
from tests.proxy.rig import DONE, Rig, Served, delta, event, finish, role, usage
from tests.proxy.seat import Seat
from tests.virtual import VirtualLoop
from troyproxy.ports import Ear, EarFailed, UpstreamRequest
from troyproxy.proxy.client import Client, ClientGone
from troyproxy.proxy.hearing import GAP_SAMPLE
from troyproxy.proxy.rows import row_of
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.pooled.response import PooledResponse
from troyproxy.wire.sse import Frame

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
ODD = (
    b": a comment\n\n",
    b"id: 7\n\n",
    b"event: ping\ndata: {}\n\n",
    b"data: no json\n\n",
    b"data: [DONE]\n\n",
    b'data:{"choices":[{"delta":{"content":"tight"}}]}\r\n\r\n',
    event({"choices": [{"index": 0, "delta": {"content": "u"}}], "usage": None}),
    event({"error": {"message": "overloaded", "code": 503}}),
    delta("other", index=1),
    usage(),
    finish(),
)
EVENTS = st.lists(st.one_of(st.sampled_from("abc").map(delta), st.sampled_from(ODD)), max_size=12)
TURN_S = 0.1


class _Line:
    """A connection that is only fed."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def begun(self, status: int) -> None: ...
    def finished(self, *, reusable: bool) -> None: ...
    def abort(self) -> None: ...


class _Pulled(PooledResponse):
    """As adapters are that offer nothing."""

    def listen(self, ear: Ear) -> None: ...


@dataclass(slots=True)
class _Fed:
    """An upstream whose one answer comes in *reads*, `TURN_S` apart, and may end by a reset."""

    reads: Sequence[bytes]
    kind: type[PooledResponse] = PooledResponse
    reset: bool = False
    responses: list[PooledResponse] = field(default_factory=list)

    async def send(self, _: UpstreamRequest) -> PooledResponse:
        response = self.kind(_Line(), asyncio.get_running_loop(), bodiless=False)
        self.responses.append(response)
        loop = asyncio.get_running_loop()
        for at, data in enumerate(self.reads):
            loop.call_later(at * TURN_S, response.received, data)
        if self.reset:
            loop.call_later(len(self.reads) * TURN_S, response.fail, Fault.RESET, "reset")
        await response.arrived()
        return response

    async def aclose(self) -> None: ...


def _chunked(events: Sequence[bytes]) -> bytes:
    return HEAD + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in events if part) + b"0\r\n\r\n"


def _cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    at = sorted({0, len(data), *(place % len(data) for place in places)})
    return [data[begin:end] for begin, end in itertools.pairwise(at)]


def _reads(*events: bytes) -> list[bytes]:
    """Each event in a read of its own."""
    return [HEAD, *(b"%x\r\n%b\r\n" % (len(part), part) for part in events), b"0\r\n\r\n"]


def _run(
    upstream: _Fed, *, paused: tuple[float, float] | None = None, leaves_s: float = 0.0, straight: bool = True
) -> Served:
    async def run() -> Served:
        rig = Rig()
        rig.upstream = upstream  # type: ignore[assignment]  # one that is fed
        rig.set(stream_idle_s=0.25, keepalive_s=0.0, max_attempts=1)
        call = rig.call("alpha/m1", stream=True)
        call.peer = seat = Seat(straight=straight)
        loop = asyncio.get_running_loop()
        for at, value in zip(paused or (), (True, False), strict=False):
            loop.call_later(at, setattr, seat, "paused", value)
        if leaves_s:
            seat.leave_in(leaves_s)
        return await rig.ask(call=call)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())


def _seen(served: Served) -> tuple[object, ...]:
    row, ledger = served.row, served.call.ledger
    gaps = [round(gap, 6) for gap in ledger.gaps_s]
    body = served.exchange.body.replace(served.call.request_id.encode(), b"")
    return body, row.outcome, ledger.usage, gaps, served.outcomes


@given(
    EVENTS,
    st.lists(st.integers(0, 5000), max_size=12),
    st.none() | st.tuples(st.floats(0, 2), st.floats(0, 2)),
    st.booleans(),
    st.sampled_from([0.0, 0.35, 0.72]),
    st.booleans(),
)
def test_it_makes_no_difference_whether_the_task_is_woken(
    events: list[bytes],
    places: list[int],
    paused: tuple[float, float] | None,
    reset: bool,
    leaves_s: float,
    straight: bool,
) -> None:
    data = _chunked([role(), delta("first"), *events, *([] if reset else [finish(), usage(), DONE])])
    reads = _cut(data[:-5] if reset else data, places)
    pulled = _run(_Fed(reads, _Pulled, reset), paused=paused, leaves_s=leaves_s)
    heard = _run(_Fed(reads, PooledResponse, reset), paused=paused, leaves_s=leaves_s, straight=straight)
    assert _seen(heard) == _seen(pulled)


def test_an_ordinary_event_wakes_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[bytes] = []
    original = PooledResponse.__anext__

    async def pulled(self: PooledResponse) -> bytes:
        woken.append(await original(self))
        return woken[-1]

    monkeypatch.setattr(PooledResponse, "__anext__", pulled)
    served = _run(_Fed(_reads(delta("a"), delta("b"), delta("c"), finish(), DONE)))
    assert (served.text, woken) == ("abc", [delta("a"), finish(), DONE])


def test_the_idle_time_begins_with_the_last_event_that_was_passed_on() -> None:
    served = _run(_Fed(_reads(*[delta("a")] * 8)[:-1]))
    assert (served.text.count("a"), served.stream_error["code"]) == (8, "timeout")


def test_what_comes_while_the_client_does_not_read_follows_in_order() -> None:
    served = _run(_Fed(_reads(*map(delta, "abcdefgh"), finish(), DONE)), paused=(0.25, 0.55))
    assert (served.text, served.row.outcome) == ("abcdefgh", "ok")


def test_nothing_is_passed_on_to_a_client_that_left() -> None:
    served = _run(_Fed(_reads(*map(delta, "abcdefgh"), finish(), DONE)), leaves_s=0.35)
    assert (served.exchange.body, served.row.outcome) == (b"".join(map(delta, "abc")), "cancelled")


# --- a bug on the way ---


class _Wrong(Exception):
    """Nobody expects it."""


class _Worn(Seat):
    """Its third part is one too many."""

    def put(self, part: bytes, /) -> None:
        if len(self.parts) == 2:
            raise _Wrong
        super().put(part)


def test_a_bug_of_ours_ends_the_request_and_is_no_fault_of_the_upstream() -> None:
    async def run() -> None:
        rig, told, sent = Rig(), list[object](), list[Message]()
        rig.upstream = upstream = _Fed(_reads(*map(delta, "abcdefg")))  # type: ignore[assignment]  # one that is fed
        rig.set(max_attempts=1)
        call = rig.call("alpha/m1", stream=True)
        call.peer = _Worn(straight=True)
        rig.planner.plan(call)

        async def send(message: Message) -> None:
            sent.append(message)

        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
        with pytest.raises(EarFailed):
            await rig.walk.run(call, asyncio.Event().wait, send)  # type: ignore[arg-type]  # it is not asked
        assert ([type(error) for error in told], upstream.responses[0]._line) == ([_Wrong], None)
        (breaker,) = rig.health.state.breakers.values()
        assert (breaker.window[0].failed, rig.health.state.cooldowns) == (0, {})
        assert (call.ledger.attempts[0].outcome, row_of(call, duration_s=0.0).outcome) == ("ok", "truncated")
        assert b'"internal_error"' in sent[-1]["body"]

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())


# --- a layer that waits, a client that is gone ---

A, B = Frame(b"data: a\n\n", b"a"), Frame(b"data: b\n\n", b"b")


def _behind(seat: Seat, send: object) -> Client:
    call = Rig().call()
    call.peer = seat
    return Client(call, send, stall_s=60.0)  # type: ignore[arg-type]  # a `Send`


@pytest.mark.anyio
async def test_a_layer_that_waits_all_the_same_is_waited_for() -> None:
    got: list[object] = []

    async def slow(message: Message) -> None:
        await asyncio.sleep(1)
        await asyncio.sleep(0)
        got.append(message["body"])

    client = _behind(Seat(), slow)
    client.at_once([A], 1.0)
    assert (client.ready, got) == (False, [])
    await client.frames([B], more=True)
    assert (got, client.ready) == ([A.raw, B.raw], True)


@pytest.mark.anyio
@pytest.mark.parametrize("late", [False, True])
async def test_who_sends_next_hears_that_the_client_has_gone(late: bool) -> None:
    async def broken(_: Message) -> None:
        if late:
            await asyncio.sleep(1)
        raise ConnectionResetError

    client = _behind(Seat(), broken)
    client.at_once([A], 1.0)
    await asyncio.sleep(2)
    assert not client.ready
    with pytest.raises(ClientGone):
        await client.frames([B], more=True)


@pytest.mark.anyio
async def test_what_a_layer_keeps_back_is_not_heard() -> None:
    client = _behind(Seat(), None)

    async def keeps(_: Message) -> None:
        client._call.frames = []  # as the guard does

    client._send = keeps
    client.at_once([A], 7.0)
    assert client.sent_at == 0.0


def test_of_a_long_stream_some_gaps_are_kept() -> None:
    served = _run(_Fed(_reads(*[delta("a")] * (GAP_SAMPLE + 40), finish(), DONE)))
    assert (len(served.call.ledger.gaps_s), len(served.text)) == (GAP_SAMPLE, GAP_SAMPLE + 40)
