"""One upstream's stream to the client: the commit point, the clocks, and exactly one ending."""

from __future__ import annotations

import pytest

from tests.proxy.rig import (
    DONE,
    Rig,
    answer,
    delta,
    event,
    finish,
    good,
    refusal,
    reset,
    role,
    stream,
    usage,
)
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
        del event, can_reject
        self.left -= 1
        return GateVerdict.PENDING if self.left > 0 else GateVerdict.PASS

    def judge(self, body: object, can_reject: bool, /) -> GateVerdict:
        del body, can_reject
        return GateVerdict.PENDING


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


async def test_an_end_mark_without_a_finish_reason_is_a_cut(rig: Rig) -> None:
    rig.script(alpha=stream(role(), delta("half"), DONE))
    served = await rig.ask("alpha/m1", stream=True)
    assert (served.stream_error["code"], served.row.outcome) == ("upstream_disconnected", "truncated")
    assert DONE not in served.events


async def test_an_end_mark_without_a_finish_reason_goes_on_while_nothing_was_sent(rig: Rig) -> None:
    rig.script(alpha=stream(role(), DONE), beta=good())
    served = await rig.ask(stream=True)
    assert (served.tried, served.text) == (["alpha#A", "beta#A"], "ok")


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


async def test_an_error_about_our_credential_after_output_is_not_told_as_the_clients(rig: Rig) -> None:
    refused = event({"error": {"message": "bad key", "type": "authentication_error", "code": 401}})
    rig.script(alpha=stream(role(), delta("a"), refused))
    served = await rig.ask("alpha/m1", stream=True)
    assert (served.stream_error["code"], served.stream_error["type"]) == ("upstream_error", "server_error")
