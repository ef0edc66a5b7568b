"""A hand-off that fails, that is given up, and what is kept of one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.proxy.relayed import SESSION, SMALL, ask, long, opening, sent, summed, use
from tests.proxy.rig import (
    DISCONNECT,
    Rig,
    Served,
    When,
    answer,
    combo,
    fault,
    model,
    provider,
    refusal,
    stream,
)
from troyproxy.accounting.usage import Usage
from troyproxy.catalog.models import Capabilities, Limits, Model, Price
from troyproxy.proxy.handoff import SUMMARY_S
from troyproxy.proxy.rows import outcome_of, row_of
from troyproxy.proxy.tokens_used import tokens_used

pytestmark = pytest.mark.anyio


@pytest.fixture
def relay(rig: Rig) -> Rig:
    """A small member, a smaller one, a large one, and a model that sums up."""
    use(rig)
    return rig


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


async def test_what_its_upstream_says_of_its_quota_is_heard(relay: Rig) -> None:
    told = answer(
        summed(),
        x_ratelimit_limit_requests="100",
        x_ratelimit_remaining_requests="25",
        x_ratelimit_reset_requests="60s",
    )
    relay.script(sigma=told, alpha=answer())
    await ask(relay, messages=long())
    account = relay.snapshot.providers["sigma"].accounts[0]
    assert [signal.remaining for signal in relay.measuring.quotas.signals(account, relay.clock.now())] == [0.25]


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
