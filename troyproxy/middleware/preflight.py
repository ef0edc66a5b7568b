"""Preflight: what the request needs, and which members can do it; 503 when none can, before any upstream call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from troyproxy.errors import ContextExceeded, NoEligibleMember
from troyproxy.middleware import alone
from troyproxy.middleware.layer import MAX_BODY, ASGIApp, Layer
from troyproxy.proxy.call import Call
from troyproxy.routing.eligibility import SkipReason, room_needed, shortfall
from troyproxy.routing.needs import needs_of, validate_chat, validate_common

PlanCall = Callable[[Call], object]
NO_MODELS: Final[Mapping[str, Mapping[str, object]]] = {}


class Preflight(Layer):
    """Inside the gateway *plan* makes the call's plan. Alone the app is the only member and *models* is its list."""

    def __init__(
        self,
        app: ASGIApp,
        models: alone.Models = NO_MODELS,
        *,
        plan: PlanCall | None = None,
        max_body: int = MAX_BODY,
    ) -> None:
        super().__init__(app, max_body=max_body)
        self._plan = plan
        self._snapshot = alone.snapshot_of(models)

    def decide(self, call: Call) -> None:
        validate = validate_chat if call.route == "/v1/chat/completions" else validate_common
        validate(call.payload)
        call.needs = needs_of(call.payload)
        if self._plan is not None and not call.foreign:
            self._plan(call)
        elif call.foreign:
            self._check_app(call)

    def _check_app(self, call: Call) -> None:
        needs, model = call.needs, str(call.payload.get("model", ""))
        provider = self._snapshot.providers[alone.APP]
        candidate = alone.candidate(self._snapshot, provider.canonical_model(model) or model)
        reason = shortfall(candidate, needs, deny_unknown=False) if needs is not None else None
        if reason is None or needs is None:
            return
        details = [{"member": model, "reason": str(reason)}]
        if reason is SkipReason.CONTEXT:
            window = candidate.facts.limits.context
            raise ContextExceeded(
                f"This model's maximum context length is {window} tokens, but the request needs about "
                f"{room_needed(candidate, needs)} tokens. Please reduce the length of the messages.",
                details=details,
            )
        raise NoEligibleMember(f"the model {model[:200]!r} cannot serve this request: {reason}", details=details)
