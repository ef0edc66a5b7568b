"""The strategies that go by measurements, through the real planner and walk in front of scripted upstreams."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

import pytest

from tests.fakes import Reply
from tests.proxy.rig import (
    ALPHA,
    BETA,
    GAMMA,
    Rig,
    answer,
    combo,
    delta,
    finish,
    model,
    provider,
    refusal,
    role,
    stream,
)
from troyproxy.catalog.combos import Combo, Member
from troyproxy.catalog.models import Model, Price
from troyproxy.catalog.providers import Provider
from troyproxy.proxy.call import Call

pytestmark = pytest.mark.anyio

TOOL = {"type": "function", "function": {"name": "f"}}
THREE = ("alpha/m1", "beta/m2", "gamma/m4")
TWINS = provider("alpha", "m1", accounts="AB")
LIMIT = ("x_ratelimit_limit_requests", "x_ratelimit_remaining_requests", "x_ratelimit_reset_requests")


def using(rig: Rig, strategy: str, *providers: Provider, members: tuple[str, ...] = ("alpha/m1",)) -> None:
    rig.use(*providers, combo("c", *members, strategy=strategy))


def answers(rig: Rig, count: int) -> None:
    rig.script(**{name: [answer()] * count for name in ("alpha", "beta", "gamma")})


def saying(**headers: str) -> Reply:
    """An answer with these headers."""
    said = tuple((name.replace("_", "-").encode(), value.encode()) for name, value in headers.items())
    return replace(answer(), headers=(*answer().headers, *said))


async def first(rig: Rig, **fields: object) -> str:
    """Ask once, and return who was asked first."""
    return (await rig.ask(call=rig.call("c", **fields))).tried[0]  # type: ignore[arg-type]  # fields of the payload


async def firsts(rig: Rig, count: int, **fields: object) -> list[str]:
    return [await first(rig, **fields) for _ in range(count)]


def planned(rig: Rig, count: int) -> Counter[str]:
    """Plan so many requests with different seeds, and count who leads."""
    leads: Counter[str] = Counter()
    for seed in range(count):
        call = rig.call("c")
        call.seed = seed
        leads[rig.planner.plan(call).candidates[0].spec] += 1
    return leads


def limited(left: int, reset: str = "60s") -> Reply:
    """An answer that says how many of 100 requests are left, and when there will be all of them again."""
    return saying(**dict(zip(LIMIT, ("100", str(left), reset), strict=True)))


async def test_round_robin_is_even_with_an_ineligible_member_in_the_circle(rig: Rig) -> None:
    using(rig, "round-robin", ALPHA, provider("beta", model("m2", tools=False)), GAMMA, members=THREE)
    answers(rig, 15)
    assert Counter(await firsts(rig, 30, tools=[TOOL])) == {"alpha#A": 15, "gamma#A": 15}


async def test_p2c_prefers_the_less_busy(rig: Rig) -> None:
    using(rig, "p2c", ALPHA, BETA, members=THREE[:2])
    done = asyncio.Event()
    rig.script(alpha=stream(role(), delta("ok"), done, finish()), beta=[answer()] * 20)
    async with asyncio.TaskGroup() as others:
        others.create_task(rig.ask("alpha/m1", stream=True))
        await asyncio.sleep(0.1)
        assert set(await firsts(rig, 20)) == {"beta#A"}
        done.set()


async def test_p2c_chooses_between_the_accounts_of_a_member(rig: Rig) -> None:
    using(rig, "p2c", TWINS)
    done = asyncio.Event()
    rig.script(alpha=[stream(role(), delta("ok"), done, finish()), *[answer()] * 20])
    async with asyncio.TaskGroup() as others:
        busy = others.create_task(rig.ask("alpha/m1", stream=True))
        await asyncio.sleep(0.1)
        assert set(await firsts(rig, 20)) == {"alpha#B"}
        done.set()
    assert busy.result().tried == ["alpha#A"]


async def test_p2c_prefers_the_one_that_succeeds(rig: Rig) -> None:
    using(rig, "p2c", ALPHA, BETA, members=THREE[:2])
    rig.script(alpha=[refusal(422)], beta=[answer()] * 2)
    await rig.ask("alpha/m1")
    await rig.ask("beta/m2")
    assert planned(rig, 50) == {"beta/m2": 50}


async def test_least_used_shares_the_work(rig: Rig) -> None:
    using(rig, "least-used", TWINS, BETA, members=THREE[:2])
    answers(rig, 6)
    assert await firsts(rig, 6) == ["alpha#A", "alpha#B", "beta#A"] * 2


async def test_cost_optimized_takes_the_cheapest_for_this_request(rig: Rig) -> None:
    dear_output = provider("alpha", Model("m1", price=Price(1.0, 50.0)))
    dear_input = provider("beta", Model("m2", price=Price(4.0, 4.0)))
    unknown = provider("gamma", "m4")
    using(rig, "cost-optimized", unknown, dear_output, dear_input, members=("gamma/m4", "alpha/m1", "beta/m2"))
    answers(rig, 2)
    long = [{"role": "user", "content": "x" * 400_000}]
    assert await first(rig, max_tokens=1_000) == "beta#A"
    assert await first(rig, messages=long, max_tokens=1) == "alpha#A"


async def test_free_members_come_first_and_unknown_prices_last(rig: Rig) -> None:
    free = provider("beta", Model("m2", price=Price(0.0, 0.0)))
    paid = provider("gamma", Model("m4", price=Price(0.1, 0.1)))
    using(rig, "cost-optimized", ALPHA, paid, free, members=("alpha/m1", "gamma/m4", "beta/m2"))
    plan = rig.planner.plan(rig.call("c"))
    assert [candidate.spec for candidate in plan.candidates] == ["beta/m2", "gamma/m4", "alpha/m1"]


async def test_fill_first_leaves_an_account_whose_own_quota_is_used_up_and_returns(rig: Rig) -> None:
    own = MappingProxyType({"requests": 2, "per": "minute"})
    full = replace(TWINS, accounts=(replace(TWINS.accounts[0], quota=own), TWINS.accounts[1]))
    using(rig, "fill-first", full)
    answers(rig, 5)
    await asyncio.sleep(60 - rig.clock.now() % 60)  # a minute begins
    assert await firsts(rig, 4) == ["alpha#A", "alpha#A", "alpha#B", "alpha#B"]
    await asyncio.sleep(60)
    assert await first(rig) == "alpha#A"


async def test_fill_first_counts_tokens_when_the_answer_has_told_them(rig: Rig) -> None:
    own = MappingProxyType({"tokens": 10, "per": "day"})
    full = replace(TWINS, accounts=(replace(TWINS.accounts[0], quota=own), TWINS.accounts[1]))
    using(rig, "fill-first", full)
    answers(rig, 3)  # of 5 tokens each
    assert await firsts(rig, 3) == ["alpha#A", "alpha#A", "alpha#B"]


@pytest.mark.parametrize("status", [200, 400])
async def test_fill_first_leaves_an_account_that_says_it_is_nearly_empty_and_returns(rig: Rig, status: int) -> None:
    using(rig, "fill-first", TWINS)
    last = limited(2)
    rig.script(alpha=[limited(50), replace(last, status=status), answer(), answer()])
    assert await firsts(rig, 3) == ["alpha#A", "alpha#A", "alpha#B"]
    await asyncio.sleep(60)
    assert await first(rig) == "alpha#A"


async def test_fill_first_hears_it_from_streams_too(rig: Rig) -> None:
    using(rig, "fill-first", TWINS)
    told = stream(role(), delta("ok"), finish())
    rig.script(alpha=[replace(told, headers=(*told.headers, *limited(1).headers[1:])), answer()])
    assert await first(rig, stream=True) == "alpha#A"
    assert await first(rig) == "alpha#B"


async def test_fill_first_leaves_an_account_that_is_refused_for_its_quota_and_returns(rig: Rig) -> None:
    using(rig, "fill-first", TWINS)
    rig.script(alpha=[refusal(402, retry_after="120"), *[answer()] * 3])
    tried = (await rig.ask("c")).tried
    assert tried == ["alpha#A", "alpha#B"]
    assert await first(rig) == "alpha#B"
    await asyncio.sleep(120)
    assert await first(rig) == "alpha#A"


async def test_reset_aware_uses_first_what_is_soon_reset(rig: Rig) -> None:
    using(rig, "reset-aware", TWINS)

    def session(used: str, reset_s: int) -> Reply:
        moment = str(int(rig.clock.now() + reset_s))
        five = {"anthropic_ratelimit_unified_5h_utilization": used, "anthropic_ratelimit_unified_5h_reset": moment}
        return saying(**five)

    rig.script(alpha=[session("0.5", 17_000), session("0.5", 600), answer()])
    assert await firsts(rig, 3) == ["alpha#A", "alpha#B", "alpha#B"]


async def test_reset_aware_leaves_what_is_used_up(rig: Rig) -> None:
    using(rig, "reset-aware", TWINS)
    rig.script(alpha=[limited(1), *[answer()] * 3])
    assert await firsts(rig, 4) == ["alpha#A", "alpha#B", "alpha#B", "alpha#B"]


async def test_context_optimized_fits_best(rig: Rig) -> None:
    small, large = provider("alpha", model("m1", context=200_000)), provider("beta", model("m2", context=1_000_000))
    using(rig, "context-optimized", large, small, GAMMA, members=("gamma/m4", "beta/m2", "alpha/m1"))
    answers(rig, 2)
    assert await first(rig) == "alpha#A"
    assert await first(rig, messages=[{"role": "user", "content": "x" * 1_000_000}]) == "beta#A"


async def test_weighted_draws_in_proportion(rig: Rig) -> None:
    weights = {"alpha/m1": 5.0, "beta/m2": 3.0, "gamma/m4": 2.0}
    members = tuple(Member(model=name, weight=weight) for name, weight in weights.items())
    rig.use(ALPHA, BETA, GAMMA, Combo("c", "c", "weighted", members))
    led = planned(rig, 5_000)
    chi2 = sum((led[name] - 500 * weight) ** 2 / (500 * weight) for name, weight in weights.items())
    assert chi2 < 13.8  # p = 0.001 with two degrees of freedom


async def test_strict_random_deals_whole_decks_without_a_repeat_across_the_seam(rig: Rig) -> None:
    using(rig, "strict-random", ALPHA, BETA, GAMMA, members=THREE)
    answers(rig, 20)
    dealt = [(await rig.ask(call=call)).tried[0] for call in _seeded(rig, 60)]
    assert all(len(set(dealt[at : at + 3])) == 3 for at in range(0, 60, 3))
    assert all(before != after for before, after in pairwise(dealt))


async def test_an_answer_that_forbids_another_account_is_not_tried_on_the_next_one(rig: Rig) -> None:
    using(rig, "fill-first", TWINS, BETA, members=THREE[:2])
    rig.script(alpha=refusal(413), beta=answer())
    assert (await rig.ask("c")).tried == ["alpha#A", "beta#A"]


async def test_after_a_failure_of_the_account_the_next_one_of_the_member_is_tried(rig: Rig) -> None:
    using(rig, "fill-first", TWINS, BETA, members=THREE[:2])
    rig.script(alpha=[refusal(429), answer()])
    assert (await rig.ask("c")).tried == ["alpha#A", "alpha#B"]


async def test_a_member_that_pins_its_account_is_a_member_of_its_own(rig: Rig) -> None:
    pinned = tuple(Member(model="alpha/m1", account=name) for name in "AB")
    rig.use(TWINS, Combo("c", "c", "fill-first", pinned))
    rig.script(alpha=[refusal(413), answer()])
    assert (await rig.ask("c")).tried == ["alpha#A", "alpha#B"]


async def test_a_client_that_leaves_says_nothing_of_the_upstream(rig: Rig) -> None:
    using(rig, "fill-first", ALPHA)
    rig.script(alpha=stream(role(), delta("ok"), asyncio.Event()))
    async with asyncio.TaskGroup() as clients:
        leaving = clients.create_task(rig.ask("c", stream=True))
        await asyncio.sleep(0.1)
        leaving.cancel()
    measures = rig.measuring.statistics.measures(("alpha", "m1", "A"), rig.clock.now())
    assert (measures.recent, measures.success_rate, measures.samples) == (1, None, 0)
    assert rig.measuring.statistics.inflight(("alpha", "m1", "A")) == 0


def _seeded(rig: Rig, count: int) -> list[Call]:
    calls: list[Call] = []
    for seed in range(count):
        call = rig.call("c")
        call.seed = seed
        calls.append(call)
    return calls
