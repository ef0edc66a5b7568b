"""The clocks of a stream, and what is recorded of it."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.fakes import Step
from tests.proxy.rig import (
    ALPHA,
    BETA,
    DONE,
    SSE,
    TWO,
    Rig,
    delta,
    event,
    finish,
    good,
    provider,
    reset,
    role,
    stream,
    usage,
)
from troyproxy.accounting.usage import Usage
from troyproxy.leaks.gate import GateVerdict

pytestmark = pytest.mark.anyio

OVERLOADED = event({"error": {"message": "overloaded", "type": "server_error", "code": 503}})

COMMENTS: list[Step] = [0.2, b": ping\n\n"]
PINGS: list[Step] = [*COMMENTS, b"event: ping\ndata: {}\n\n"]


# --- clocks ---


async def test_idle_is_counted_by_events_and_not_by_comments(rig: Rig) -> None:
    rig.set(stream_idle_s=1.0, keepalive_s=0.0)
    rig.script(alpha=stream(delta("a"), *PINGS * 1000))
    began = rig.clock.monotonic()
    served = await rig.ask(stream=True)
    assert (served.stream_error["code"], round(rig.clock.monotonic() - began, 3)) == ("timeout", 1.0)
    assert (served.stream_error["message"], rig.idle) == ("upstream idle for over 1000 ms", True)


async def test_comments_before_the_first_output_run_against_its_own_limit(rig: Rig) -> None:
    rig.set(stream_idle_s=1.0, first_output_s=10.0)
    rig.script(alpha=stream(*COMMENTS * 15, delta("a"), finish(), DONE))
    served = await rig.ask(stream=True)
    assert served.text == "a"


async def test_no_output_within_its_limit_goes_on_to_the_next_member(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="AB"), BETA, TWO)
    rig.set(first_output_s=10.0)
    rig.script(alpha=stream(*COMMENTS * 500), beta=good())
    served = await rig.ask(stream=True)
    assert (served.tried, served.call.ledger.attempts[0].reason) == (["alpha#A", "beta#A"], "timeout total: transient")


async def test_a_slow_head_is_a_first_byte_timeout(rig: Rig) -> None:
    rig.set(stream_idle_s=10.0)
    rig.script(alpha=stream(before=[1e6]), beta=good())
    served = await rig.ask(stream=True)
    assert served.call.ledger.attempts[0].reason == "timeout first byte: transient"


async def test_a_full_head_without_output_still_runs_against_the_first_output_limit(rig: Rig) -> None:
    rig.set(first_output_s=3.0, stream_idle_s=60.0, head_events=4)
    rig.script(alpha=stream(*[step for _ in range(40) for step in (role(), 0.2)]))
    served = await rig.ask("alpha/m1", stream=True)
    assert served.stream_error["code"] == "timeout"
    assert "no output" in str(served.stream_error["message"])


async def test_a_flood_without_output_is_cut_although_no_timer_gets_a_turn(rig: Rig) -> None:
    rig.set(first_output_s=0.5, head_events=4)
    rig.script(alpha=stream(*[role()] * 8, 1.0, *[role()] * 50_000))
    served = await rig.ask("alpha/m1", stream=True)
    assert served.stream_error["code"] == "timeout"


class Reading:
    """A gate that waits for the end, as for a call that a model writes as text."""

    def reset(self) -> None:
        """Begin anew."""

    def feed(self, event: object, can_reject: bool) -> GateVerdict:
        del can_reject
        return GateVerdict.PASS if "stop" in json.dumps(event) else GateVerdict.PENDING

    def judge(self, body: object, can_reject: bool) -> GateVerdict:
        del body, can_reject
        return GateVerdict.PASS


async def test_while_a_gate_reads_an_output_that_goes_on_its_clock_is_that_of_silence(rig: Rig) -> None:
    rig.set(first_output_s=3.0, stream_idle_s=2.0)
    rig.script(alpha=stream(role(), *[step for _ in range(20) for step in (delta("a"), 1.0)], finish(), DONE))
    served = await rig.ask(call=rig.call("alpha/m1", gates=[Reading()], stream=True))
    assert (served.call.ledger.attempts[0].reason, served.text) == ("", "a" * 20)


async def test_while_a_gate_reads_silence_ends_the_attempt(rig: Rig) -> None:
    rig.set(first_output_s=30.0, stream_idle_s=2.0)
    rig.script(alpha=stream(role(), delta("a"), *COMMENTS * 500))
    served = await rig.ask(call=rig.call("alpha/m1", gates=[Reading()], stream=True))
    assert (served.call.ledger.attempts[0].reason, rig.idle) == ("timeout idle: transient", True)


async def test_while_a_gate_reads_the_walks_deadline_still_counts(rig: Rig) -> None:
    rig.set(request_timeout_s=10.0, stream_idle_s=2.0)
    rig.script(alpha=stream(role(), *[step for _ in range(20) for step in (delta("a"), 1.0)], finish(), DONE))
    served = await rig.ask(call=rig.call("alpha/m1", gates=[Reading()], stream=True))
    assert (served.call.ledger.attempts[0].reason, rig.idle) == ("timeout total: transient", True)


async def test_a_silent_upstream_is_cut_without_another_read(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), asyncio.Event()))
    served = await rig.ask(stream=True)
    assert (served.stream_error["type"], rig.upstream.responses[0].taken, rig.idle) == ("server_error", 2, True)


async def test_a_client_that_reads_slowly_is_not_the_upstreams_silence(rig: Rig) -> None:
    rig.set(stream_idle_s=10.0, keepalive_s=0.0)
    rig.script(alpha=stream(delta("a"), b": hm\n\n", 9.0, delta("b"), 9.0, finish(), DONE))
    call = rig.call(stream=True)
    rig.planner.plan(call)
    got: list[bytes] = []

    async def slowly(message: dict[str, object]) -> None:
        await asyncio.sleep(30)
        got.append(bytes(message.get("body", b"")))  # type: ignore[call-overload]  # bytes by ASGI

    await rig.walk.run(call, asyncio.Event().wait, slowly)  # type: ignore[arg-type]  # a receive that says nothing
    assert b"".join(got).endswith(DONE)


async def test_a_client_that_reads_slowly_does_not_put_off_the_first_output(rig: Rig) -> None:
    rig.set(first_output_s=20.0, keepalive_s=0.0, head_events=2)
    rig.script(alpha=stream(*[role()] * 4, asyncio.Event()))
    call = rig.call("alpha/m1", stream=True)
    rig.planner.plan(call)
    got: list[bytes] = []

    async def slowly(message: dict[str, object]) -> None:
        await asyncio.sleep(9)
        got.append(bytes(message.get("body", b"")))  # type: ignore[call-overload]  # bytes by ASGI

    await rig.walk.run(call, asyncio.Event().wait, slowly)  # type: ignore[arg-type]  # a receive that says nothing
    assert (b'"timeout"' in got[-1], rig.upstream.responses[0].taken) == (True, 3)


async def test_the_gaps_between_events_are_sampled(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), 2.0, delta("b"), 3.0, finish(), DONE))
    served = await rig.ask(stream=True)
    assert served.call.ledger.gaps_s == [pytest.approx(2.0), pytest.approx(3.0)]


async def test_the_sample_of_gaps_is_bounded(rig: Rig) -> None:
    rig.script(alpha=stream(*[delta("a")] * 700, finish(), DONE))
    served = await rig.ask(stream=True)
    assert len(served.call.ledger.gaps_s) == 512


# --- usage ---


async def test_usage_is_the_last_report_and_never_a_sum(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), usage(10, 1), usage(10, 2), finish(), DONE))
    served = await rig.ask(stream=True)
    assert served.row.usage == Usage(10, 2)


async def test_null_and_partial_reports_overwrite_nothing(rig: Rig) -> None:
    null = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": None})
    partial = event({"choices": [], "usage": {"prompt_tokens_details": {"cached_tokens": 0}}})
    rig.script(alpha=stream(delta("a"), usage(3, 2), partial, null, DONE))
    served = await rig.ask(stream=True)
    assert served.row.usage == Usage(3, 2)


async def test_without_a_report_usage_is_an_estimate_that_says_so(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), delta("b"), finish(), DONE))
    served = await rig.ask(stream=True)
    assert served.row.usage == Usage(1, 3, estimated=True)


async def test_a_cut_stream_keeps_the_usage_that_was_seen(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), usage(7, 1), reset()))
    served = await rig.ask(stream=True)
    assert (served.row.usage, served.row.wasted) == (Usage(7, 1), None)


async def test_delivered_and_wasted_sum_to_what_the_upstreams_reported(rig: Rig) -> None:
    rig.script(alpha=stream(usage(5, 1), OVERLOADED), beta=stream(delta("a"), finish(), usage(7, 2), DONE))
    served = await rig.ask(stream=True)
    assert (served.row.usage, served.row.wasted) == (Usage(7, 2), Usage(5, 1))


async def test_a_large_event_is_delivered_whole(rig: Rig) -> None:
    arguments = "x" * 3_000_000
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "w", "arguments": arguments}}
    big = event({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
    pieces = [big[at : at + 16_384] for at in range(0, len(big), 16_384)]
    rig.use(ALPHA)
    rig.script(alpha=stream(*pieces, finish(), DONE))
    served = await rig.ask("alpha/m1", stream=True)
    assert json.loads(served.events[0])["choices"][0]["delta"]["tool_calls"] == [call]


async def test_one_event_in_one_read_or_in_many_gives_the_same_bytes(rig: Rig) -> None:
    frames = [delta("ok"), finish(), usage(), DONE]
    rig.script(alpha=[stream(b"".join(frames)), stream(*[part for frame in frames for part in (frame, 0.2)])])
    first, second = await rig.ask(stream=True), await rig.ask(stream=True)
    assert (first.exchange.body, first.row.usage) == (second.exchange.body, second.row.usage)


def test_the_scripts_are_event_streams() -> None:
    assert good().headers == SSE
