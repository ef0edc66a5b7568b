"""The edge of the client API: makes the `Call`, and whatever becomes of it, keeps its row and tells the observer.

It is the outermost layer of the onion. Every answer leaves with the request's story in ``x-troy-*`` headers, refusals
by a layer and a bug of ours included.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Final

from troyproxy.accounting.limits import Standing
from troyproxy.accounting.records import Traced
from troyproxy.api.outermost import answering_bugs
from troyproxy.api.request_id import ASGIApp, new_request_id
from troyproxy.catalog.keys import Key
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.ports import Clock, Headers, Observer, UsageSink
from troyproxy.proxy.answers import Message, Receive, Send
from troyproxy.proxy.call import Call, Scope, put_call, raw_headers
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.proxy.report import RATES, rate_headers, story
from troyproxy.proxy.rows import row_of

UPSTREAM_PATHS: Final = {
    "/v1/chat/completions": "/chat/completions",
    "/v1/completions": "/completions",
    "/v1/embeddings": "/embeddings",
    "/v1/audio/{path}": "/audio/{path}",
    "/v1/images/{path}": "/images/{path}",
    "/v1/moderations": "/moderations",
    "/v1/rerank": "/rerank",
}
"""Route → path behind a provider's base URL; ``{path}`` is the rest of the client's path, slashes included."""


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
        policy: WalkPolicy,
        standing: Callable[[Key], tuple[Standing, ...]] | None = None,
        traced: Callable[[Headers], Traced | None] = lambda _: None,
    ) -> None:
        self.app = answering_bugs(app)
        self._route, self._snapshot, self._clock = route, snapshot, clock
        self._observer, self._usage, self._policy = observer, usage, policy
        self._standing, self._traced = standing, traced

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = self._new_call(scope)
        self._observer.request_started()
        try:
            await self.app(put_call(scope, call), receive, self._telling(call, send))
        except asyncio.CancelledError:
            # The server took the request away: a stream was told so, anything else has nobody left to answer.
            call.client_left = not call.ledger.truncated
            raise
        finally:
            self._close(call)

    def _new_call(self, scope: Scope) -> Call:
        headers = raw_headers(scope)
        return Call(
            request_id=new_request_id(),
            at=self._clock.now(),
            started=self._clock.monotonic(),
            route=self._route,
            upstream_path=UPSTREAM_PATHS[self._route].replace("{path}", scope.get("path_params", {}).get("path", "")),
            headers=headers,
            snapshot=self._snapshot(),
            seed=secrets.randbits(64),
            quiet=self._policy.expose == "id",
            traced=self._traced(headers),
        )

    def _close(self, call: Call) -> None:
        row = row_of(call, duration_s=self._clock.monotonic() - call.started)
        self._usage.record(row)
        self._observer.request_finished(row)
        if row.provider is not None and row.model is not None and call.ledger.gaps_s:
            self._observer.events_seen(row.provider, row.model, call.ledger.gaps_s)
        if self._policy.trace:
            end = f"end {row.status} {row.outcome} after {row.duration_ms:.0f} ms"
            self._observer.trace(call.request_id, [*call.ledger.lines, end])

    def _rates(self, call: Call) -> Headers:
        """Return where the caller's key stands. An answer from before its admission has what is known by now."""
        key = call.key
        if key is None or not key.limits or self._standing is None or self._policy.expose == "id":
            return ()
        return rate_headers(call.standing if call.standing is not None else self._standing(key))

    def _telling(self, call: Call, send: Send) -> Send:
        """Return a `Send` that notes the status, and tells the story where the walk has not told it."""

        async def send_told(message: Message) -> None:
            if message["type"] == "http.response.start":
                call.ledger.note_status(message["status"])
                rates = self._rates(call)
                headers = list(message.get("headers", ()))
                headers = [pair for pair in headers if not (rates and pair[0].startswith(RATES))]
                known = {name for name, _ in headers}
                added = story(call, self._policy, known=known)
                message = {**message, "headers": [*headers, *added, *rates]}
            await send(message)

        return send_told
