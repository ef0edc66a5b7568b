"""Why a request would go where it goes. The planner that serves traffic is asked; nothing is opened, nothing moves.

Used by ``POST /api/explain`` and ``troyproxy explain``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

import msgspec

from troyproxy.catalog.keys import Key
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.ports import Headers
from troyproxy.proxy.bodies import member_body
from troyproxy.proxy.call import CHAT_PATH, Call
from troyproxy.proxy.draft import Draft
from troyproxy.proxy.explain_auto import auto_told
from troyproxy.proxy.handoff import expected
from troyproxy.proxy.intake import decode_object
from troyproxy.proxy.learned import LearnedParameters
from troyproxy.proxy.planner import Planner
from troyproxy.routing.effort import decide
from troyproxy.routing.eligibility import room_needed
from troyproxy.routing.members import Candidate, leaves
from troyproxy.routing.names import resolve
from troyproxy.routing.needs import needs_of, validate_chat

EXPLAINED: Final = "explained"
"""The request id of what never becomes a request."""


def draft_call(
    body: bytes, snapshot: Snapshot, *, at: float, seed: int, headers: Headers = (), key: Key | None = None
) -> Call:
    """Return the call that the chat request *body* (JSON) would be at *at* (unix seconds), up to its plan.

    Raises what the client would be answered: InvalidJSON, InvalidRequest, InvalidEffort, ModelNotFound, …
    """
    call = Call(
        request_id=EXPLAINED,
        at=at,
        started=0.0,
        route=CHAT_PATH,
        headers=headers,
        snapshot=snapshot,
        key=key,
        seed=seed,
        body=body,
        payload=decode_object(body),
        usage_wanted=True,  # as UsageInjector has it
    )
    call.resolution = resolve(call.payload.get("model"), snapshot)
    call.effort = decide(call.payload, call.resolution.effort, snapshot.default_effort)
    validate_chat(call.payload)
    call.needs = needs_of(call.payload)
    return call


def explain(planner: Planner, call: Call, learned: LearnedParameters) -> dict[str, object]:
    """Return the plan of *call* (from `draft_call`), JSON-ready: name, effort, needs, members with verdicts, order.

    ``refused`` is the error that the client would get, with its status; None when somebody can serve it.
    Raises ModelNotAllowed and InvalidRequest, as a plan does.
    """
    draft = planner.draft(call)
    root, plan = draft.root, draft.plan
    refused = None
    if not plan.candidates:
        error = planner.refusal(call, draft)
        refused = {"status": error.http_status, **error.envelope()}
    return {
        "model": _name(call),
        "strategy": root.combo.strategy,
        "effort": asdict(call.effort) if call.effort is not None else None,
        "needs": msgspec.structs.asdict(call.needs) if call.needs is not None else None,
        "members": list(_members(call, draft, learned)),
        "auto": [auto_told(made, planner.auto) for made in draft.run.decided] if draft.run is not None else [],
        "order": [candidate.identity for candidate in plan.candidates],
        "refused": refused,
        "seed": str(call.seed),
    }


def _name(call: Call) -> dict[str, object]:
    found = call.resolution
    if found is None:  # pragma: no cover -- draft_call resolves
        raise RuntimeError("the call has no resolved name")
    return {
        "asked": found.asked,
        "kind": found.kind.value,
        "canonical": found.canonical,
        "combo": found.combo.id if found.combo is not None else None,
        "suffix_effort": found.effort,
        "how": found.how,
    }


def _members(call: Call, draft: Draft, learned: LearnedParameters) -> Iterator[dict[str, object]]:
    """Yield every member once, in saved order. The plan's skips stand in that order too."""
    plan = draft.plan
    left_out = {} if draft.run is None else draft.run.left_out
    places = {candidate.identity: place for place, candidate in enumerate(plan.candidates, start=1)}
    skips = iter(plan.skipped)
    members: dict[str, Candidate] = {}
    for candidate in leaves(draft.root):
        members.setdefault(candidate.identity, candidate)
    for identity, candidate in members.items():
        place = places.get(identity)
        reason = None
        if place is None:
            reason = str(left_out.get(identity) or next(skips).reason)
        yield {
            "member": candidate.spec,
            "account": candidate.account,
            "weight": candidate.weight,
            "verdict": "eligible" if reason is None else "skipped",
            "reason": reason,
            "place": place,
            **_facts(call, candidate),
            "adapted": _adapted(call, candidate, learned) if place is not None else [],
        }


def _adapted(call: Call, candidate: Candidate, learned: LearnedParameters) -> list[str]:
    return [*member_body(call, candidate, learned).changes.adapted, *expected(call, candidate)]


def _facts(call: Call, candidate: Candidate) -> dict[str, object]:
    limits = candidate.facts.limits
    return {
        "context_length": limits.context,
        "max_output_tokens": limits.output,
        "room_needed": room_needed(candidate, call.needs) if call.needs is not None else None,
        "capabilities": asdict(candidate.facts.capabilities),
    }
