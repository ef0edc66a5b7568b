"""How an effort, or a budget of the client's own, is spelled for a provider: in one spelling, with no other beside it.

Which spelling a provider takes is data (`Accepts.effort`). Decides nothing: which level a member gets is `effort`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from troyproxy.catalog.models import Model
from troyproxy.catalog.providers import EffortSpelling
from troyproxy.routing.changes import UNCHANGED, Changes, dropping, setting
from troyproxy.routing.needs import as_tokens

BUDGETS: Final[Mapping[str, int]] = MappingProxyType(
    {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32768}
)
"""Thinking tokens per level, for providers that take a budget; the vendors' least is 1,024."""

_OFF: Final[Mapping[str, object]] = {"type": "disabled"}
_ON: Final[Mapping[str, object]] = {"type": "enabled"}


def spelled(
    level: str,
    payload: Mapping[str, object],
    spelling: EffortSpelling,
    model: Model,
    budgets: Mapping[str, int],
    *,
    budget: bool = False,
) -> Changes:
    """Return the changes that say *level* in *spelling*, and in no other. *budget*: the client gave one of its own."""
    if spelling is EffortSpelling.FIELD:
        others = ("reasoning", "thinking") if budget else ("reasoning",)
        said = setting(payload, "reasoning_effort", level, f"reasoning_effort={level}")
        return dropping(payload, *others).then(said)
    if spelling is EffortSpelling.OBJECT:
        own = payload.get("reasoning")
        kept = {k: v for k, v in own.items() if (k, v) != ("enabled", False)} if isinstance(own, Mapping) else {}
        said = setting(payload, "reasoning", {**kept, "effort": level}, f"reasoning.effort={level}")
        return dropping(payload, "reasoning_effort").then(said)
    said = _switched(level, payload) if spelling is EffortSpelling.SWITCH else _thinking(level, payload, model, budgets)
    return dropping(payload, "reasoning_effort", "reasoning").then(said)


def without_effort(payload: Mapping[str, object]) -> Changes:
    """Return the changes that take every spelling of an effort out of *payload* and leave budgets and the rest."""
    field = dropping(payload, "reasoning_effort")
    reasoning = payload.get("reasoning")
    if not isinstance(reasoning, Mapping) or not reasoning.keys() & {"effort", "enabled"}:
        return field
    rest = {key: value for key, value in reasoning.items() if key not in {"effort", "enabled"}}
    return field.then(
        setting(payload, "reasoning", rest, "-reasoning.effort") if rest else dropping(payload, "reasoning")
    )


def states_effort(payload: Mapping[str, object]) -> bool:
    """Whether *payload* itself carries an effort, in either spelling."""
    reasoning = payload.get("reasoning")
    return payload.get("reasoning_effort") is not None or (isinstance(reasoning, Mapping) and "effort" in reasoning)


def has_budget(payload: Mapping[str, object]) -> bool:
    """Whether *payload* carries a thinking budget of the client's own."""
    reasoning = payload.get("reasoning")
    return isinstance(payload.get("thinking"), Mapping) or (
        isinstance(reasoning, Mapping) and reasoning.get("max_tokens") is not None
    )


def budget_spelled(payload: Mapping[str, object], spelling: EffortSpelling) -> Changes:
    """Return the changes that say the client's budget as the provider counts it, where both count tokens.

    For a provider that counts none (a level, a switch) it stays what it is: tokens are no level.
    """
    objects, thoughts = _tokens(payload, "reasoning", "max_tokens"), _tokens(payload, "thinking", "budget_tokens")
    if spelling is EffortSpelling.OBJECT and thoughts is not None:
        return dropping(payload, "thinking").then(_in_object(payload, thoughts) if objects is None else UNCHANGED)
    if spelling is EffortSpelling.BUDGET and objects is not None:
        return dropping(payload, "reasoning").then(_in_thinking(payload, objects) if thoughts is None else UNCHANGED)
    return UNCHANGED


def _in_object(payload: Mapping[str, object], tokens: int) -> Changes:
    own = payload.get("reasoning")
    value = {**(own if isinstance(own, Mapping) else {}), "max_tokens": tokens}
    return setting(payload, "reasoning", value, f"reasoning.max_tokens={tokens}")


def _in_thinking(payload: Mapping[str, object], tokens: int) -> Changes:
    return setting(payload, "thinking", {**_ON, "budget_tokens": tokens}, f"thinking.budget_tokens={tokens}")


def _tokens(payload: Mapping[str, object], owner: str, name: str) -> int | None:
    value = payload.get(owner)
    return as_tokens(value.get(name)) if isinstance(value, Mapping) else None


def _switched(level: str, payload: Mapping[str, object]) -> Changes:
    value = _OFF if level == "none" else _ON
    return setting(payload, "thinking", dict(value), f"thinking={value['type']}")


def _thinking(level: str, payload: Mapping[str, object], model: Model, budgets: Mapping[str, int]) -> Changes:
    """Return the level as a thinking budget; where the answer leaves too little room for one, there is none."""
    if level == "none":
        return _switched(level, payload)
    room = _room(payload, model)
    # Vendors count thoughts as output: a quarter of it is kept for the answer.
    tokens = budgets[level] if room is None else min(budgets[level], room * 3 // 4)
    return _in_thinking(payload, tokens) if tokens >= min(budgets.values()) else UNCHANGED


def _room(payload: Mapping[str, object], model: Model) -> int | None:
    """Return the longest output, in tokens, that the request asks for or the model writes; None = unknown."""
    asked = as_tokens(payload.get("max_completion_tokens")) or as_tokens(payload.get("max_tokens"))
    return min((limit for limit in (asked, model.limits.output) if limit is not None), default=None)
