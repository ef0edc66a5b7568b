"""ToolLeakGuard: a tool call that a model wrote as text never reaches the client as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from troyproxy.leaks.blocks import options_of
from troyproxy.leaks.modes import LeakMode
from troyproxy.leaks.options import Options
from troyproxy.leaks.policy import Leak
from troyproxy.middleware.guarding import Guarding, Tell
from troyproxy.middleware.layer import MAX_BODY, Layer, Wrap
from troyproxy.middleware.leak_mode import Calm, ModeChoice, leak_mode
from troyproxy.proxy.call import Call
from troyproxy.proxy.stage import ASGIApp
from troyproxy.settings import leak_shapes
from troyproxy.settings.report import Report

OnLeak = Callable[[Leak], None]


class ToolLeakGuard(Layer):
    """*mode* is `off`, `observe`, `suppress`, `repair`, `failover` or `auto`; *options* are those of the block `leak:`.

    Alone, in front of somebody else's app, there is nobody to fail over to: `auto` repairs what it can and suppresses
    the rest, and `failover` does what its option `on_exhausted` says. *on_leak* hears of each leak (its choice, format
    and action) once; it must not raise and must not wait. *tell* is the same for the gateway, with the call. One
    request may choose another mode: `leak_mode.ModeChoice`. Raises ValueError for an unknown *mode*, ConfigError for an
    option that does not exist or a value that it does not take.
    """

    def __init__(
        self,
        app: ASGIApp,
        /,
        mode: str = LeakMode.AUTO,
        on_leak: OnLeak | None = None,
        *,
        tell: Tell | None = None,
        max_body: int = MAX_BODY,
        **options: object,
    ) -> None:
        super().__init__(app, max_body=max_body)
        self._mode, self._options = leak_mode(mode), _checked(options)
        self._on_leak, self._tell = on_leak, tell
        self._calm = Calm(self._options)

    def decide(self, call: Call) -> Wrap | None:
        if self._calm.about(call):
            return None
        modes = ModeChoice(call, self._mode, self._options)
        return None if modes.never else Guarding(call, modes, self._heard).over

    def _heard(self, call: Call, leak: Leak) -> None:
        if self._on_leak is not None:
            self._on_leak(leak)
        if self._tell is not None:
            self._tell(call, leak)


def _checked(options: Mapping[str, object]) -> Options:
    report = Report()
    block = leak_shapes.FILE.read(_plain(options), "", report)
    report.check("ToolLeakGuard")
    return options_of(block or {})


def _plain(value: object) -> object:
    """Return *value* as a file would have it: lists for tuples and sets."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return list(value) if isinstance(value, list | tuple | set | frozenset) else value
