"""EffortResolver: resolves the model's name once, and makes one decision about reasoning effort per request."""

from __future__ import annotations

from typing import Final

from troyproxy.errors import ModelNotFound
from troyproxy.middleware import alone
from troyproxy.middleware.layer import MAX_BODY, ASGIApp, Layer
from troyproxy.proxy.call import Call
from troyproxy.routing.adapt import member_changes
from troyproxy.routing.effort import decide
from troyproxy.routing.names import resolve

NO_MODELS: Final[alone.Models] = {}


class EffortResolver(Layer):
    """Alone: *models* is the app's list; a suffix of a listed model becomes ``reasoning_effort``.

    *default_effort* applies to models known to reason, when the request names none.
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
        self._snapshot = alone.snapshot_of(models, default_effort)

    def decide(self, call: Call) -> None:
        if call.foreign:
            self._decide_alone(call)
            return
        resolution = resolve(call.payload.get("model"), call.snapshot)
        call.resolution = resolution
        call.effort = decide(call.payload, resolution.effort, call.snapshot.default_effort)
        call.ledger.say(f"model {resolution.asked[:200]!r}: {resolution.how}")

    def _decide_alone(self, call: Call) -> None:
        asked = call.payload.get("model")
        suffix, model = None, asked if isinstance(asked, str) else ""
        try:
            resolution = resolve(asked, self._snapshot)
        except ModelNotFound:
            pass  # a model that the list does not know is the app's to judge
        else:
            suffix, model = resolution.effort, resolution.model or model
        call.effort = decide(call.payload, suffix, self._snapshot.default_effort)
        changes = member_changes(call.payload, alone.candidate(self._snapshot, model), call.effort)
        kept = {key: value for key, value in changes.set.items() if key != "stream_options"}
        call.edit(kept, changes.drop - {"stream_options", "tools", "functions", "tool_choice"})
