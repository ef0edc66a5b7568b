"""The edge of the client API: makes the `Call`, and whatever becomes of it, keeps its row and tells the observer.

It is the outermost layer of the onion. Every answer leaves with ``x-troy-request-id``, that of a bug of ours included.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Final

from troyproxy.api.outermost import answering_bugs
from troyproxy.api.request_id import ASGIApp, naming, new_request_id
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.ports import Clock, Observer, UsageSink
from troyproxy.proxy.answers import Receive, Send
from troyproxy.proxy.call import Call, Scope, put_call, raw_headers
from troyproxy.proxy.rows import row_of

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
        self.app = answering_bugs(app)
        self._route, self._snapshot, self._clock = route, snapshot, clock
        self._observer, self._usage, self._trace = observer, usage, trace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = self._new_call(scope)
        self._observer.request_started()
        try:
            await self.app(put_call(scope, call), receive, naming(send, call.request_id, call.ledger.note_status))
        except asyncio.CancelledError:
            call.client_left = True  # the server took the request away: nobody is there to answer
            raise
        finally:
            self._close(call)

    def _new_call(self, scope: Scope) -> Call:
        return Call(
            request_id=new_request_id(),
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
