"""The client leaves at every await: slots 0, upstream closed, nobody else asked, health as it was, a row that says so.

A request is first run undisturbed to count the moments at which it can be interrupted (every turn of the event loop);
then it is run again once for each of them, with ``http.disconnect`` arriving there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.asgi import DISCONNECT, Message, When
from tests.fakes import Reply, Step
from tests.proxy.rig import DONE, Rig, Served, answer, delta, fault, finish, refusal, role, stream, usage
from tests.proxy.seat import Seat
from tests.virtual import VirtualLoop
from troyproxy.proxy.client import Client
from troyproxy.proxy.disconnect import Disconnect
from troyproxy.resilience.breaker import Admission

STEPS: list[Step] = [0.0, role(), 0.0, delta("a"), 0.0, delta("b"), 0.0, finish(), usage(), 0.0, DONE]
STREAM = stream(*STEPS, before=[0.0, 0.1], close_s=0.05)
WHOLE = Reply(body=[0.0, *answer().body, 0.0], before=[0.0, 0.1], close_s=0.05)

CLOSED_WITHIN_S = 1.0
"""Of the clock of the loop, after the client has left."""


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": VirtualLoop}


def _run(make: Callable[[], Rig], *, streamed: bool, turns: int | None, own: bool = False) -> tuple[Rig, Served, int]:
    """Run one request; the client leaves after so many *turns* of the loop. Return also the turns that it took.

    *own*: our own server tells of it, and nobody listens at ``receive``.
    """

    async def run() -> tuple[Rig, Served, int]:
        rig, seat = make(), Seat()
        left = asyncio.Event()
        loop = asyncio.get_running_loop()
        call = rig.call(stream=streamed)
        call.peer = seat if own else None
        task = loop.create_task(rig.ask(call=call, client=[] if own else [When(left), DISCONNECT]))
        taken, left_at = 0, float("inf")
        while not task.done():
            if taken == turns:
                left.set()
                seat.leave()
                left_at = loop.time()
            taken += 1
            # One turn; but when all wait for a timer, no turn would ever come.
            await asyncio.sleep(0 if taken % 3 else 0.01)
        assert loop.time() - left_at < CLOSED_WITHIN_S, turns
        return rig, await task, taken

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())


def _plain(reply: Reply) -> Callable[[], Rig]:
    def make() -> Rig:
        rig = Rig()
        rig.script(alpha=reply)
        return rig

    return make


CASES = [(STREAM, True), (WHOLE, False)]
IDS = ["stream", "whole"]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("reply", "streamed"), CASES, ids=IDS)
def test_a_client_that_leaves_anywhere_leaves_nothing_behind(reply: Reply, streamed: bool, own: bool) -> None:
    _, _, total = _run(_plain(reply), streamed=streamed, turns=None, own=own)
    for turns in range(total):
        rig, served, _ = _run(_plain(reply), streamed=streamed, turns=turns, own=own)
        assert rig.idle, turns
        assert rig.upstream.asked in (["alpha"], []), turns
        assert rig.log.events == [], turns
        if served.call.client_left:
            assert (served.row.status, served.row.outcome) == (499, "cancelled"), turns
            assert set(served.outcomes) <= {"cancelled", "ok"}, turns


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("reply", "streamed"), CASES, ids=IDS)
def test_before_the_commit_point_the_health_state_is_as_new(reply: Reply, streamed: bool, own: bool) -> None:
    _, _, total = _run(_plain(reply), streamed=streamed, turns=None, own=own)
    seen = 0
    for turns in range(total):
        rig, served, _ = _run(_plain(reply), streamed=streamed, turns=turns, own=own)
        if served.call.client_left and not served.call.ledger.served:
            seen += 1
            assert rig.untouched, turns
            assert set(served.outcomes) <= {"cancelled"}, turns
    assert seen > 10


@pytest.mark.parametrize(("reply", "streamed"), CASES, ids=IDS)
def test_a_client_that_leaves_in_an_error_answer_asks_nobody_else(reply: Reply, streamed: bool) -> None:
    slow = Reply(503, [0.0, *refusal(503).body, 3.0], before=[0.1], close_s=0.05)

    def make() -> Rig:
        rig = Rig()
        rig.script(alpha=slow, beta=reply)
        return rig

    rig, served, _ = _run(make, streamed=streamed, turns=90)
    assert (rig.upstream.asked, served.outcomes, rig.untouched, rig.idle) == (["alpha"], ["cancelled"], True, True)


@pytest.mark.parametrize("streamed", [True, False])
def test_a_client_that_leaves_after_a_failover_touches_only_what_had_failed(streamed: bool) -> None:
    def make() -> Rig:
        rig = Rig()
        rig.script(alpha=refusal(500), beta=STREAM if streamed else WHOLE, gamma=answer())
        return rig

    rig, served, _ = _run(make, streamed=streamed, turns=25)
    assert (served.outcomes, rig.upstream.asked) == (["transient", "cancelled"], ["alpha", "beta"])
    assert {key.provider for key in rig.health.state.cooldowns} == {"alpha"}


@pytest.mark.anyio
@pytest.mark.parametrize(("reply", "streamed"), CASES, ids=IDS)
async def test_a_probe_whose_client_leaves_gives_its_lease_back(reply: Reply, streamed: bool) -> None:
    rig = Rig()
    slow = replace(reply, before=[5.0])
    rig.script(alpha=[fault(), fault(), fault(), slow], beta=[answer()] * 3)
    for _ in range(3):
        await rig.ask()
        await asyncio.sleep(3)
    await asyncio.sleep(40)
    left = asyncio.Event()
    asyncio.get_running_loop().call_later(0.5, left.set)
    served = await rig.ask(stream=streamed, client=[When(left), DISCONNECT])
    assert (served.tried, rig.health.admission("alpha", "m1"), rig.idle) == (["alpha#A"], Admission.PROBE, True)


@pytest.mark.anyio
async def test_a_client_that_leaves_while_a_parameter_is_learned_ends_the_retry() -> None:
    rig = Rig()
    said = refusal(400, "unknown field stream_options", param="stream_options")
    rig.script(alpha=[said, replace(STREAM, before=[5.0])])
    left = asyncio.Event()
    asyncio.get_running_loop().call_later(0.5, left.set)
    served = await rig.ask(stream=True, client=[When(left), DISCONNECT])
    assert (served.outcomes, rig.untouched, rig.idle) == (["model", "cancelled"], True, True)


@pytest.mark.anyio
async def test_a_second_cancellation_while_the_response_closes_still_frees_the_slot() -> None:
    rig = Rig()
    rig.script(alpha=stream(delta("a"), 50.0, close_s=5.0))
    task = asyncio.get_running_loop().create_task(rig.ask(stream=True))
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait({task})
    assert (task.cancelled(), rig.idle) == (True, True)


@pytest.mark.anyio
async def test_all_eight_clients_that_hang_up_before_the_first_byte_leave_no_slot_taken() -> None:
    rig = Rig()
    rig.script(alpha=[answer(before=[60.0])] * 8)
    left = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(rig.ask(client=[When(left), DISCONNECT]))
        await asyncio.sleep(1)
        left.set()
    gauge = rig.observer.of("inflight_changed")[-1]
    assert (rig.idle, gauge, rig.untouched) == (True, ("alpha", "A", 0), True)


@pytest.mark.anyio
async def test_leaving_and_a_cancellation_from_outside_at_once_stay_a_cancellation() -> None:
    rig = Rig()
    rig.script(alpha=answer(before=[60.0]))
    left = asyncio.Event()
    call = rig.call()
    task = asyncio.get_running_loop().create_task(rig.ask(call=call, client=[When(left), DISCONNECT]))
    await asyncio.sleep(1)
    left.set()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert (task.cancelled(), call.client_left, rig.idle) == (True, True, True)


@pytest.mark.anyio
async def test_a_deadline_around_us_still_becomes_a_timeout_after_a_client_has_left() -> None:
    rig = Rig()

    async def receive() -> Message:
        await asyncio.sleep(1)
        return {"type": "http.disconnect"}

    async def send(_: Message) -> None:
        raise AssertionError("nothing is sent")

    async def work() -> None:
        async with asyncio.timeout(5):
            async with Disconnect(receive, Client(rig.call(), send, stall_s=60)) as watch:
                await asyncio.sleep(60)
            assert watch.gone
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        await work()
