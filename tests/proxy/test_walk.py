"""The walk as a whole: who is asked, in which order, and what the client gets."""

from __future__ import annotations

import asyncio

import pytest

from tests.asgi import DISCONNECT, When
from tests.proxy.rig import (
    ALPHA,
    BETA,
    DONE,
    TWO,
    Rig,
    answer,
    combo,
    delta,
    fault,
    finish,
    good,
    provider,
    refusal,
    role,
    stream,
)
from tests.proxy.seat import Seat
from troyproxy.proxy.answers import Message
from troyproxy.proxy.rows import outcome_of
from troyproxy.resilience.faults import Fault

pytestmark = pytest.mark.anyio


async def test_the_first_member_that_works_serves(rig: Rig) -> None:
    rig.script(alpha=answer())
    served = await rig.ask()
    assert (served.exchange.status, rig.upstream.asked) == (200, ["alpha"])


@pytest.mark.parametrize("streamed", [False, True])
async def test_rate_limited_then_reset_then_served(rig: Rig, streamed: bool) -> None:
    rig.script(
        alpha=refusal(429, retry_after="3"), beta=fault(Fault.RESET, sent=True), gamma=good() if streamed else answer()
    )
    served = await rig.ask("three", stream=streamed)
    assert (served.exchange.status, served.outcomes) == (200, ["rate", "transient", "ok"])


async def test_the_next_request_goes_past_those_that_just_failed(rig: Rig) -> None:
    rig.script(alpha=refusal(429, retry_after="3"), beta=fault(Fault.RESET), gamma=[answer(), answer()])
    await rig.ask("three")
    served = await rig.ask("three")
    assert served.tried == ["gamma#A"]


async def test_a_rate_limited_member_is_tried_again_when_its_hint_is_over(rig: Rig) -> None:
    rig.script(alpha=[refusal(429, retry_after="3"), answer()], beta=answer())
    await rig.ask()
    await asyncio.sleep(3)
    served = await rig.ask()
    assert served.tried == ["alpha#A"]


async def test_three_spaced_failures_open_the_circuit(rig: Rig) -> None:
    rig.script(alpha=[fault(), fault(), fault()], beta=[answer()] * 4)
    for _ in range(3):
        await rig.ask()
        await asyncio.sleep(3)
    served = await rig.ask()
    assert (served.call.ledger.skips, served.tried) == ("alpha/m1=circuit", ["beta#A"])


async def test_one_of_fifty_probes_a_circuit_that_is_half_open(rig: Rig) -> None:
    gate = asyncio.Event()
    slow = answer(before=[gate])
    rig.script(alpha=[fault(), fault(), fault(), slow], beta=[answer()] * 60)
    for _ in range(3):
        await rig.ask()
        await asyncio.sleep(3)
    await asyncio.sleep(30)
    async with asyncio.TaskGroup() as group:
        for _ in range(50):
            group.create_task(rig.ask())
        await asyncio.sleep(1)
        gate.set()
    assert rig.upstream.asked.count("alpha") == 4


async def test_eight_at_once_are_spread_over_two_accounts(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="AB"))
    rig.set(max_inflight=2)
    gate = asyncio.Event()
    rig.script(alpha=[answer(before=[gate])] * 8)
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(rig.ask("alpha/m1")) for _ in range(8)]
        await asyncio.sleep(1)
        gate.set()
    tried = [task.result().tried[0] for task in asked]
    assert (tried.count("alpha#A"), tried.count("alpha#B"), rig.idle) == (4, 4, True)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_client_that_leaves_before_the_first_byte_ends_the_walk(rig: Rig, streamed: bool) -> None:
    left = asyncio.Event()
    rig.script(alpha=answer(before=[30.0]))
    asyncio.get_running_loop().call_later(0.5, left.set)
    served = await rig.ask(stream=streamed, client=[When(left), DISCONNECT])
    assert (rig.upstream.asked, served.row.outcome, rig.idle, rig.untouched) == (["alpha"], "cancelled", True, True)


