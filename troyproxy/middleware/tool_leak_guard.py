"""ToolLeakGuard: a tool call that a model wrote as text never reaches the client as text."""

from __future__ import annotations

from collections.abc import Callable

from troyproxy.errors import InvalidRequest
from troyproxy.leaks.arming import armed
from troyproxy.leaks.gate import LeakGate, LeakMode
from troyproxy.leaks.suppress import Leak
from troyproxy.middleware.layer import MAX_BODY, ASGIApp, Layer
from troyproxy.middleware.suppression import suppressing_body, suppressing_stream
from troyproxy.proxy.answers import Send
from troyproxy.proxy.call import Call

OnLeak = Callable[[Call, Leak], None]


class ToolLeakGuard(Layer):
    """*mode* is `suppress` or `off`; *on_leak* hears of each leak with its call, and must not raise or wait.

    The mode of one request: header ``x-troy-leak-mode``, else the key's, the combo's, the serving provider's, this one.
    A key whose leak setting is ``locked`` ignores the header. Raises ValueError for an unknown *mode*.
    """

    def __init__(
        self, app: ASGIApp, mode: str = "suppress", on_leak: OnLeak | None = None, *, max_body: int = MAX_BODY
    ) -> None:
        super().__init__(app, max_body=max_body)
        self._mode = LeakMode(mode)
        self._on_leak = on_leak

    def decide(self, call: Call) -> None:
        names = armed(call.payload)
        if names is not None and self._mode_of(call) is LeakMode.SUPPRESS:
            call.gates.append(LeakGate(names, LeakMode.SUPPRESS))

    def wrap(self, call: Call, send: Send) -> Send:
        names = armed(call.payload)
        if names is None or self._mode_of(call) is LeakMode.OFF:
            return send
        over = suppressing_stream if call.stream else suppressing_body
        return over(call, send, names, self._on_leak)

    def _mode_of(self, call: Call) -> LeakMode:
        key = call.key.leak if call.key is not None else {}
        combo = call.resolution.combo if call.resolution is not None else None
        config = combo.config.get("leak") if combo is not None else None
        asked = None if key.get("locked") is True else call.header(b"x-troy-leak-mode")
        chosen = asked or key.get("mode") or config or self._mode
        try:
            return LeakMode(str(chosen))
        except ValueError as exc:
            raise InvalidRequest(f"x-troy-leak-mode: {exc}") from exc
