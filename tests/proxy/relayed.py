"""What the tests of the hand-off share: a small member, a smaller one, a large one, and a model that sums up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.proxy.rig import Rig, Served, combo, model, provider
from troyproxy.catalog.models import Capabilities, Limits, Model, Price
from troyproxy.resilience.breaker import BreakerPolicy
from troyproxy.resilience.health import HealthPolicy

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


def opening() -> Rig:
    """A circuit opens at the first failure."""
    made = Rig(health=HealthPolicy(breaker=BreakerPolicy(failures=1, open_s=30.0)))
    use(made)
    return made
