"""EffortResolver: resolves the model's name once, and makes one decision about reasoning effort per request."""

from __future__ import annotations

from typing import Final

from troyproxy.middleware import alone
from troyproxy.middleware.layer import MAX_BODY, Layer
from troyproxy.proxy.call import CHAT_PATH, Call
from troyproxy.proxy.resolutions import Resolutions
from troyproxy.proxy.stage import ASGIApp
from troyproxy.routing.effort import adapt, decide

NO_MODELS: Final[alone.Models] = {}


class EffortResolver(Layer):
    """Alone: *models* is the app's list; an alias becomes the listed id, an effort suffix ``reasoning_effort``.

    *default_effort* applies to models known to reason, when the request names none. Names that the list does not know
    are the app's to judge. Raises ConfigError for a fact about a model that does not exist, or an unknown effort.
    """

    def __init__(
        self,
        app: ASGIApp,
        models: alone.Models = NO_MODELS,
        default_effort: str | None = None,
        *,
        max_body: int = MAX_BODY,
    ) -> None:
        super().__init__(app, max_body=max_body)
        self._alone = alone.snapshot_of(models, default_effort)
        self._resolutions = Resolutions()

    def decide(self, call: Call) -> None:
        if call.foreign:
            self._edit(call)
            return
        resolution = self._resolutions.of(call.payload.get("model"), call.snapshot)
        call.resolution = resolution
        default = call.snapshot.default_effort if call.route == CHAT_PATH else None
        call.effort = decide(call.payload, resolution.effort, default)
        if call.ledger.told:
            call.ledger.say(f"model {resolution.asked[:200]!r}: {resolution.how}")
            if call.effort.told:
                call.ledger.say(call.effort.told)

    def _edit(self, call: Call) -> None:
        """Write the decision into the body at once: behind us is the only member."""
        provider, asked = self._alone.providers[alone.APP], call.payload.get("model")
        model, suffix = alone.named(provider, asked) if isinstance(asked, str) else (None, None)
        call.effort = decide(call.payload, suffix, self._alone.default_effort)
        changes = adapt(call.effort, call.payload, provider.model(model or ""), provider)
        renamed = {"model": model} if model is not None and model != asked else {}
        if renamed or changes.set or changes.drop:
            call.edit({**renamed, **changes.set}, changes.drop)
