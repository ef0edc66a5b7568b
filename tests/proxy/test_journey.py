"""Two passes, who is tried how often, and where a failure leads."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from tests.proxy.rig import (
    ALPHA,
    BETA,
    GAMMA,
    Rig,
    answer,
    combo,
    delta,
    event,
    fault,
    finish,
    good,
    model,
    provider,
    refusal,
    role,
    stream,
)
from troyproxy.catalog.combos import Member
from troyproxy.catalog.models import Capabilities, Model
from troyproxy.leaks.gate import GateVerdict
from troyproxy.proxy.rows import outcome_of
from troyproxy.resilience.breaker import Admission
from troyproxy.resilience.faults import Fault

pytestmark = pytest.mark.anyio


class Refusing:
    """A gate that rejects whenever it may, and writes down when it could not."""

    def __init__(self) -> None:
        self.asked: list[bool] = []

    def reset(self) -> None:
        """Nothing is kept."""

    def feed(self, event: object, can_reject: bool, /) -> GateVerdict:
        return self.judge(event, can_reject)

    def judge(self, body: object, can_reject: bool, /) -> GateVerdict:
        self.asked.append(can_reject)
        return GateVerdict.REJECT if can_reject else GateVerdict.PASS


# --- two passes ---


async def test_a_sole_provider_in_a_soft_cooldown_is_tried(rig: Rig) -> None:
    rig.script(alpha=[refusal(502), answer()])
    await rig.ask("alpha/m1")
    served = await rig.ask("alpha/m1")
    assert served.outcomes == ["ok"]


async def test_the_second_pass_takes_what_the_first_left_out_in_plan_order(rig: Rig) -> None:
    rig.script(alpha=[refusal(502), refusal(500)], beta=[refusal(502), refusal(500)], gamma=[answer(), refusal(500)])
    await rig.ask("three")
    served = await rig.ask("three")
    assert served.tried == ["gamma#A", "alpha#A", "beta#A"]


async def test_no_pair_is_tried_twice_in_one_request(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="AB"), BETA, combo("two", "alpha/m1", "beta/m2", "alpha/m1"))
    rig.script(alpha=[refusal(500)] * 2, beta=refusal(500))
    served = await rig.ask()
    assert served.tried == ["alpha#A", "alpha#B", "beta#A"]


async def test_the_second_pass_does_not_take_another_account_after_a_413(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="AB"))
    rig.script(alpha=[refusal(500), refusal(500), answer(), refusal(413)])
    await rig.ask("alpha/m1")
    await asyncio.sleep(1)
    rig.health.clear("alpha", "alpha#A")
    assert (await rig.ask("alpha/m1")).tried == ["alpha#A"]
    served = await rig.ask("alpha/m1")
    assert (served.tried, served.exchange.status) == (["alpha#A"], 413)


async def test_a_timeout_after_the_body_was_sent_never_reaches_the_second_account(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="AB"), BETA, combo("two", "alpha/m1", "beta/m2"))
    rig.script(alpha=answer(before=[1e6]), beta=answer())
    served = await rig.ask()
    assert served.tried == ["alpha#A", "beta#A"]


async def test_with_retries_of_timeouts_off_a_timeout_ends_the_walk(rig: Rig) -> None:
    rig.set(retry_timeouts=False)
    rig.script(alpha=answer(before=[1e6]))
    served = await rig.ask()
    assert (served.exchange.status, served.error["code"]) == (504, "timeout")


async def test_a_connect_fault_is_retried_on_the_next_account(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="AB"))
    rig.script(alpha=[fault(Fault.TIMEOUT_CONNECT), answer()])
    served = await rig.ask("alpha/m1")
    assert served.tried == ["alpha#A", "alpha#B"]


# --- bounds ---


async def test_the_walk_ends_at_the_largest_number_of_attempts(rig: Rig) -> None:
    rig.set(max_attempts=2)
    rig.script(alpha=refusal(500), beta=refusal(503))
    served = await rig.ask("three")
    assert (served.tried, served.exchange.status) == (["alpha#A", "beta#A"], 503)


async def test_a_member_leaves_an_attempt_to_each_member_behind_it(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="ABCDE"), BETA, GAMMA, combo("three", "alpha/m1", "beta/m2", "gamma/m4"))
    rig.set(max_attempts=4)
    rig.script(alpha=[refusal(401)] * 2, beta=refusal(500), gamma=answer())
    served = await rig.ask("three")
    assert served.tried == ["alpha#A", "alpha#B", "beta#A", "gamma#A"]


async def test_a_member_that_cannot_be_tried_any_more_gets_no_attempt_left(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="ABC"), BETA, combo("two", "alpha/m1", "beta/m2"))
    rig.set(max_attempts=3)
    rig.script(beta=refusal(429, retry_after="100"), alpha=[refusal(401)] * 3)
    await rig.ask("beta/m2")
    served = await rig.ask()
    assert served.tried == ["alpha#A", "alpha#B", "alpha#C"]


async def test_a_provider_is_down_after_three_transport_faults(rig: Rig) -> None:
    wide = provider("alpha", "m1", "m3", "m5", "m6")
    rig.use(wide, BETA, combo("many", "alpha/m1", "alpha/m3", "alpha/m5", "alpha/m6", "beta/m2"))
    rig.script(alpha=[fault()] * 3, beta=answer())
    served = await rig.ask("many")
    assert (served.outcomes[-1], served.call.ledger.skips) == ("ok", "alpha/m6=provider-down")


async def test_error_answers_do_not_take_a_provider_down(rig: Rig) -> None:
    wide = provider("alpha", "m1", "m3", "m5", "m6")
    rig.use(wide, combo("many", "alpha/m1", "alpha/m3", "alpha/m5", "alpha/m6"))
    rig.script(alpha=[refusal(500)] * 3 + [answer()])
    served = await rig.ask("many")
    assert served.outcomes == ["transient"] * 3 + ["ok"]


async def test_the_deadline_of_the_request_cuts_an_attempt_short(rig: Rig) -> None:
    rig.set(request_timeout_s=20.0, upstream_timeout_s=300.0)
    rig.script(alpha=answer(before=[1e6]), beta=answer(before=[1e6]))
    began = rig.clock.monotonic()
    served = await rig.ask()
    assert (served.exchange.status, rig.clock.monotonic() - began) == (504, 20.0)


async def test_each_later_member_keeps_five_seconds(rig: Rig) -> None:
    rig.set(request_timeout_s=20.0)
    rig.script(alpha=answer(before=[1e6]), beta=answer(before=[1e6]), gamma=answer())
    served = await rig.ask("three")
    assert [round(attempt.duration_ms) for attempt in served.call.ledger.attempts] == [10_000, 5_000, 0]


async def test_a_request_whose_deadline_has_passed_is_a_timeout(rig: Rig) -> None:
    rig.set(request_timeout_s=0.0)
    served = await rig.ask()
    assert (served.exchange.status, rig.upstream.asked) == (504, [])


# --- state that changes meanwhile ---


async def test_a_circuit_that_opens_meanwhile_ends_the_accounts_of_its_member(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="ABCDE"), BETA, combo("two", "alpha/m1", "beta/m2"))
    rig.script(alpha=[refusal(500)] * 3, beta=answer())
    served = await rig.ask()
    assert served.tried == ["alpha#A", "alpha#B", "alpha#C", "beta#A"]


async def test_a_tried_member_is_not_listed_as_skipped(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="ABCDE"))
    rig.script(alpha=[refusal(500)] * 3)
    served = await rig.ask("alpha/m1")
    assert served.call.ledger.skips == ""


async def test_a_circuit_that_opened_since_the_plan_is_a_skip(rig: Rig) -> None:
    rig.script(alpha=[refusal(500)] * 3, beta=[answer()] * 4)
    call = rig.call()
    rig.planner.plan(call)
    for _ in range(3):
        await rig.ask()
        await asyncio.sleep(3)
    served = await rig.ask(call=call)
    assert (served.call.ledger.skips, served.tried) == ("alpha/m1=circuit", ["beta#A"])


async def test_a_cooldown_set_since_the_plan_is_a_skip_and_told_once(rig: Rig) -> None:
    rig.script(alpha=refusal(429, retry_after="60"), beta=[answer(), answer()])
    call = rig.call()
    rig.planner.plan(call)
    await rig.ask()
    served = await rig.ask(call=call)
    assert (served.call.ledger.skips, rig.observer.of("skipped")) == ("alpha/m1=cooldown", [("alpha", "cooldown")])


async def test_nobody_left_since_the_plan_is_429_with_the_wait(rig: Rig) -> None:
    rig.script(alpha=refusal(429, retry_after="60"))
    call = rig.call("alpha/m1")
    rig.planner.plan(call)
    await rig.ask("alpha/m1")
    served = await rig.ask(call=call)
    assert (served.exchange.status, served.exchange.header("retry-after")) == (429, "60")


# --- classes ---


async def test_a_bad_request_stops_the_walk_and_goes_out_unchanged(rig: Rig) -> None:
    rig.script(alpha=refusal(400, "bad schema"))
    served = await rig.ask()
    assert (served.exchange.status, served.error["message"], rig.untouched) == (400, "bad schema", True)


async def test_a_context_failure_goes_on_to_a_larger_known_window_only(rig: Rig) -> None:
    rig.use(
        provider("alpha", model("m1", context=1000), accounts="AB"),
        provider("beta", model("m2", context=1000)),
        provider("gamma", model("m4", context=9000)),
        combo("three", "alpha/m1", "beta/m2", "gamma/m4"),
    )
    rig.script(alpha=refusal(400, "too long", "context_length_exceeded"), gamma=answer())
    served = await rig.ask("three")
    assert (served.tried, served.call.ledger.skips) == (["alpha#A", "gamma#A"], "beta/m2=context")


async def test_a_context_failure_alone_is_verbatim_without_retry_after(rig: Rig) -> None:
    rig.script(alpha=refusal(400, "too long", "context_length_exceeded"))
    served = await rig.ask()
    assert (served.exchange.status, served.exchange.header("retry-after"), rig.untouched) == (400, None, True)


async def test_a_rejected_answer_sends_the_walk_on(rig: Rig) -> None:
    rig.script(alpha=answer(), beta=answer())
    gate = Refusing()
    served = await rig.ask(call=rig.call(gates=[gate]))
    assert (served.outcomes, gate.asked) == (["leak", "ok"], [True, False])


async def test_a_rejected_stream_sends_the_walk_on(rig: Rig) -> None:
    rig.script(alpha=good("bad"), beta=good("fine"))
    served = await rig.ask(call=rig.call(gates=[Refusing()], stream=True))
    assert (served.text, served.outcomes) == ("fine", ["leak", "ok"])


async def test_the_last_attempt_that_is_allowed_cannot_be_rejected(rig: Rig) -> None:
    rig.set(max_attempts=1)
    rig.script(alpha=answer())
    served = await rig.ask(call=rig.call(gates=[Refusing()]))
    assert served.outcomes == ["ok"]


async def test_the_last_member_of_the_first_pass_can_be_rejected_while_a_second_is_to_come(rig: Rig) -> None:
    rig.script(alpha=[refusal(500), answer()], beta=[answer(), answer()])
    await rig.ask()
    gate = Refusing()
    served = await rig.ask(call=rig.call(gates=[gate]))
    assert (served.tried, gate.asked) == (["beta#A", "alpha#A"], [True, False])


# --- learned parameters ---

UNKNOWN_FIELD = refusal(400, "unknown field stream_options", param="stream_options")


async def test_a_learned_parameter_earns_one_retry_on_the_same_account(rig: Rig) -> None:
    rig.script(alpha=[UNKNOWN_FIELD, good()])
    served = await rig.ask(stream=True)
    assert (served.tried, b"stream_options" in rig.upstream.requests[1].body) == (["alpha#A", "alpha#A"], False)


async def test_a_422_that_points_at_the_parameter_teaches_too(rig: Rig) -> None:
    said = answer({"detail": [{"loc": ["body", "stream_options"], "msg": "extra inputs are not permitted"}]}, 422)
    rig.script(alpha=[said, good()])
    served = await rig.ask(stream=True)
    assert (served.text, len(served.tried)) == ("ok", 2)


async def test_what_was_learned_is_not_sent_again(rig: Rig) -> None:
    rig.script(alpha=[UNKNOWN_FIELD, good(), good()])
    await rig.ask(stream=True)
    await rig.ask(stream=True)
    assert b"stream_options" not in rig.upstream.requests[2].body


async def test_learning_touches_no_health(rig: Rig) -> None:
    rig.script(alpha=[UNKNOWN_FIELD, good()])
    await rig.ask(stream=True)
    assert rig.log.events == []


async def test_a_second_refusal_of_the_same_request_is_not_retried_again(rig: Rig) -> None:
    rig.script(alpha=[UNKNOWN_FIELD, UNKNOWN_FIELD], beta=good())
    served = await rig.ask(stream=True)
    assert served.tried == ["alpha#A", "alpha#A", "beta#A"]


async def test_the_next_account_gets_the_body_that_was_learned(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="AB"))
    rig.script(alpha=[UNKNOWN_FIELD, refusal(429), good()])
    served = await rig.ask("alpha/m1", stream=True)
    assert served.tried == ["alpha#A", "alpha#A", "alpha#B"]


async def test_a_field_of_the_client_is_the_clients_to_correct(rig: Rig) -> None:
    rig.script(alpha=UNKNOWN_FIELD)
    served = await rig.ask("alpha/m1", stream=True, stream_options={"include_usage": True})
    assert (served.exchange.status, len(served.tried)) == (400, 1)


async def test_nothing_is_learned_when_no_attempt_is_left(rig: Rig) -> None:
    rig.set(max_attempts=1)
    rig.script(alpha=UNKNOWN_FIELD)
    served = await rig.ask("alpha/m1", stream=True)
    assert (served.exchange.status, len(served.tried)) == (400, 1)


async def test_adaptations_are_counted_and_listed_for_the_attempt_that_served(rig: Rig) -> None:
    rig.script(alpha=[UNKNOWN_FIELD, good()])
    served = await rig.ask(stream=True)
    assert (served.exchange.header("x-troy-adapted"), rig.observer.of("adapted")) == (
        None,
        [("alpha", "stream_options.include_usage", "set"), ("alpha", "stream_options", "learned")],
    )


# --- the probe's lease ---


async def _half_open(rig: Rig) -> None:
    rig.script(alpha=[fault()] * 3, beta=[answer()] * 3)
    for _ in range(3):
        await rig.ask()
        await asyncio.sleep(3)
    await asyncio.sleep(40)


def _admission(rig: Rig) -> Admission:
    return rig.health.admission("alpha", "m1")


@pytest.mark.parametrize(
    ("reply", "then"),
    [
        (answer(), Admission.ADMIT),
        (refusal(429), Admission.PROBE),
        (refusal(400), Admission.PROBE),
        (refusal(500), Admission.DENY),
        (stream(role(), delta("a"), finish()), Admission.DENY),
    ],
    ids=["good", "rate", "request", "failure", "no completion"],
)
async def test_a_probe_gives_its_lease_back_with_its_outcome(rig: Rig, reply: object, then: Admission) -> None:
    await _half_open(rig)
    rig.script(alpha=reply, beta=answer())  # type: ignore[arg-type]  # a Reply
    await rig.ask()
    assert _admission(rig) is then


async def test_a_probe_that_learns_keeps_its_lease_and_gives_it_back_once(rig: Rig) -> None:
    await _half_open(rig)
    rig.script(alpha=[UNKNOWN_FIELD, good()])
    await rig.ask(stream=True)
    assert _admission(rig) is Admission.ADMIT


async def test_a_bug_in_the_upstream_adapter_gives_the_lease_back(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await _half_open(rig)

    async def broken(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(rig.upstream, "send", broken)
    with pytest.raises(ZeroDivisionError):
        await rig.ask()
    assert (_admission(rig), rig.idle) == (Admission.PROBE, True)


async def test_the_trace_marks_a_probe(rig: Rig) -> None:
    await _half_open(rig)
    rig.script(alpha=answer())
    served = await rig.ask()
    assert "try alpha/m1 #A (probe)" in served.call.ledger.lines


# --- odds ---


async def test_a_pinned_account_is_the_only_one_tried(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="AB"), combo("pin", Member(model="alpha/m1", account="B")))
    rig.script(alpha=answer())
    served = await rig.ask("pin")
    assert served.tried == ["alpha#B"]


async def test_sticky_round_robin_stays_for_two_successes(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="AB"), combo("turn", "alpha/m1", strategy="round-robin"))
    rig.script(alpha=[answer()] * 5)
    tried = [(await rig.ask("turn")).tried[0] for _ in range(5)]
    assert tried == ["alpha#A", "alpha#A", "alpha#B", "alpha#B", "alpha#A"]


async def test_a_saturated_pool_moves_to_the_next_account_without_blame(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="AB"))
    rig.script(alpha=[fault(Fault.SATURATED), answer()])
    served = await rig.ask("alpha/m1")
    assert (served.outcomes, rig.untouched) == (["saturated", "ok"], False)


async def test_the_effort_is_clamped_per_member(rig: Rig) -> None:
    thinker = Model("m1", Capabilities(reasoning=True), efforts=("low", "medium"))
    rig.use(provider("alpha", thinker))
    rig.script(alpha=answer())
    served = await rig.ask("alpha/m1", reasoning_effort="high")
    assert (b'"medium"' in rig.upstream.requests[0].body, outcome_of(served.call)) == (True, "ok")


async def test_an_unknown_member_is_passed_over(rig: Rig) -> None:
    rig.use(BETA, combo("two", "nobody/m1", "beta/m2"))
    rig.script(beta=answer())
    served = await rig.ask()
    assert (served.tried, served.call.ledger.skips) == (["beta#A"], "nobody/m1=unknown-provider")


async def test_an_error_event_before_output_is_a_failure_of_the_member(rig: Rig) -> None:
    failing: Mapping[str, object] = {"error": {"message": "overloaded", "type": "server_error", "code": 503}}
    rig.use(ALPHA, BETA, combo("two", "alpha/m1", "beta/m2"))
    rig.script(alpha=stream(role(), event(failing)), beta=good())
    served = await rig.ask(stream=True)
    assert (served.outcomes, served.exchange.body.count(b'"role"')) == (["overload", "ok"], 1)
