"""Upstreams are told of the trace while spans are made, each attempt as a span of its own; else of none."""

from __future__ import annotations

import pytest

from tests.proxy.relayed import SESSION, long, summed, use
from tests.proxy.rig import Rig, answer, fault, refusal
from troyproxy.accounting.records import Traced
from troyproxy.proxy.call import Call
from troyproxy.wire.traceparent import TraceParent, child_id, parent_of

pytestmark = pytest.mark.anyio

TRACED = Traced("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", state="vendor=1")


def told(rig: Rig, name: bytes = b"traceparent") -> list[bytes | None]:
    """Return this header of each request that an upstream got."""
    return [dict(request.headers).get(name) for request in rig.upstream.requests]


def parents(rig: Rig) -> list[TraceParent | None]:
    return [parent_of((value or b"").decode()) for value in told(rig)]


def traced(call: Call, traced: Traced = TRACED) -> Call:
    call.traced = traced
    return call


async def test_each_attempt_calls_as_a_span_of_its_own(rig: Rig) -> None:
    rig.script(alpha=[refusal(500)], beta=answer())
    await rig.ask(call=traced(rig.call()))
    ids = [child_id(TRACED.span_id, number) for number in (1, 2)]
    assert parents(rig) == [TraceParent(TRACED.trace_id, span, sampled=True) for span in ids]


async def test_what_is_not_sampled_says_so(rig: Rig) -> None:
    rig.script(alpha=answer())
    await rig.ask(call=traced(rig.call(), Traced(TRACED.trace_id, TRACED.span_id, sampled=False)))
    assert [parent is not None and parent.sampled for parent in parents(rig)] == [False]


async def test_the_callers_state_goes_along(rig: Rig) -> None:
    rig.script(alpha=fault(), beta=answer())
    await rig.ask(call=traced(rig.call()))
    assert told(rig, b"tracestate") == [b"vendor=1", b"vendor=1"]


async def test_the_question_for_a_summary_is_an_attempt_too(rig: Rig) -> None:
    use(rig)
    rig.script(sigma=answer(summed()), alpha=answer())
    await rig.ask(call=traced(rig.call("relay", messages=long(), **SESSION)))
    assert [parent and parent.span_id for parent in parents(rig)] == [child_id(TRACED.span_id, n) for n in (1, 2)]


async def test_without_spans_no_trace_leaves(rig: Rig) -> None:
    rig.script(alpha=answer())
    await rig.ask(headers={"traceparent": f"00-{TRACED.trace_id}-{TRACED.span_id}-01", "tracestate": "vendor=1"})
    assert (told(rig), told(rig, b"tracestate")) == ([None], [None])
