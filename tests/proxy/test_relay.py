"""One upstream's stream to the client: the commit point, the clocks, and exactly one ending."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.proxy.rig import (
    ALPHA,
    BETA,
    DONE,
    SSE,
    TWO,
    Rig,
    answer,
    delta,
    event,
    finish,
    good,
    provider,
    refusal,
    reset,
    role,
    stream,
    usage,
)
from troyproxy.accounting.usage import Usage
from troyproxy.leaks.gate import GateVerdict

pytestmark = pytest.mark.anyio

OVERLOADED = event({"error": {"message": "overloaded", "type": "server_error", "code": 503}})


class Undecided:
    """A gate that waits for ever, or for so many events."""

    def __init__(self, events: int = 1 << 30) -> None:
        self.left = events

    def reset(self) -> None:
        """Nothing is kept."""

    def feed(self, event: object, can_reject: bool, /) -> GateVerdict:
        self.left -= 1
        return GateVerdict.PENDING if self.left > 0 else GateVerdict.PASS

    def judge(self, body: object, can_reject: bool, /) -> GateVerdict:
        return GateVerdict.PENDING


# --- frames ---


async def test_frames_pass_byte_for_byte(rig: Rig) -> None:
    frames = [role(), b"data:{\"choices\":[{\"delta\":{\"content\":\"a\\u2028b\"}}]}\r\n\r\n", finish(), b"data:[DONE]\r\n\r\n"]
    rig.script(alpha=stream(b"".join(frames)))
    served = await rig.ask(stream=True)
    assert served.exchange.body == b"".join(frames)


async def test_a_cut_of_the_reads_anywhere_changes_nothing(rig: Rig) -> None:
    whole = role() + "data: {\"choices\":[{\"delta\":{\"content\":\"北京🙂\"}}]}\n\n".encode() + finish() + usage() + DONE
    rig.script(alpha=[stream(whole[:cut], whole[cut:]) for cut in range(1, len(whole))])
    bodies = {(await rig.ask(stream=True)).exchange.body for _ in range(1, len(whole))}
    assert bodies == {whole}


async def test_bogus_data_lines_are_dropped_before_and_after_the_commit(rig: Rig) -> None:
    bogus = b"data: : keepalive\n\n"
    rig.script(alpha=stream(bogus, role(), bogus, delta("a"), bogus, b"data:\n\n", finish(), DONE))
    served = await rig.ask(stream=True)
    assert served.exchange.body == role() + delta("a") + finish() + DONE
    assert "dropped 3 data lines that were no JSON objects" in served.call.ledger.lines


async def test_pings_in_data_reach_nobody(rig: Rig) -> None:
    ping = b"event: ping\ndata: {}\n\n"
    rig.script(alpha=stream(ping, delta("a"), ping, finish(), DONE))
    served = await rig.ask(stream=True)
    assert served.exchange.body == delta("a") + finish() + DONE


async def test_comments_pass_after_the_commit(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), b": hm\n\n", finish(), DONE))
    served = await rig.ask(stream=True)
    assert b": hm\n\n" in served.exchange.body


async def test_a_last_event_without_its_blank_line_counts_when_it_is_whole(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), finish()[:-2]))
    served = await rig.ask(stream=True)
    assert served.exchange.body == delta("a") + finish() + DONE


async def test_a_last_event_that_was_cut_reaches_nobody(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), delta("bcd")[:40]))
    served = await rig.ask(stream=True)
    assert (served.events[0], served.stream_error["code"]) == (delta("a")[6:-2], "upstream_disconnected")


async def test_bytes_behind_the_end_mark_are_ignored(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), finish() + DONE + delta("b"), delta("c")))
    served = await rig.ask(stream=True)
    assert (served.exchange.body, rig.idle) == (delta("a") + finish() + DONE, True)


async def test_text_about_errors_is_no_error(rig: Rig) -> None:
    said = event({"choices": [{"index": 0, "delta": {"content": 'set "error" to {"code":429}'}}], "error": None})
    rig.script(alpha=stream(said, finish(), DONE))
    served = await rig.ask(stream=True)
    assert (served.exchange.body, rig.log.events) == (said + finish() + DONE, [])


async def test_the_content_type_says_event_stream_whatever_the_upstream_says(rig: Rig) -> None:
    rig.script(alpha=answer(delta("a") + finish() + DONE))
    served = await rig.ask(stream=True)
    assert served.exchange.header("content-type") == "text/event-stream; charset=utf-8"


# --- the commit point ---


async def test_a_role_and_an_error_event_go_on_to_the_next_member(rig: Rig) -> None:
    rig.script(alpha=stream(role(), OVERLOADED), beta=good())
    served = await rig.ask(stream=True)
    assert (served.exchange.body.count(b'"role"'), served.outcomes) == (1, ["overload", "ok"])


@pytest.mark.parametrize("steps", [[role(), reset()], [role()], [role(), DONE], [reset()], [b"data: {nonsense\n\n"]])
async def test_a_stream_that_fails_before_output_goes_on(rig: Rig, steps: list[bytes]) -> None:
    rig.script(alpha=stream(*steps), beta=good())
    served = await rig.ask(stream=True)
    assert (served.text, served.outcomes) == ("ok", ["transient", "ok"])


@pytest.mark.parametrize("body", [b"", b"<html>hi</html>", b'{"choices":[]}', DONE, b": only\n\n"])
async def test_a_200_that_is_no_stream_goes_on(rig: Rig, body: bytes) -> None:
    rig.script(alpha=stream(body), beta=good())
    served = await rig.ask(stream=True)
    assert (served.text, served.outcomes) == ("ok", ["transient", "ok"])


async def test_an_error_object_in_place_of_a_stream_is_told_with_its_status(rig: Rig) -> None:
    rig.script(alpha=answer({"error": {"message": "slow down", "code": 429}}))
    served = await rig.ask("alpha/m1", stream=True)
    assert (served.exchange.status, served.error["message"], served.outcomes) == (429, "slow down", ["rate"])


async def test_an_empty_but_finished_answer_is_an_answer(rig: Rig) -> None:
    rig.script(alpha=stream(role(), finish(), usage(3, 0), DONE))
    served = await rig.ask(stream=True)
    assert (served.exchange.body, served.outcomes) == (role() + finish() + usage(3, 0) + DONE, ["ok"])


async def test_a_hundred_comments_do_not_commit(rig: Rig) -> None:
    rig.script(alpha=stream(*[b": PROCESSING\n\n"] * 100, reset()), beta=good())
    served = await rig.ask(stream=True)
    assert served.outcomes == ["transient", "ok"]


async def test_sixty_four_events_without_output_commit(rig: Rig) -> None:
    rig.script(alpha=stream(*[role()] * 64, reset()))
    served = await rig.ask(stream=True)
    assert (served.exchange.status, served.stream_error["code"]) == (200, "upstream_disconnected")


async def test_a_head_of_256_kib_without_output_commits(rig: Rig) -> None:
    big = event({"choices": [], "pad": "x" * (256 * 1024)})
    rig.script(alpha=stream(big, reset()))
    served = await rig.ask(stream=True)
    assert served.row.outcome == "truncated"


async def test_output_waits_for_a_gate_and_a_comment_does_not_hurry_it(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), b": hm\n\n", reset()), beta=good())
    served = await rig.ask(call=rig.call(gates=[Undecided()], stream=True))
    assert (served.text, served.outcomes) == ("ok", ["transient", "ok"])


async def test_a_cut_while_a_gate_waits_goes_on_since_nothing_was_sent(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a")), beta=good())
    served = await rig.ask(call=rig.call(gates=[Undecided()], stream=True))
    assert served.text == "ok"


async def test_what_a_gate_held_goes_out_once_it_passes(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), delta("b"), delta("c"), finish(), DONE))
    served = await rig.ask(call=rig.call(gates=[Undecided(events=3)], stream=True))
    assert served.exchange.body == delta("a") + delta("b") + delta("c") + finish() + DONE


async def test_the_end_of_the_stream_decides_for_a_gate_that_never_does(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), finish(), DONE))
    served = await rig.ask(call=rig.call(gates=[Undecided()], stream=True))
    assert (served.exchange.body, served.outcomes) == (delta("a") + finish() + DONE, ["ok"])


async def test_an_end_without_a_mark_decides_for_a_waiting_gate_too(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), finish()))
    served = await rig.ask(call=rig.call(gates=[Undecided()], stream=True))
    assert served.exchange.body == delta("a") + finish() + DONE


async def test_output_finish_and_end_in_one_read_are_all_delivered_once(rig: Rig) -> None:
    rig.script(alpha=stream(role() + delta("a") + finish() + usage() + DONE))
    served = await rig.ask(stream=True)
    assert served.exchange.body == role() + delta("a") + finish() + usage() + DONE


async def test_output_and_an_error_in_one_read_end_in_band(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a") + OVERLOADED + delta("b")))
    served = await rig.ask(stream=True)
    assert (len(served.events), served.stream_error["code"]) == (2, "upstream_error")


# --- endings ---


async def test_a_forgotten_end_mark_is_added_once(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), finish(), usage()))
    served = await rig.ask(stream=True)
    assert (served.exchange.body.count(DONE), served.row.outcome) == (1, "ok")


async def test_a_reset_after_the_finish_is_an_end(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), finish(), reset()))
    served = await rig.ask(stream=True)
    assert (served.events[-1], served.row.outcome) == (b"[DONE]", "ok")


@pytest.mark.parametrize("end", [[], [reset()]], ids=["end", "reset"])
async def test_a_cut_is_one_error_event_and_no_end_mark(rig: Rig, end: list[bytes]) -> None:
    rig.script(alpha=stream(delta("a"), *end), beta=good())
    served = await rig.ask(stream=True)
    assert (served.stream_error["code"], served.exchange.body.count(b'"error"')) == ("upstream_disconnected", 1)
    assert (b"[DONE]" in served.exchange.body, rig.upstream.asked) == (False, ["alpha"])


async def test_a_cut_is_recorded_as_a_failure_and_a_truncated_row(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), reset()))
    served = await rig.ask(stream=True)
    assert (served.row.outcome, served.row.status, served.outcomes) == ("truncated", 200, ["transient"])


async def test_the_error_event_tells_request_and_attempts(rig: Rig) -> None:
    rig.script(alpha=refusal(500), beta=stream(delta("a"), reset()))
    served = await rig.ask(stream=True)
    assert served.stream_error["troy"] == {
        "request_id": served.call.request_id,
        "partial": True,
        "retryable": True,
        "attempts": 2,
    }


async def test_an_error_event_after_the_commit_ends_with_the_upstreams_words(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), OVERLOADED, delta("b")))
    served = await rig.ask(stream=True)
    assert (served.stream_error["message"], served.stream_error["code"]) == ("overloaded", "upstream_error")
    assert (served.stream_error["type"], served.outcomes) == ("server_error", ["overload"])


async def test_a_filtered_stream_is_not_to_be_retried(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), event({"error": {"message": "no", "code": "content_filter"}})))
    served = await rig.ask(stream=True)
    assert served.stream_error["troy"]["retryable"] is False  # type: ignore[index]  # the envelope


async def test_a_secret_in_an_error_event_is_masked(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), event({"error": {"message": "bad key sk-up-alpha-A-1234567890abcd"}})))
    served = await rig.ask(stream=True)
    assert served.stream_error["message"] == "bad key ***"


async def test_an_event_over_the_limit_ends_in_band_after_those_before_it(rig: Rig) -> None:
    rig.set(max_event=1000)
    rig.script(alpha=stream(delta("a"), delta("b") + b"data: " + b"x" * 2000), beta=good())
    served = await rig.ask(stream=True)
    assert (served.events[1], served.stream_error["code"]) == (delta("b")[6:-2], "stream_too_large")


async def test_an_event_over_the_limit_before_output_goes_on(rig: Rig) -> None:
    rig.set(max_event=1000)
    rig.script(alpha=stream(b"data: " + b"x" * 2000), beta=good())
    served = await rig.ask(stream=True)
    assert served.text == "ok"


async def test_every_choice_must_finish_before_an_end_mark_is_added(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), delta("b", 1), finish()))
    served = await rig.ask(stream=True, n=2)
    assert served.stream_error["code"] == "upstream_disconnected"


async def test_two_finished_choices_are_an_end(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), delta("b", 1), finish(), finish(1)))
    served = await rig.ask(stream=True, n=2)
    assert served.events[-1] == b"[DONE]"


@pytest.mark.parametrize("count", [True, 10**30, -1, "2", None, 2.5e300])
async def test_an_odd_number_of_choices_is_one(rig: Rig, count: object) -> None:
    rig.script(alpha=stream(delta("a"), finish()))
    served = await rig.ask(stream=True, n=count)
    assert served.events[-1] == b"[DONE]"


# --- clocks ---


async def test_idle_is_counted_by_events_and_not_by_comments(rig: Rig) -> None:
    rig.set(stream_idle_s=1.0, keepalive_s=0.0)
    rig.script(alpha=stream(delta("a"), *[0.2, b": ping\n\n", b"event: ping\ndata: {}\n\n"] * 1000))
    began = rig.clock.monotonic()
    served = await rig.ask(stream=True)
    assert (served.stream_error["code"], rig.clock.monotonic() - began) == ("timeout", pytest.approx(1.0))
    assert (served.stream_error["message"], rig.idle) == ("upstream idle for over 1000 ms", True)


async def test_comments_before_the_first_output_run_against_its_own_limit(rig: Rig) -> None:
    rig.set(stream_idle_s=1.0, first_output_s=10.0)
    rig.script(alpha=stream(*[0.2, b": ping\n\n"] * 15, delta("a"), finish(), DONE))
    served = await rig.ask(stream=True)
    assert served.text == "a"


async def test_no_output_within_its_limit_goes_on_to_the_next_member(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="AB"), BETA, TWO)
    rig.set(first_output_s=10.0)
    rig.script(alpha=stream(*[0.2, b": ping\n\n"] * 500), beta=good())
    served = await rig.ask(stream=True)
    assert (served.tried, served.call.ledger.attempts[0].reason) == (["alpha#A", "beta#A"], "timeout total: transient")


async def test_a_slow_head_is_a_first_byte_timeout(rig: Rig) -> None:
    rig.set(stream_idle_s=10.0)
    rig.script(alpha=stream(before=[1e6]), beta=good())
    served = await rig.ask(stream=True)
    assert served.call.ledger.attempts[0].reason == "timeout first byte: transient"


async def test_a_silent_upstream_is_cut_without_another_read(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), asyncio.Event()))
    served = await rig.ask(stream=True)
    assert (served.stream_error["type"], rig.upstream.responses[0].read, rig.idle) == ("server_error", 2, True)


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
