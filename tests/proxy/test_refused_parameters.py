"""Learned negatives over time and beside other traffic: remembered for an hour, and no retry where none may go."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from tests.fakes import Reply
from tests.proxy.rig import ALPHA, BETA, TWO, Rig, answer, combo, fault, good, provider, refusal
from troyproxy.catalog.models import Capabilities, Model
from troyproxy.proxy.learned import REMEMBER_S
from troyproxy.resilience.breaker import Admission

pytestmark = pytest.mark.anyio

Fields = Mapping[str, Any]

THINKERS: Final = provider(
    "alpha", *(Model(name, Capabilities(reasoning=True)) for name in ("m1", "m3")), accounts="AB"
)
REFUSED: Final = pytest.mark.parametrize(
    ("name", "fields"), [("stream_options", {}), ("reasoning_effort", {"reasoning_effort": "high"})]
)


def refused_after(seconds: float) -> Reply:
    return replace(refusal(400, "unknown field stream_options", param="stream_options"), before=[seconds])


async def _teach(rig: Rig, name: str, fields: Fields) -> None:
    rig.use(THINKERS)
    rig.script(alpha=[refusal(400, f"unknown field {name}", param=name), good()])
    await rig.ask("alpha/m1", stream=True, **fields)


def _carried(rig: Rig, name: str) -> list[bool]:
    return [name.encode() in request.body for request in rig.upstream.requests]


async def _ask_again(rig: Rig, fields: Fields, model: str = "alpha/m1") -> None:
    rig.script(alpha=good())
    await rig.ask(model, stream=True, **fields)


@REFUSED
async def test_a_refused_parameter_is_left_out_and_the_same_account_asked_once_more(
    rig: Rig, name: str, fields: Fields
) -> None:
    rig.use(THINKERS)
    rig.script(alpha=[refusal(400, f"unknown field {name}", param=name), good()])
    served = await rig.ask("alpha/m1", stream=True, **fields)
    assert (served.tried, _carried(rig, name), served.text) == (["alpha#A", "alpha#A"], [True, False], "ok")


@REFUSED
async def test_it_is_left_out_for_an_hour(rig: Rig, name: str, fields: Fields) -> None:
    await _teach(rig, name, fields)
    await asyncio.sleep(REMEMBER_S - 1)
    await _ask_again(rig, fields)
    assert _carried(rig, name) == [True, False, False]


@REFUSED
async def test_it_is_sent_again_after_an_hour(rig: Rig, name: str, fields: Fields) -> None:
    await _teach(rig, name, fields)
    await asyncio.sleep(REMEMBER_S + 1)
    await _ask_again(rig, fields)
    assert _carried(rig, name) == [True, False, True]


@REFUSED
async def test_another_model_of_the_same_provider_still_gets_it(rig: Rig, name: str, fields: Fields) -> None:
    await _teach(rig, name, fields)
    await _ask_again(rig, fields, "alpha/m3")
    assert _carried(rig, name) == [True, False, True]


# --- beside other traffic ---


async def _refused_meanwhile(rig: Rig, *others: Reply, requests: int = 1) -> list[str]:
    """Let other requests change the state while a first waits for its refusal; return whom the first one tried."""
    rig.script(alpha=[refused_after(5.0), *others])
    first = asyncio.get_running_loop().create_task(rig.ask(stream=True))
    await asyncio.sleep(1)
    for _ in range(requests):
        await rig.ask("alpha/m1", stream=True)
    rig.script(alpha=good(), beta=good())
    return (await first).tried


async def test_the_retry_keeps_away_from_an_account_that_was_rate_limited_meanwhile(rig: Rig) -> None:
    assert await _refused_meanwhile(rig, refusal(429, retry_after="30")) == ["alpha#A", "beta#A"]


async def test_the_retry_keeps_away_from_a_circuit_that_opened_meanwhile(rig: Rig) -> None:
    assert await _refused_meanwhile(rig, *[refusal(500)] * 3, requests=3) == ["alpha#A", "beta#A"]


async def test_a_soft_lock_set_meanwhile_does_not_bar_the_retry(rig: Rig) -> None:
    assert await _refused_meanwhile(rig, refusal(500)) == ["alpha#A", "alpha#A"]


async def test_the_other_account_gets_what_was_learned_when_the_first_was_locked_meanwhile(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="AB"), BETA, TWO)
    tried = await _refused_meanwhile(rig, refusal(401), good())
    assert (tried, _carried(rig, "stream_options")[-1]) == (["alpha#A", "alpha#B"], False)


async def test_a_retry_that_was_barred_leaves_the_refusal_as_the_answer_of_a_sole_member(rig: Rig) -> None:
    rig.use(ALPHA, combo("two", "alpha/m1"))
    rig.script(alpha=[refused_after(5.0), refusal(429, retry_after="30")])
    first = asyncio.get_running_loop().create_task(rig.ask(stream=True))
    await asyncio.sleep(1)
    await rig.ask("alpha/m1", stream=True)
    served = await first
    assert (served.exchange.status, served.tried, rig.idle) == (400, ["alpha#A"], True)


async def _half_open(rig: Rig) -> None:
    rig.script(alpha=[fault()] * 3)
    for _ in range(3):
        await rig.ask("alpha/m1")
        await asyncio.sleep(3)
    await asyncio.sleep(40)


async def test_the_retry_of_a_probe_is_a_probe_with_all_its_time(rig: Rig) -> None:
    rig.set(stream_idle_s=20.0, first_output_s=0.001)
    await _half_open(rig)
    rig.script(alpha=[refused_after(15.0), answer(before=[1e6])], beta=good())
    asked = asyncio.get_running_loop().create_task(rig.ask(stream=True))
    await asyncio.sleep(30)
    meanwhile = rig.health.admission("alpha", "m1")
    await asked
    assert (meanwhile, rig.upstream.asked[-3:]) == (Admission.DENY, ["alpha", "alpha", "beta"])


async def test_a_probe_whose_retry_is_barred_gives_its_lease_back(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", "m3"), BETA, TWO)
    await _half_open(rig)
    rig.script(alpha=[refused_after(5.0), refusal(401)], beta=good())
    asked = asyncio.get_running_loop().create_task(rig.ask(stream=True))
    await asyncio.sleep(1)
    await rig.ask("alpha/m3")
    served = await asked
    assert (served.tried, rig.health.admission("alpha", "m1")) == (["alpha#A", "beta#A"], Admission.PROBE)
