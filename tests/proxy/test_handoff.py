"""The hand-off of context-relay: whole histories go untouched, long ones with a summary."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.proxy.relayed import LONG, SESSION, ask, long, opening, sent, summed, use
from tests.proxy.rig import (
    Rig,
    answer,
    combo,
    good,
    model,
    refusal,
)
from troyproxy.errors import NoEligibleMember
from troyproxy.proxy.explain import explain

pytestmark = pytest.mark.anyio


@pytest.fixture
def relay(rig: Rig) -> Rig:
    """A small member, a smaller one, a large one, and a model that sums up."""
    use(rig)
    return rig


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
