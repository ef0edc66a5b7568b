"""Two passes over the members: what the first leaves out, and what neither tries."""

from __future__ import annotations

import asyncio

import pytest

from tests.proxy.rig import (
    BETA,
    Rig,
    answer,
    combo,
    fault,
    provider,
    refusal,
)
from troyproxy.resilience.faults import Fault

pytestmark = pytest.mark.anyio


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
