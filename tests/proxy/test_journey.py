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
    event,
    fault,
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
        del body
        self.asked.append(can_reject)
        return GateVerdict.REJECT if can_reject else GateVerdict.PASS


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
