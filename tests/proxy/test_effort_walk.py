"""An effort on its way through a walk: on which routes, from which table, and what is told and learned of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest

from tests.proxy.rig import Rig, answer, combo, provider, refusal
from troyproxy.accounting.records import AttemptRecord
from troyproxy.catalog.models import Capabilities, Model
from troyproxy.catalog.providers import Accepts, EffortSpelling
from troyproxy.resilience.breaker import CircuitState
from troyproxy.routing.effort_spelling import BUDGETS

pytestmark = pytest.mark.anyio

THINKS: Final = Model("m1", Capabilities(reasoning=True))
PLAIN: Final = Model("m2", Capabilities(reasoning=False))
VECTORS: Final = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}], "model": "m1"}


def bodies(rig: Rig) -> list[dict[str, Any]]:
    return [json.loads(request.body) for request in rig.upstream.requests]


@pytest.fixture
def thinking(rig: Rig) -> Rig:
    rig.use(
        provider("alpha", THINKS),
        provider("beta", PLAIN),
        provider("gamma", THINKS, accepts=Accepts(effort=EffortSpelling.BUDGET)),
        combo("two", "alpha/m1", "beta/m2"),
    )
    return rig


async def test_each_member_of_a_walk_gets_what_it_takes(thinking: Rig) -> None:
    thinking.script(alpha=refusal(500), beta=answer())
    served = await thinking.ask("two-high")
    assert [body.get("reasoning_effort") for body in bodies(thinking)] == ["high", None]
    assert served.exchange.header("x-troy-adapted") is None


async def test_the_budgets_are_those_of_the_configuration(thinking: Rig) -> None:
    thinking.snapshot = replace(thinking.snapshot, effort_budgets={**BUDGETS, "high": 20_000})
    thinking.script(gamma=answer())
    served = await thinking.ask("gamma/m1-high")
    assert bodies(thinking)[0]["thinking"] == {"type": "enabled", "budget_tokens": 20_000}
    assert served.exchange.header("x-troy-adapted") == "thinking.budget_tokens=20000"


async def test_what_is_embedded_is_not_thought_about(thinking: Rig) -> None:
    thinking.script(alpha=answer(VECTORS))
    call = thinking.call("alpha/m1-high", route="/v1/embeddings", input="x")
    await thinking.ask(call=call)
    assert bodies(thinking)[0].keys().isdisjoint({"reasoning_effort", "reasoning", "thinking"})


async def test_the_models_own_name_is_what_circuits_and_metrics_go_by(thinking: Rig) -> None:
    thinking.script(alpha=[refusal(500)] * 3)
    for _ in range(3):
        await thinking.ask("alpha/m1-high")
    assert thinking.health.circuit("alpha", "m1") is CircuitState.OPEN
    assert {row.model for (row,) in thinking.observer.of("attempt_finished") if isinstance(row, AttemptRecord)} == {
        "m1"
    }


async def test_sampling_that_is_refused_beside_our_effort_goes_and_comes_back_without_it(thinking: Rig) -> None:
    thinking.script(alpha=[refusal(400, "no", param="temperature"), answer(), answer()])
    first = await thinking.ask("alpha/m1-high", temperature=0.2)
    await thinking.ask("alpha/m1", temperature=0.2)
    assert [body.get("temperature") for body in bodies(thinking)] == [0.2, None, 0.2]
    assert first.exchange.header("x-troy-adapted") == "reasoning_effort=high,-temperature"


async def test_an_effort_is_dropped_once_and_no_more(thinking: Rig) -> None:
    refused = refusal(400, "no", param="reasoning.effort")
    thinking.script(alpha=[refused, refused])
    served = await thinking.ask("alpha/m1-high")
    assert (served.exchange.status, len(served.tried)) == (400, 2)


async def test_the_trace_lists_every_change(thinking: Rig) -> None:
    thinking.script(alpha=answer())
    served = await thinking.ask("alpha/m1", reasoning={"effort": "max"})
    assert "  adapted: -reasoning, reasoning_effort=high" in served.call.ledger.lines
