"""Reasoning effort: one decision per request, spelled per member. Knows no network: what upstreams rejected comes in
as *learned* parameters (`adapt`).

A budget (``reasoning.max_tokens``, ``thinking``) is the client's own and is never joined by an effort. If the client
sent both, the member gets the one in its provider's dialect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from troyproxy.catalog.models import EFFORTS, Model
from troyproxy.catalog.providers import EffortSpelling, Provider
from troyproxy.errors import InvalidEffort
from troyproxy.routing.changes import Changes, dropping, setting
from troyproxy.routing.needs import as_tokens

Source = Literal["body", "suffix", "default", "budget", "none"]

EFFORT_KEYS: Final = ("reasoning_effort", "reasoning", "thinking")
"""Every member of a body that speaks of reasoning."""

SAMPLING: Final = ("temperature", "top_p")
"""What some models refuse beside a reasoning effort."""

BUDGETS: Final[Mapping[str, int]] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16384,
    "xhigh": 24576,
    "max": 32768,
}
"""Thinking tokens per level, for providers that take a budget; the vendors' least is 1,024."""


@dataclass(frozen=True, slots=True)
class EffortDecision:
    """The effort of one request, before any member is looked at."""

    level: str | None = None
    """None: nobody asked for a level."""
    source: Source = "none"
    budget: bool = False
    """The client gave a thinking budget of its own."""
    overruled: str | None = None
    """The suffix that the body's effort or budget overruled, for the trace."""

    @property
    def injected(self) -> bool:
        """Whether an effort would be ours, not the client's own words in the body."""
        return self.source in {"suffix", "default"}


def decide(payload: Mapping[str, object], suffix: str | None, default: str | None) -> EffortDecision:
    """Return the request's effort: the body's, else its budget (no level), else *suffix*, else *default*.

    ``reasoning: {enabled: false}`` asks for ``none``. Raises InvalidEffort, with `param`, for a level that is no
    string or unknown.
    """
    stated, budget = _stated(payload), _has_budget(payload)
    overruled = suffix if suffix is not None and suffix != stated else None
    if stated is not None:
        return EffortDecision(stated, "body", budget=budget, overruled=overruled)
    if budget:
        return EffortDecision(None, "budget", budget=True, overruled=overruled)
    if suffix is not None:
        return EffortDecision(suffix, "suffix")
    return EffortDecision(default, "default") if default is not None else EffortDecision()


def adapt(decision: EffortDecision, payload: Mapping[str, object], model: Model, provider: Provider) -> Changes:
    """Return what must change in *payload* so that *decision* reaches *model* in the provider's one spelling."""
    capable = model.capabilities.reasoning
    if capable is False:
        return dropping(payload, *EFFORT_KEYS)
    if decision.level is None or (decision.source == "default" and capable is None):
        return Changes()
    if decision.budget and provider.accepts.effort is not EffortSpelling.FIELD:
        return without_effort(payload)
    level = clamp(decision.level, model)
    if level is None:
        return without_effort(payload)
    changes = _spelled(level, payload, decision, provider.accepts.effort)
    if decision.injected and level != "none" and model.no_sampling_with_effort:
        changes = changes.then(dropping(payload, *SAMPLING))
    return changes


def clamp(level: str, model: Model) -> str | None:
    """Return the nearest level that *model* takes (of two the weaker), or None when nothing may be sent.

    ``none`` is never raised: it is sent to models that know it and to no other.
    """
    takes = [known for known in EFFORTS if known in model.effort_levels]
    if level in takes:
        return level
    steps = [] if level == "none" else [known for known in takes if known != "none"]
    return min(steps, key=lambda known: abs(EFFORTS.index(known) - EFFORTS.index(level)), default=None)


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


def _spelled(level: str, payload: Mapping[str, object], decision: EffortDecision, spelling: EffortSpelling) -> Changes:
    if spelling is EffortSpelling.FIELD:
        others = ("reasoning", "thinking") if decision.budget else ("reasoning",)
        return dropping(payload, *others).then(
            setting(payload, "reasoning_effort", level, f"reasoning_effort={level}"),
        )
    if spelling is EffortSpelling.OBJECT:
        own = payload.get("reasoning")
        kept = {k: v for k, v in own.items() if (k, v) != ("enabled", False)} if isinstance(own, Mapping) else {}
        value = {**kept, "effort": level}
        return dropping(payload, "reasoning_effort").then(
            setting(payload, "reasoning", value, f"reasoning.effort={level}"),
        )
    return dropping(payload, "reasoning_effort", "reasoning").then(_thinking(level, payload))


def _thinking(level: str, payload: Mapping[str, object]) -> Changes:
    """Return the level as a thinking budget, which must leave room for the answer; too little room, no thinking."""
    if level == "none":
        return setting(payload, "thinking", {"type": "disabled"}, "thinking=disabled")
    room = as_tokens(payload.get("max_completion_tokens")) or as_tokens(payload.get("max_tokens"))
    tokens = BUDGETS[level] if room is None else min(BUDGETS[level], room - 1)
    if tokens < min(BUDGETS.values()):
        return Changes()
    value = {"type": "enabled", "budget_tokens": tokens}
    return setting(payload, "thinking", value, f"thinking.budget_tokens={tokens}")


def _stated(payload: Mapping[str, object]) -> str | None:
    """Return the level that the body states; ``reasoning_effort`` is read before ``reasoning``, both are checked."""
    reasoning = payload.get("reasoning")
    if reasoning is not None and not isinstance(reasoning, Mapping):
        raise InvalidEffort("reasoning: must be an object or null", param="reasoning")
    inner = reasoning or {}
    plain = _level(payload.get("reasoning_effort"), "reasoning_effort")
    nested = _level(inner.get("effort"), "reasoning.effort")
    off = "none" if inner.get("enabled") is False else None
    return plain or nested or off


def _level(value: object, where: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or value not in EFFORTS:
        raise InvalidEffort(f"{where}: must be one of {', '.join(EFFORTS)}", param=where)
    return value


def _has_budget(payload: Mapping[str, object]) -> bool:
    reasoning = payload.get("reasoning")
    return isinstance(payload.get("thinking"), Mapping) or (
        isinstance(reasoning, Mapping) and reasoning.get("max_tokens") is not None
    )
