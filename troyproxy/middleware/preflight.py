"""Preflight: what the request needs, and which members can do it; 503 when none can, before any upstream call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from troyproxy.errors import ContextExceeded, ModelNotAllowed, NoEligibleMember
from troyproxy.middleware import alone
from troyproxy.middleware.layer import MAX_BODY, Layer
from troyproxy.proxy.call import CHAT_PATH, Call
from troyproxy.proxy.stage import ASGIApp
from troyproxy.routing.eligibility import SkipReason, room_needed, shortfall
from troyproxy.routing.needs import Needs, Sizes, needs_of, plain_needs, validate_chat, validate_common

PlanCall = Callable[[Call], object]
NO_MODELS: Final[alone.Models] = {}


def refuse_fallbacks(call: Call) -> None:
    """Raise ModelNotAllowed when a key for certain models brings ``models``, a vendor's own list of fallbacks.

    It would be forwarded as it is, and the vendor would serve what the key may not use.
    """
    if call.key is not None and call.key.models and "models" in call.payload:
        raise ModelNotAllowed("this key is for certain models: `models` is not accepted, send `model`", param="models")


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
        self._sizes = Sizes()
        self._alone = alone.snapshot_of(models)

    def decide(self, call: Call) -> None:
        call.needs = needs = self._needs(call)
        if call.key is not None and call.key.models:
            refuse_fallbacks(call)
        if call.foreign:
            self._check_app(str(call.payload.get("model", "")), needs)
        elif self._plan is not None:
            self._plan(call)

    def _needs(self, call: Call) -> Needs:
        """Return what *call* needs. Raises InvalidRequest for what cannot be understood."""
        chat = call.route == CHAT_PATH
        needs = plain_needs(call.payload) if chat else None
        if needs is None:
            (validate_chat if chat else validate_common)(call.payload)
            needs = needs_of(call.payload, self._sizes.of)
        return needs

    def _check_app(self, model: str, needs: Needs) -> None:
        listed, _ = alone.named(self._alone.providers[alone.APP], model)
        app = alone.candidate(self._alone, listed or model)
        reason = shortfall(app, needs, deny_unknown=False)
        details = [{"member": model, "reason": str(reason)}]
        if reason is SkipReason.CONTEXT:
            raise ContextExceeded(
                f"This model's maximum context length is {app.facts.limits.context} tokens, but the request needs "
                f"about {room_needed(app, needs)} tokens. Please reduce the length of the messages.",
                details=details,
            )
        if reason is not None:
            raise NoEligibleMember(f"the model {model[:200]!r} cannot serve this request: {reason}", details=details)
