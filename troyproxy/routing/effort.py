"""Reasoning effort: one decision per request, a level per member. Knows no network: what upstreams rejected comes in
as *learned* parameters (`adapt`); how a level is spelled is `effort_spelling`.

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
from troyproxy.routing.changes import UNCHANGED, Changes, dropping
from troyproxy.routing.effort_spelling import BUDGETS, budget_spelled, has_budget, spelled, without_effort

Source = Literal["body", "suffix", "default", "budget", "none"]

EFFORT_KEYS: Final = ("reasoning_effort", "reasoning", "thinking")
"""Every member of a body that speaks of reasoning."""

SAMPLING: Final = ("temperature", "top_p")
"""What some models refuse beside a reasoning effort."""


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

    @property
    def told(self) -> str:
        """One line for the trace; empty when nobody asked for anything."""
        if self.source == "none":
            return ""
        over = f", which overrules the suffix {self.overruled}" if self.overruled is not None else ""
        return f"effort: {self.level or 'a budget of its own'} (from the {_WHENCE[self.source]}){over}"


NO_EFFORT: Final = EffortDecision()
"""Nobody asked for anything, as in most requests."""

_WHENCE: Final[Mapping[Source, str]] = {"body": "body", "budget": "body", "suffix": "name", "default": "settings"}


def speaks_of_effort(payload: Mapping[str, object]) -> bool:
    """Whether *payload* has any of `EFFORT_KEYS`."""
    return "reasoning_effort" in payload or "reasoning" in payload or "thinking" in payload


def decide(payload: Mapping[str, object], suffix: str | None, default: str | None) -> EffortDecision:
    """Return the request's effort: the body's, else its budget (no level), else *suffix*, else *default*.

    ``reasoning: {enabled: false}`` asks for ``none``. Raises InvalidEffort, with `param`, for a level that is no
    string or unknown.
    """
    if not ("reasoning_effort" in payload or "reasoning" in payload or "thinking" in payload):
        return NO_EFFORT if suffix is None and default is None else _unstated(suffix, default)
    stated, budget = _stated(payload), has_budget(payload)
    overruled = suffix if suffix is not None and suffix != stated else None
    if stated is not None:
        return EffortDecision(stated, "body", budget=budget, overruled=overruled)
    if budget:
        return EffortDecision(None, "budget", budget=True, overruled=overruled)
    return _unstated(suffix, default)


def _unstated(suffix: str | None, default: str | None) -> EffortDecision:
    """Return the effort of a body that says nothing of it."""
    if suffix is not None:
        return EffortDecision(suffix, "suffix")
    return EffortDecision(default, "default") if default is not None else NO_EFFORT


def adapt(
    decision: EffortDecision,
    payload: Mapping[str, object],
    model: Model,
    provider: Provider,
    budgets: Mapping[str, int] = BUDGETS,
    *,
    learned: bool = False,
) -> Changes:
    """Return what must change in *payload* so that *decision* reaches *model* in the provider's one spelling.

    *budgets*: thinking tokens per level. *learned*: the model rejected an effort lately, and gets none.
    """
    capable = model.capabilities.reasoning
    if capable is False:
        return dropping(payload, *EFFORT_KEYS)
    spelling, level = provider.accepts.effort, _level_of(decision, model)
    if learned or level is None or (decision.budget and spelling is not EffortSpelling.FIELD):
        bare = without_effort(payload) if learned or decision.source == "body" else UNCHANGED
        return bare.then(budget_spelled(bare.applied(payload), spelling)) if decision.budget else bare
    changes = spelled(level, payload, spelling, model, budgets, budget=decision.budget)
    if decision.injected and level != "none" and model.no_sampling_with_effort and changes.set:
        changes = changes.then(dropping(payload, *SAMPLING))
    return changes


def clamp(level: str, model: Model) -> str | None:
    """Return the nearest level that *model* takes (of two the weaker), or None when nothing may be sent.

    ``none`` is never raised: it is sent to models that know it and to no other.
    """
    if model.no_effort:
        return None
    takes = [known for known in EFFORTS if known in model.effort_levels]
    if level in takes:
        return level
    steps = [] if level == "none" else [known for known in takes if known != "none"]
    return min(steps, key=lambda known: abs(EFFORTS.index(known) - EFFORTS.index(level)), default=None)


def _level_of(decision: EffortDecision, model: Model) -> str | None:
    """Return the level that *model* is sent; a default is for models that are known to reason."""
    unsure = decision.source == "default" and model.capabilities.reasoning is None
    return None if decision.level is None or unsure else clamp(decision.level, model)


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
