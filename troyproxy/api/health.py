"""Health: alive, ready, and what is degraded. No key, and never a call to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from troyproxy.proxy.answers import Receive, Send, send_json
from troyproxy.proxy.call import Scope

Dependencies = Callable[[], Mapping[str, str]]
"""Returns dependency → ``ok`` or what is wrong with it."""


class Liveness:
    """``/healthz`` and ``/livez``: the process answers."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await send_json(send, 200, {"status": "ok"})


class Readiness:
    """``/readyz``: 200 while requests are served, degraded or not; 503 while stopping."""

    def __init__(self, dependencies: Dependencies, stopping: Callable[[], bool]) -> None:
        self._dependencies, self._stopping = dependencies, stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        found = dict(self._dependencies())
        degraded = sorted(name for name, state in found.items() if state != "ok")
        status = "stopping" if self._stopping() else "degraded" if degraded else "ok"
        body = {"status": status, "degraded": degraded, "dependencies": found}
        await send_json(send, 503 if status == "stopping" else 200, body)
