"""The request body for one member: the client's bytes but for the members that must differ, made once per member."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from troyproxy.proxy.call import Call
from troyproxy.proxy.learned import LearnedParameters
from troyproxy.routing.adapt import may_learn, member_changes, parameter
from troyproxy.routing.changes import UNCHANGED, Changes
from troyproxy.routing.effort import NO_EFFORT
from troyproxy.routing.effort_spelling import BUDGETS
from troyproxy.routing.members import Candidate
from troyproxy.wire import splice

GENERATING: Final = frozenset({"/v1/chat/completions", "/v1/completions"})
"""Routes that know ``stream_options``, and an effort: what is embedded is not thought about."""


class MemberBody(Struct, frozen=True):
    """What one member is sent, and how it differs from what the client sent."""

    content: bytes
    changes: Changes

    def __repr__(self) -> str:
        """Without the client's words."""
        return f"MemberBody({self.changes})"

    def may_learn(self, name: str, call: Call) -> bool:
        """Whether a 400 that names the parameter *name* earns one retry without it."""
        return may_learn(name, call.payload, self.changes, call.effort or NO_EFFORT)


def member_body(call: Call, candidate: Candidate, learned: LearnedParameters) -> MemberBody:
    """Return the body for *candidate*."""
    if call.passing:
        return MemberBody(_passed(call, candidate.model), UNCHANGED)
    provider = candidate.provider.id if candidate.provider is not None else ""
    changes = member_changes(
        call.payload,
        candidate,
        (call.effort if call.route in GENERATING else None) or NO_EFFORT,
        budgets=call.snapshot.effort_budgets or BUDGETS,
        learned=learned.of(provider, candidate.model),
        wants_usage=call.usage_wanted and call.route in GENERATING,
    )
    known = call.single if call.single is call.payload else None
    return MemberBody(splice.edit(call.body, changes.set, changes.drop, known), changes)


def _passed(call: Call, model: str) -> bytes:
    """Return the client's body with the member's own name of the model; nothing else differs.

    It takes the place of the client's: the next member's is as easily made of it, and a large upload is held once.
    """
    if call.form is not None:
        call.form = call.form.with_text("model", model)
        call.body = call.form.body
    else:
        call.body = splice.edit(call.body, {"model": model})
    return call.body


def learned_name(name: str) -> str:
    """Return the name under which a rejected parameter is remembered."""
    return parameter(name)


def adaptations(changes: Changes) -> Iterator[tuple[str, str]]:
    """Yield parameter and action (``set`` or ``dropped``) of each change that is listed, for the metrics."""
    for change in changes.adapted:
        dropped = change.startswith("-")
        yield re.split("[=:]", change.removeprefix("-"), maxsplit=1)[0], "dropped" if dropped else "set"
