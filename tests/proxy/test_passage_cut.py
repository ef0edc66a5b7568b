"""Answers that are passed through and break off: the connection ends, nobody else is asked, the failure counts."""

from __future__ import annotations

import asyncio

import pytest

from tests.asgi import DISCONNECT, AfterSent, Exchange, Receive, Scope, Send, drive, http_scope
from tests.fakes import Step
from tests.proxy.rig import Rig, reset
from tests.proxy.seat import Seat
from tests.proxy.test_passage import WAV, passing, sound
from troyproxy.proxy.call import Call
from troyproxy.proxy.rows import row_of
from troyproxy.proxy.walk import AnswerCut

pytestmark = pytest.mark.anyio


async def cut(rig: Rig, call: Call) -> Exchange:
    """Walk *call*, whose answer breaks off, and return what was sent until then."""
    rig.planner.plan(call)

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        with pytest.raises(AnswerCut):
            await rig.walk.run(call, receive, send)

    return await drive(app, http_scope(), limit_s=10_000)


def ended(exchange: Exchange) -> bool:
    """Whether the body came to its end."""
    return not exchange.sent[-1].get("more_body", False)


@pytest.mark.parametrize(
    ("steps", "length"),
    [
        ((b"ab", reset()), None),
        ((b"ab", 100.0, b"c"), None),
        ((b"ab",), b"3"),
        ((b"ab", b"cd"), b"3"),
        ((b"ab", reset()), b"3"),
    ],
)
async def test_a_cut_ends_the_connection_and_nobody_else_is_asked(
    rig: Rig, steps: tuple[Step, ...], length: bytes | None
) -> None:
    rig.script(alpha=sound(*steps, headers=(*WAV, *(() if length is None else ((b"content-length", length),)))))
    call = passing(rig)
    exchange = await cut(rig, call)
    row = row_of(call, duration_s=0.0)
    assert (exchange.body, ended(exchange), rig.upstream.asked) == (b"ab", False, ["alpha"])
    assert (row.outcome, row.status, row.attempts[0].outcome, rig.idle) == ("truncated", 200, "transient", True)


async def test_where_our_own_server_is_in_front_it_drops_the_client_and_nothing_is_raised(rig: Rig) -> None:
    rig.script(alpha=sound(b"ab", reset()))
    call, seat = passing(rig), Seat()
    call.peer = seat
    rig.planner.plan(call)
    exchange = await drive(lambda _, receive, send: rig.walk.run(call, receive, send), http_scope(), limit_s=10_000)
    assert (exchange.body, ended(exchange), seat.dropped, call.ledger.truncated) == (b"ab", False, True, True)


async def test_a_cut_counts_as_a_failure_of_the_member(rig: Rig) -> None:
    rig.script(alpha=[sound(b"ab", reset())], beta=[sound(b"whole")])
    await cut(rig, passing(rig))
    served = await rig.ask(call=passing(rig))
    assert served.exchange.body == b"whole"


async def test_a_client_that_leaves_ends_it(rig: Rig) -> None:
    rig.script(alpha=sound(b"ab", 50.0, b"c"))
    served = await rig.ask(call=passing(rig), client=(AfterSent(2), DISCONNECT))
    assert (served.row.outcome, ended(served.exchange), rig.idle) == ("cancelled", False, True)


async def test_a_server_that_stops_truncates_it(rig: Rig) -> None:
    rig.script(alpha=sound(b"ab", asyncio.Event()))
    call = passing(rig)
    sent = asyncio.Event()
    rig.planner.plan(call)

    async def receive() -> dict[str, object]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: object) -> None:
        if isinstance(message, dict) and message.get("body"):
            sent.set()

    task = asyncio.get_running_loop().create_task(rig.walk.run(call, receive, send))
    await sent.wait()
    task.cancel()
    await asyncio.wait({task})
    assert (task.cancelled(), call.ledger.truncated, call.client_left) == (True, True, False)
