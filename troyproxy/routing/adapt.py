"""All that must change in a body for one member, in one place: model, effort, usage, limits, empty tools.

A 400 that names a parameter teaches: `may_learn` says whether the walk may drop it and try the same account once more,
and the walk gives it back as *learned* for an hour. Only what the gateway added is ever dropped that way, but for an
effort, which is learned whoever set it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from troyproxy.routing.changes import UNCHANGED, Changes, dropping, setting
from troyproxy.routing.effort import SAMPLING, EffortDecision, speaks_of_effort
from troyproxy.routing.effort import adapt as adapt_effort
from troyproxy.routing.effort_spelling import BUDGETS, states_effort
from troyproxy.routing.members import Candidate
from troyproxy.routing.needs import TOOL_KEYS, as_tokens

__all__ = ["EFFORT", "STREAM_OPTIONS", "Changes", "may_learn", "member_changes", "parameter"]

EFFORT: Final = "reasoning_effort"
STREAM_OPTIONS: Final = "stream_options"

_EFFORT_NAMES: Final = frozenset({"reasoning_effort", "reasoningEffort", "reasoning.effort", "reasoning", "thinking"})
_TOOL_COMPANIONS: Final = ("tool_choice", "function_call", "parallel_tool_calls")


def member_changes(
    payload: Mapping[str, object],
    candidate: Candidate,
    decision: EffortDecision,
    *,
    learned: Collection[str] = (),
    wants_usage: bool = False,
    budgets: Mapping[str, int] = BUDGETS,
) -> Changes:
    """Return what must differ from *payload* for *candidate* (which has a provider).

    *learned* are the parameters (as `parameter` names them) that this provider and model rejected lately.
    *wants_usage*: the route knows ``stream_options`` (chat and text completions). *budgets*: thinking tokens per level.
    """
    changes = UNCHANGED
    if payload.get("model") != candidate.model:
        changes = _renamed(candidate.model)
    if decision.level is not None or speaks_of_effort(payload):
        changes = changes.then(_effort(payload, candidate, decision, learned, budgets))
    if STREAM_OPTIONS in payload or ("stream" in payload and payload["stream"] is True):
        changes = changes.then(_stream_options(payload, candidate, learned, wants_usage=wants_usage))
    if candidate.facts.limits.output is not None:
        changes = changes.then(_output(payload, candidate.facts.limits.output))
    if "tools" in payload or "functions" in payload:
        changes = changes.then(_tools(payload, candidate))
    return changes


@lru_cache(maxsize=1024)
def _renamed(model: str) -> Changes:
    """Return the one change that most requests need."""
    return Changes(MappingProxyType({"model": model}))


def parameter(name: str) -> str:
    """Return the one name under which a rejected parameter is remembered: ``reasoning.effort`` is an effort, and
    ``body.stream_options.include_usage`` is ``stream_options``. Paths come with dots or, as JSON pointers, slashes."""
    plain = name.strip().strip("/").replace("/", ".").removeprefix("$.").removeprefix("body.")
    if plain in _EFFORT_NAMES or plain.startswith(("thinking.", "reasoning.effort")):
        return EFFORT
    return STREAM_OPTIONS if plain.startswith(f"{STREAM_OPTIONS}.") else plain


def may_learn(name: str, payload: Mapping[str, object], changes: Changes, decision: EffortDecision) -> bool:
    """Whether a 400 that names the parameter *name* lets the walk drop it and retry once.

    *changes* are those that were sent. Client's own fields are the client's to correct: their 400 is its answer.
    """
    known = parameter(name)
    if known == EFFORT:
        return _carries_effort(payload, changes, decision)
    if known == STREAM_OPTIONS:
        return STREAM_OPTIONS in changes.set and payload.get(STREAM_OPTIONS) is None
    beside = decision.injected and _carries_effort(payload, changes, decision)
    return beside and known in SAMPLING and known in changes.applied(payload)


def _carries_effort(payload: Mapping[str, object], changes: Changes, decision: EffortDecision) -> bool:
    """Whether an effort (the client's or ours, not a client's own budget) goes upstream."""
    ours = "thinking" in changes.set and not decision.budget
    return ours or states_effort(changes.applied(payload))


def _effort(
    payload: Mapping[str, object],
    candidate: Candidate,
    decision: EffortDecision,
    learned: Collection[str],
    budgets: Mapping[str, int],
) -> Changes:
    if candidate.provider is None:
        return UNCHANGED
    rejected = EFFORT in learned
    changes = adapt_effort(decision, payload, candidate.facts, candidate.provider, budgets, learned=rejected)
    if decision.injected and _carries_effort(payload, changes, decision):
        refused = [key for key in SAMPLING if key in learned and key not in changes.drop]
        changes = changes.then(dropping(payload, *refused))
    return changes


def _stream_options(
    payload: Mapping[str, object], candidate: Candidate, learned: Collection[str], *, wants_usage: bool
) -> Changes:
    """Ask for usage where the stream and the provider allow it; never beside a non-stream request."""
    takes = candidate.provider is None or candidate.provider.accepts.stream_options
    if payload.get("stream") is not True or not takes:
        return dropping(payload, STREAM_OPTIONS)
    own = payload.get(STREAM_OPTIONS)
    if not wants_usage or (STREAM_OPTIONS in learned and own is not None):
        return UNCHANGED
    if STREAM_OPTIONS in learned:
        return dropping(payload, STREAM_OPTIONS)  # a null counts as absent
    value = {**own, "include_usage": True} if isinstance(own, dict) else {"include_usage": True}
    return setting(payload, STREAM_OPTIONS, value, "stream_options.include_usage=true")


def _output(payload: Mapping[str, object], limit: int) -> Changes:
    """Clamp the longest answer to the member's known *limit*, in tokens."""
    changes = UNCHANGED
    for key in ("max_completion_tokens", "max_tokens"):
        asked = as_tokens(payload[key]) if key in payload else None
        if asked is not None and asked > limit:
            changes = changes.then(setting(payload, key, limit, f"{key}:{limit}"))
    return changes


def _tools(payload: Mapping[str, object], candidate: Candidate) -> Changes:
    """Keep empty ``tools`` and ``functions``, and what refers to them, from members without tools."""
    empty = [key for key in TOOL_KEYS if key in payload and not payload[key]]
    if candidate.facts.capabilities.tools is not False or not empty:
        return UNCHANGED
    return dropping(payload, *empty, *_TOOL_COMPANIONS)