async def test_ten_clients_that_leave_do_not_touch_a_healthy_member(rig: Rig) -> None:
    rig.script(alpha=[*[stream(role(), 0.1, before=[30.0])] * 10, answer()])
    for _ in range(10):
        left = asyncio.Event()
        asyncio.get_running_loop().call_later(0.15, left.set)
        await rig.ask("alpha/m1", stream=True, client=[When(left), DISCONNECT])
    served = await rig.ask("alpha/m1")
    assert (served.outcomes, rig.log.events) == (["ok"], [])


async def test_a_client_that_does_not_read_is_dropped(rig: Rig) -> None:
    rig.set(write_stall_s=60.0)
    rig.script(alpha=stream(role(), delta("a"), delta("b"), 5.0))
    call = rig.call(stream=True)
    rig.planner.plan(call)

    async def never(_: object) -> None:
        await asyncio.Event().wait()

    await rig.walk.run(call, asyncio.Event().wait, never)  # type: ignore[arg-type]  # a receive that says nothing
    assert (call.client_left, rig.idle, "the client left" in call.ledger.lines) == (True, True, True)


@pytest.mark.parametrize("reads", [True, False])
async def test_only_a_peer_that_does_not_read_is_dropped(rig: Rig, *, reads: bool) -> None:
    rig.script(alpha=stream(role(), delta("a"), finish(), DONE))
    call, seat = rig.call(stream=True), Seat()
    call.peer, seat.paused = seat, not reads

    async def sending(_: object) -> None:
        if not reads:
            await asyncio.Event().wait()

    rig.planner.plan(call)
    await rig.walk.run(call, asyncio.Event().wait, sending)  # type: ignore[arg-type]  # a receive that says nothing
    assert (call.client_left, seat.dropped) == (not reads, not reads)


async def test_a_cancellation_from_outside_passes_and_is_recorded_as_cancelled(rig: Rig) -> None:
    rig.script(alpha=answer(before=[30.0]))
    call = rig.call()
    task = asyncio.get_running_loop().create_task(rig.ask(call=call))
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait({task})
    assert (task.cancelled(), call.client_left, rig.idle) == (True, True, True)


async def test_round_robin_over_members_alternates(rig: Rig) -> None:
    rig.use(ALPHA, BETA, combo("turn", "alpha/m1", "beta/m2", strategy="round-robin"))
    rig.script(alpha=[answer()] * 2, beta=[answer()] * 2)
    for _ in range(4):
        await rig.ask("turn")
    assert rig.upstream.asked == ["alpha", "beta", "alpha", "beta"]


async def test_nothing_is_left_of_a_good_request(rig: Rig) -> None:
    rig.script(alpha=good())
    await rig.ask(stream=True)
    assert rig.idle


async def test_the_combo_is_told_when_the_walk_leaves_a_provider(rig: Rig) -> None:
    rig.use(ALPHA, BETA, TWO)
    rig.script(alpha=refusal(500), beta=answer())
    await rig.ask()
    (failover,) = rig.observer.of("failed_over")[0]
    assert (failover.combo, failover.from_provider, failover.to_provider, failover.error_class) == (  # type: ignore[attr-defined]
        "two",
        "alpha",
        "beta",
        "transient",
    )


async def test_a_stream_that_the_server_takes_away_is_told_so_once(rig: Rig) -> None:
    rig.script(alpha=stream(role(), delta("a"), 60.0))
    call = rig.call(stream=True)
    rig.planner.plan(call)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    walking = rig.walk.run(call, asyncio.Event().wait, send)  # type: ignore[arg-type]  # a receive that says nothing
    task = asyncio.get_running_loop().create_task(walking)
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait({task})
    assert (task.cancelled(), sent[-1]["more_body"], outcome_of(call)) == (True, False, "truncated")
    assert b"the gateway is stopping" in sent[-1]["body"]
