"""The hand-off of context-relay: whole histories go untouched, long ones with a summary, and nobody is asked twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.proxy.rig import (
    DISCONNECT,
    Rig,
    Served,
    When,
    answer,
    combo,
    fault,
    good,
    model,
    provider,
    refusal,
    stream,
)
from troyproxy.accounting.usage import Usage
from troyproxy.catalog.models import Capabilities, Limits, Model, Price
from troyproxy.errors import NoEligibleMember
from troyproxy.proxy.explain import explain
from troyproxy.proxy.handoff import SUMMARY_S
from troyproxy.proxy.rows import outcome_of, row_of
from troyproxy.proxy.tokens_used import tokens_used
from troyproxy.resilience.breaker import BreakerPolicy
from troyproxy.resilience.health import HealthPolicy

pytestmark = pytest.mark.anyio

SESSION: dict[str, Any] = {"metadata": {"session_id": "s1"}}
SMALL, TINY = model("m1", context=1_500), model("m2", context=1_100)
LARGE = model("m4", context=100_000)
SUM = Model("s1", Capabilities(), Limits(100_000, None), Price(1.0, 2.0))
LONG: list[dict[str, Any]] = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "the beginning " * 400},
    {"role": "assistant", "content": "I see"},
    {"role": "user", "content": "go on"},
]
"""About 1,400 tokens; without its old part about 810."""
TOLD: Mapping[str, object] = {
    "summary": "It began.",
    "key_decisions": ["to go on"],
    "task_progress": [],
    "active_entities": ["a beginning"],
}


def summed(text: object = TOLD, **usage: int) -> object:
    """A completion that holds a summary."""
    said = text if isinstance(text, str) else json.dumps(text)
    choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
    counts = {"prompt_tokens": 1400, "completion_tokens": 50, **usage}
    return {"object": "chat.completion", "choices": [choice], "usage": counts}


@pytest.fixture
def relay(rig: Rig) -> Rig:
    """A small member, a smaller one, a large one, and a model that sums up."""
    use(rig)
    return rig


def use(
    rig: Rig, *, members: tuple[str, ...] = ("alpha/m1", "beta/m2"), small: Model = SMALL, **config: object
) -> None:
    given = {"handoff_model": "sigma/s1", **config}
    rig.use(
        provider("alpha", small),
        provider("beta", TINY),
        provider("gamma", LARGE),
        provider("sigma", SUM, accounts="AB"),
        combo("relay", *members, strategy="context-relay", **given),
    )


async def ask(rig: Rig, *, messages: object = LONG, **fields: Any) -> Served:  # noqa: ANN401 -- of the payload
    return await rig.ask("relay", messages=messages, **{**SESSION, **fields})


def long(tokens: int = 1_600) -> list[dict[str, Any]]:
    """A history of so many tokens, of which the last turn is short."""
    return [{"role": "user", "content": "x" * 4 * tokens}, {"role": "user", "content": "go on"}]


def sent(rig: Rig, to: str) -> list[dict[str, Any]]:
    """The decoded bodies that *to* was sent."""
    return [json.loads(request.body) for request in rig.upstream.requests if request.provider.id == to]


# --- when it is made ---


async def test_a_history_that_fits_goes_untouched(relay: Rig) -> None:
    relay.script(alpha=answer())
    made = relay.call("relay", messages=LONG, **SESSION)
    made.payload["model"] = "m1"
    made.body = json.dumps(made.payload, indent=1).encode()
    await relay.ask(call=made)
    assert [request.body for request in relay.upstream.requests] == [made.body]


async def test_a_history_that_is_too_long_is_summed_up_before_the_attempt(relay: Rig) -> None:
    relay.script(sigma=answer(summed()), alpha=answer())
    served = await ask(relay, messages=long())
    assert (relay.upstream.asked, served.exchange.status) == (["sigma", "alpha"], 200)


async def test_the_member_gets_the_summary_in_place_of_the_old_part(relay: Rig) -> None:
    relay.script(sigma=answer(summed()), alpha=answer())
    await ask(relay, messages=[LONG[0], *long()])
    system, summary, last = sent(relay, "alpha")[0]["messages"]
    assert (system, last, summary["role"]) == (LONG[0], {"role": "user", "content": "go on"}, "system")
    assert "Summary:\nIt began.\n\nKey decisions:\n- to go on\n\nActive entities:\n- a beginning" in summary["content"]


async def test_nothing_but_the_messages_and_the_model_changes(relay: Rig) -> None:
    relay.script(sigma=answer(summed()), alpha=answer())
    made = relay.call("relay", messages=long(), temperature=0.70, stop=["é"], **SESSION)
    await relay.ask(call=made)
    differing = {key for key, value in sent(relay, "alpha")[0].items() if made.payload[key] != value}
    assert (differing, len(sent(relay, "alpha")[0])) == ({"messages", "model"}, len(made.payload))


async def test_a_stream_is_handed_over_too(relay: Rig) -> None:
    relay.script(sigma=answer(summed()), alpha=good("on it goes"))
    served = await ask(relay, messages=long(), stream=True)
    assert (served.text, relay.upstream.asked) == ("on it goes", ["sigma", "alpha"])


async def test_the_session_may_be_named_by_a_header(relay: Rig) -> None:
    relay.script(sigma=answer(summed()), alpha=answer())
    made = relay.call("relay", messages=long(), headers={"x-troy-session": "s1"})
    assert (await relay.ask(call=made)).exchange.status == 200


async def test_one_summary_serves_every_member_that_it_makes_room_for(relay: Rig) -> None:
    relay.script(sigma=answer(summed()), alpha=refusal(500), beta=answer())
    served = await ask(relay, messages=long())
    assert (relay.upstream.asked, served.exchange.status) == (["sigma", "alpha", "beta"], 200)
    assert sent(relay, "alpha")[0]["messages"] == sent(relay, "beta")[0]["messages"]


async def test_a_member_that_the_summary_does_not_make_room_for_is_skipped(relay: Rig) -> None:
    turns = [*long(), {"role": "assistant", "content": "y" * 1600}, {"role": "user", "content": "and on"}]
    relay.script(sigma=answer(summed()), alpha=refusal(500))
    served = await ask(relay, messages=turns)
    assert (relay.upstream.asked, served.row.skipped) == (["sigma", "alpha"], (("beta/m2", "context"),))


async def test_a_member_behind_that_holds_the_whole_gets_the_whole(rig: Rig) -> None:
    use(rig, members=("alpha/m1", "gamma/m4"))
    rig.script(sigma=answer(summed()), alpha=refusal(500), gamma=answer())
    await ask(rig, messages=long())
    assert sent(rig, "gamma")[0]["messages"] == long()


async def test_only_the_configured_number_of_turns_is_kept(rig: Rig) -> None:
    use(rig, keep_turns=1)
    rig.script(sigma=answer(summed()), alpha=answer())
    await ask(rig, messages=[*long(), {"role": "user", "content": "and on"}])
    assert [each["content"] for each in sent(rig, "alpha")[0]["messages"][1:]] == ["and on"]


async def test_a_learned_parameter_keeps_the_summary(relay: Rig) -> None:
    relay.script(sigma=answer(summed()), alpha=[refusal(400, param="reasoning_effort"), answer()])
    await ask(relay, messages=long(), reasoning_effort="high")
    first, second = sent(relay, "alpha")
    assert (first["messages"], "reasoning_effort" in second) == (second["messages"], False)


# --- who comes first ---


async def test_the_last_target_of_the_session_comes_first(rig: Rig) -> None:
    use(rig, members=("alpha/m1", "gamma/m4"))
    rig.script(alpha=refusal(500), gamma=[answer(), answer()])
    await ask(rig)
    await asyncio.sleep(10)
    assert (await ask(rig)).tried == ["gamma#A"]


async def test_the_last_target_of_another_session_does_not(rig: Rig) -> None:
    use(rig, members=("alpha/m1", "gamma/m4"))
    rig.script(alpha=[refusal(500), answer()], gamma=answer())
    await ask(rig)
    await asyncio.sleep(10)
    assert (await ask(rig, metadata={"session_id": "s2"})).tried == ["alpha#A"]


async def test_without_a_session_the_saved_order_holds(rig: Rig) -> None:
    use(rig, members=("alpha/m1", "gamma/m4"))
    rig.script(alpha=[refusal(500), answer()], gamma=answer())
    await rig.ask("relay", messages=LONG)
    await asyncio.sleep(10)
    assert (await rig.ask("relay", messages=LONG)).tried == ["alpha#A"]


async def test_a_last_target_that_is_locked_does_not_come_first(rig: Rig) -> None:
    use(rig, members=("alpha/m1", "gamma/m4"))
    rig.script(alpha=[refusal(500), answer()], gamma=[answer(), refusal(429, retry_after="60")])
    await ask(rig)
    await asyncio.sleep(10)
    await rig.ask("gamma/m4")
    assert (await ask(rig)).tried == ["alpha#A"]


async def test_the_last_target_is_handed_a_summary_rather_than_left(rig: Rig) -> None:
    use(rig, members=("gamma/m4", "alpha/m1"))
    rig.script(gamma=refusal(500), sigma=answer(summed()), alpha=[answer(), answer()])
    await ask(rig)
    await asyncio.sleep(10)
    assert (await ask(rig, messages=long())).tried == ["sigma#A", "alpha#A"]


# --- when it is not ---


async def refused(rig: Rig, messages: object = None, **fields: Any) -> tuple[str, list[str]]:  # noqa: ANN401 -- payload
    """The code that the planner refuses a long history with, and the members that were skipped."""
    made = rig.call("relay", messages=messages or long(), **fields)
    with pytest.raises(NoEligibleMember) as caught:
        rig.planner.plan(made)
    return caught.value.http_code, [f"{skip.spec}={skip.reason}" for skip in made.ledger.skipped]


TOO_LONG = ("context_length_exceeded", ["alpha/m1=context", "beta/m2=context"])


async def test_without_a_session_members_that_are_too_small_are_skipped(relay: Rig) -> None:
    assert await refused(relay) == TOO_LONG


@pytest.mark.parametrize("name", [None, "nobody/s1", 7])
async def test_without_a_model_to_sum_up_members_that_are_too_small_are_skipped(rig: Rig, name: object) -> None:
    use(rig, handoff_model=name)
    assert await refused(rig, **SESSION) == TOO_LONG


async def test_other_strategies_hand_nothing_over(rig: Rig) -> None:
    use(rig)
    rig.use(
        *rig.snapshot.providers.values(),
        combo("relay", "alpha/m1", "beta/m2", strategy="priority", handoff_model="sigma/s1"),
    )
    assert await refused(rig, **SESSION) == TOO_LONG


async def test_other_routes_hand_nothing_over(relay: Rig) -> None:
    assert await refused(relay, route="/v1/completions", **SESSION) == TOO_LONG


async def test_a_last_turn_that_is_too_long_by_itself_is_no_hand_off(relay: Rig) -> None:
    assert await refused(relay, list(reversed(long())), **SESSION) == TOO_LONG


async def test_a_member_that_lacks_more_than_room_is_skipped_for_that(rig: Rig) -> None:
    use(rig, small=model("m1", context=1_500, tools=False))
    rig.script(sigma=answer(summed()), beta=answer())
    served = await ask(rig, messages=long(), tools=[{"type": "function", "function": {"name": "f"}}])
    assert served.row.skipped == (("alpha/m1", "no-tools"),)


async def test_an_explanation_tells_of_the_hand_off(relay: Rig) -> None:
    made = relay.call("relay", messages=long(), **SESSION)
    members: Any = explain(relay.planner, made, relay.learned)["members"]
    assert [(each["verdict"], each["adapted"]) for each in members] == [("eligible", ["messages=handoff"])] * 2


async def test_an_explanation_of_a_history_that_fits_tells_of_none(relay: Rig) -> None:
    members: Any = explain(relay.planner, relay.call("relay", messages=LONG, **SESSION), relay.learned)["members"]
    assert members[0]["adapted"] == []


# --- when it fails ---

FAILURES = {
    "refused": refusal(401),
    "limited": refusal(429),
    "broken": refusal(500),
    "unreachable": fault(),
    "cut": answer(b"", before=()),
    "html": answer(b"<html>"),
    "in band": answer({"error": {"message": "no", "code": 500}}),
    "odd status": answer(summed(), status=999),
    "empty": answer(summed("  ")),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_without_a_summary_members_that_need_one_are_skipped(rig: Rig, name: str) -> None:
    use(rig, members=("alpha/m1", "beta/m2", "gamma/m4"))
    rig.script(sigma=FAILURES[name], gamma=answer())
    served = await ask(rig, messages=long())
    assert (rig.upstream.asked, served.exchange.status) == (["sigma", "gamma"], 200)
    assert served.row.skipped == (("alpha/m1", "context"), ("beta/m2", "context"))


async def test_an_answer_in_plain_words_is_a_summary(relay: Rig) -> None:
    relay.script(sigma=answer(summed("They began, and went on.")), alpha=answer())
    await ask(relay, messages=long())
    assert "They began, and went on." in sent(relay, "alpha")[0]["messages"][0]["content"]


async def test_an_answer_that_is_too_large_is_no_summary(relay: Rig) -> None:
    relay.set(max_body=1_000)
    relay.script(sigma=answer(summed("x" * 2_000)))
    assert (await ask(relay, messages=long())).exchange.status == 503


async def test_a_request_that_nobody_can_be_handed_says_that_it_is_too_long(relay: Rig) -> None:
    relay.script(sigma=refusal(500))
    served = await ask(relay, messages=long())
    assert (served.exchange.status, served.error["code"]) == (503, "context_length_exceeded")
    assert outcome_of(served.call) == "refused"


async def test_a_summary_takes_twenty_seconds_at_most(rig: Rig) -> None:
    use(rig, members=("alpha/m1", "gamma/m4"))
    rig.script(sigma=answer(summed(), before=[SUMMARY_S + 1]), gamma=answer())
    began = rig.clock.now()
    served = await ask(rig, messages=long())
    assert (served.outcomes, rig.clock.now() - began) == (["transient", "ok"], SUMMARY_S)


async def test_a_summary_that_drips_takes_no_longer(rig: Rig) -> None:
    use(rig, members=("alpha/m1", "gamma/m4"))
    rig.script(sigma=stream(b"{", SUMMARY_S - 1, b'"', SUMMARY_S), gamma=answer())
    began = rig.clock.now()
    await ask(rig, messages=long())
    assert (rig.upstream.asked, rig.clock.now() - began) == (["sigma", "gamma"], SUMMARY_S)


async def test_a_summary_leaves_the_walk_time_for_the_members_behind(rig: Rig) -> None:
    use(rig, members=("alpha/m1", "gamma/m4"))
    rig.set(request_timeout_s=18.0)
    rig.script(sigma=answer(summed(), before=[SUMMARY_S]), gamma=answer())
    began = rig.clock.now()
    served = await ask(rig, messages=long())
    assert (served.exchange.status, rig.clock.now() - began) == (200, 8.0)


async def test_a_failure_locks_the_account_of_the_summary(relay: Rig) -> None:
    relay.script(sigma=refusal(429, retry_after="60"))
    await ask(relay, messages=long())
    assert relay.health.cooldown("sigma", "sigma#A", "s1") is not None


async def test_the_next_summary_is_asked_of_an_account_that_is_not_locked(relay: Rig) -> None:
    relay.script(sigma=[refusal(429, retry_after="60"), answer(summed())], alpha=answer())
    await ask(relay, messages=long())
    assert (await ask(relay, messages=long())).tried == ["sigma#B", "alpha#A"]


async def test_with_every_account_locked_nobody_is_asked(relay: Rig) -> None:
    relay.script(sigma=[refusal(429, retry_after="60")] * 2)
    for _ in range(2):
        await ask(relay, messages=long())
    served = await ask(relay, messages=long())
    assert (len(relay.upstream.requests), served.error["code"]) == (2, "context_length_exceeded")


def opening() -> Rig:
    """A circuit opens at the first failure."""
    made = Rig(health=HealthPolicy(breaker=BreakerPolicy(failures=1, open_s=30.0)))
    use(made)
    return made


async def test_an_open_circuit_is_not_asked(anyio_backend: object) -> None:
    del anyio_backend
    rig = opening()
    rig.script(sigma=refusal(500))
    await ask(rig, messages=long())
    await ask(rig, messages=long())
    assert rig.upstream.asked == ["sigma"]


async def test_a_summary_may_be_the_probe_that_closes_a_circuit(anyio_backend: object) -> None:
    del anyio_backend
    rig = opening()
    rig.script(sigma=[refusal(500), answer(summed())], alpha=answer())
    await ask(rig, messages=long())
    await asyncio.sleep(31)
    served = await ask(rig, messages=long())
    assert (served.exchange.status, str(rig.health.circuit("sigma", "s1"))) == (200, "closed")


async def test_a_probe_that_the_client_ends_is_given_back(anyio_backend: object) -> None:
    del anyio_backend
    rig = opening()
    rig.script(sigma=[refusal(500), answer(summed(), before=[10.0]), answer(summed())], alpha=answer())
    await ask(rig, messages=long())
    await asyncio.sleep(31)
    await leaving(rig)
    assert (await ask(rig, messages=long())).exchange.status == 200


# --- the client leaves ---


async def leaving(rig: Rig) -> Served:
    """A long conversation whose client leaves after a second."""
    left = asyncio.Event()
    asyncio.get_running_loop().call_later(1.0, left.set)
    return await rig.ask("relay", messages=long(), client=[When(left), DISCONNECT], **SESSION)


async def test_a_client_that_leaves_ends_the_summary_and_everything(relay: Rig) -> None:
    relay.script(sigma=answer(summed(), before=[10.0]))
    served = await leaving(relay)
    assert (relay.upstream.asked, served.outcomes, relay.idle) == (["sigma"], ["cancelled"], True)


async def test_a_client_that_leaves_in_mid_answer_closes_it(relay: Rig) -> None:
    relay.script(sigma=stream(b'{"choices"', 10.0))
    served = await leaving(relay)
    assert ([each.closed for each in relay.upstream.responses], served.row.outcome) == ([True], "cancelled")
    assert (relay.idle, relay.untouched) == (True, True)


# --- what is kept of it ---


async def test_the_summary_is_an_attempt_of_the_request(relay: Rig) -> None:
    relay.script(sigma=answer(summed()), alpha=answer())
    served = await ask(relay, messages=long())
    assert served.exchange.header("x-troy-attempts") == "2"
    assert served.exchange.header("x-troy-trail") == "sigma/s1#A=handoff,alpha/m1#A=ok"
    assert "messages=handoff" in (served.exchange.header("x-troy-adapted") or "")


async def test_a_failed_summary_stands_in_the_trail_as_what_it_was(relay: Rig) -> None:
    relay.script(sigma=refusal(401))
    assert (await ask(relay, messages=long())).row.trail == "sigma/s1#A=auth"


async def test_the_tokens_of_the_summary_are_the_requests_and_no_clients(relay: Rig) -> None:
    relay.script(sigma=answer(summed()), alpha=answer())
    served = await ask(relay, messages=long())
    assert (served.row.usage, served.row.wasted) == (Usage(3, 2), Usage(1400, 50))
    assert tokens_used(served.call) == 1455


async def test_a_summary_without_a_report_is_estimated(relay: Rig) -> None:
    value: Any = summed()
    del value["usage"]
    relay.script(sigma=answer(value), alpha=answer())
    wasted = (await ask(relay, messages=long())).row.wasted
    assert wasted is not None
    assert (wasted.estimated, wasted.input > 1_600) == (True, True)


async def test_the_summary_is_paid_with_the_answer(relay: Rig) -> None:
    relay.script(sigma=answer(summed()), alpha=answer())
    cost = (await ask(relay, messages=long())).row.cost_usd
    assert cost == pytest.approx((1400 * 1.0 + 50 * 2.0) / 1e6)


async def test_both_prices_make_the_cost(rig: Rig) -> None:
    use(rig, small=Model("m1", Capabilities(), Limits(1_500, None), Price(10.0, 20.0)))
    rig.script(sigma=answer(summed()), alpha=answer())
    cost = (await ask(rig, messages=long())).row.cost_usd
    assert cost == pytest.approx((1400 * 1.0 + 50 * 2.0 + 3 * 10.0 + 2 * 20.0) / 1e6)


async def test_no_text_of_the_conversation_stands_in_trace_or_row(relay: Rig) -> None:
    relay.script(sigma=answer(summed()), alpha=answer())
    served = await ask(relay, messages=[{"role": "user", "content": "secret " * 1_000}, *long()])
    kept = "\n".join(served.call.ledger.lines) + repr(row_of(served.call, duration_s=1.0))
    assert "secret" not in kept
    assert "It began" not in kept
    assert "hand-off: ask sigma/s1 #A" in kept


async def test_the_question_carries_the_transcript_and_nothing_of_the_clients(relay: Rig) -> None:
    relay.script(sigma=answer(summed()), alpha=answer())
    made = relay.call("relay", messages=long(), headers={"x-title": "app", "x-troy-session": "s1"}, user="u")
    await relay.ask(call=made)
    asked = sent(relay, "sigma")[0]
    assert (asked["temperature"], asked["max_tokens"], asked["stream"], "user" in asked) == (0.1, 800, False, False)
    assert "x" * 6_400 in asked["messages"][1]["content"]
    assert b"x-title" not in dict(relay.upstream.requests[0].headers)


async def test_a_question_keeps_to_the_window_of_its_model(rig: Rig) -> None:
    rig.use(
        provider("alpha", SMALL),
        provider("sigma", model("s1", context=2_000, output=400, json=True)),
        combo("relay", "alpha/m1", strategy="context-relay", handoff_model="sigma/s1"),
    )
    rig.script(sigma=answer(summed()), alpha=answer())
    await ask(rig, messages=long(5_000))
    asked = sent(rig, "sigma")[0]
    size = sum(len(message["content"]) for message in asked["messages"]) // 4
    assert (size + 400 <= 1_800, asked["max_tokens"], "response_format" in asked) == (True, 400, True)


async def test_a_model_whose_window_nobody_knows_is_not_sent_everything(rig: Rig) -> None:
    rig.use(
        provider("alpha", SMALL),
        provider("sigma", "s1"),
        combo("relay", "alpha/m1", strategy="context-relay", handoff_model="sigma/s1"),
    )
    rig.script(sigma=answer(summed()), alpha=answer())
    await ask(rig, messages=long(100_000))
    assert len(sent(rig, "sigma")[0]["messages"][1]["content"]) < 32_768 * 4


# --- bounds ---


async def test_the_largest_number_of_attempts_holds_the_summary_too(rig: Rig) -> None:
    use(rig, members=("alpha/m1", "beta/m2", "gamma/m4"))
    rig.set(max_attempts=2)
    rig.script(sigma=answer(summed()), alpha=refusal(500))
    assert (await ask(rig, messages=long())).tried == ["sigma#A", "alpha#A"]


async def test_no_summary_is_asked_for_when_no_attempt_could_follow(rig: Rig) -> None:
    use(rig, members=("alpha/m1", "gamma/m4"))
    rig.set(max_attempts=1)
    rig.script(gamma=answer())
    assert (await ask(rig, messages=long())).tried == ["gamma#A"]


async def test_no_summary_is_asked_for_a_member_that_cannot_be_tried_now(rig: Rig) -> None:
    use(rig, members=("gamma/m4", "alpha/m1"))
    rig.script(gamma=refusal(500), alpha=refusal(429, retry_after="100"))
    made = rig.call("relay", messages=long(), **SESSION)
    rig.planner.plan(made)
    await rig.ask("alpha/m1")
    assert (await rig.ask(call=made)).tried == ["gamma#A"]


async def test_no_summary_is_asked_for_a_member_whose_circuit_opened(anyio_backend: object) -> None:
    del anyio_backend
    rig = opening()
    rig.script(alpha=refusal(500), beta=refusal(500))
    made = rig.call("relay", messages=long(), **SESSION)
    rig.planner.plan(made)
    await rig.ask("alpha/m1")
    await rig.ask("beta/m2")
    await rig.ask(call=made)
    assert rig.upstream.asked == ["alpha", "beta"]


async def test_the_attempt_behind_a_summary_is_no_retry(relay: Rig) -> None:
    relay.set(retry_budget=0.0001)
    relay.script(sigma=[answer(summed())] * 30, alpha=[answer()] * 30)
    served = [await ask(relay, messages=long()) for _ in range(30)]
    assert {each.exchange.status for each in served} == {200}


async def test_a_spent_retry_budget_asks_for_no_summary(rig: Rig) -> None:
    use(rig, members=("gamma/m4", "alpha/m1"))
    rig.set(retry_budget=0.0001)
    rig.script(gamma=refusal(500))
    for _ in range(100):
        rig.gear.retries.count_retry()
    served = await ask(rig, messages=long())
    assert (served.tried, served.exchange.header("x-troy-retry-budget")) == (["gamma#A"], "spent")
