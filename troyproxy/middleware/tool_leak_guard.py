"""ToolLeakGuard: a tool call that a model wrote as text never reaches the client as text."""

from __future__ import annotations

from collections.abc import Callable

from troyproxy.leaks.arming import armed
from troyproxy.leaks.suppress import Leak
from troyproxy.middleware.layer import MAX_BODY, ASGIApp, Layer, Wrap
from troyproxy.middleware.leak_mode import ModeChoice, leak_mode
from troyproxy.middleware.suppression import Suppression, Tell
from troyproxy.proxy.call import Call

OnLeak = Callable[[Leak], None]


class ToolLeakGuard(Layer):
    """*mode* is `suppress`, `off`, or `auto`, which is `suppress` in this version.

    *on_leak* hears of each leak (its choice, format and action) once; it must not raise and must not wait. *tell* is
    the same for the gateway, with the call. One request may choose another mode: `leak_mode.ModeChoice`.
    Raises ValueError for an unknown *mode*.
    """

    def __init__(
        self,
        app: ASGIApp,
        mode: str = "suppress",
        on_leak: OnLeak | None = None,
        *,
        tell: Tell | None = None,
        max_body: int = MAX_BODY,
    ) -> None:
        super().__init__(app, max_body=max_body)
        self._mode = leak_mode(mode)
        self._on_leak, self._tell = on_leak, tell

    def decide(self, call: Call) -> Wrap | None:
        modes = ModeChoice(call, self._mode)
        names = armed(call.payload)
        if names is None or modes.always_off:
            return None
        return Suppression(call, names, modes, self._heard).over

    def _heard(self, call: Call, leak: Leak) -> None:
        if self._on_leak is not None:
            self._on_leak(leak)
        if self._tell is not None:
            self._tell(call, leak)
