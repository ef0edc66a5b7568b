"""The edge of the client API: makes the `Call`, and whatever becomes of it, keeps its row and tells the observer.

It is the outermost layer of the onion. Every answer leaves with ``x-troy-request-id``.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Final

from troyproxy.catalog.snapshot import Snapshot
from troyproxy.ports import Clock, Observer, UsageSink
from troyproxy.proxy.answers import Message, Receive, Send
from troyproxy.proxy.call import Call, Scope, put_call, raw_headers
from troyproxy.proxy.report import REQUEST_ID
from troyproxy.proxy.rows import row_of

ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

UPSTREAM_PATHS: Final = {
    "/v1/chat/completions": "/chat/completions",
    "/v1/completions": "/completions",
    "/v1/embeddings": "/embeddings",
}
"""Route → path behind a provider's base URL."""


class Edge:
    """One per route, around the layers."""

    def __init__(  # noqa: PLR0913 -- the edge is where everything that is told about a request meets
        self,
        app: ASGIApp,
        route: str,
        *,
        snapshot: Callable[[], Snapshot],
        clock: Clock,
        observer: Observer,
        usage: UsageSink,
        trace: bool = False,
    ) -> None:
        self.app = app
        self._route, self._snapshot, self._clock = route, snapshot, clock
        self._observer, self._usage, self._trace = observer, usage, trace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = self._new_call(scope)
        self._observer.request_started()
        try:
            await self.app(put_call(scope, call), receive, _naming(call, send))
        finally:
            self._close(call)

    def _new_call(self, scope: Scope) -> Call:
        return Call(
            request_id=f"req_{secrets.token_hex(12)}",
            at=self._clock.now(),
            started=self._clock.monotonic(),
            route=self._route,
            upstream_path=UPSTREAM_PATHS[self._route],
            headers=raw_headers(scope),
            snapshot=self._snapshot(),
            seed=secrets.randbits(64),
        )

    def _close(self, call: Call) -> None:
        row = row_of(call, duration_s=self._clock.monotonic() - call.started)
        self._usage.record(row)
        self._observer.request_finished(row)
        if row.provider is not None and row.model is not None and call.ledger.gaps_s:
            self._observer.events_seen(row.provider, row.model, call.ledger.gaps_s)
        if self._trace:
            self._observer.trace(call.request_id, call.ledger.lines)


def _naming(call: Call, send: Send) -> Send:
    """Return a `Send` that sees to the request id and notes the status."""

    async def send_named(message: Message) -> None:
        if message["type"] == "http.response.start":
            call.ledger.status = message["status"]
            headers = message.get("headers", [])
            if not any(name == REQUEST_ID for name, _ in headers):
                message = {**message, "headers": [*headers, (REQUEST_ID, call.request_id.encode("ascii"))]}
        await send(message)

    return send_named
