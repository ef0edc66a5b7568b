"""The edge of the client API: makes the `Call`, and whatever becomes of it, keeps its row and tells the observer.

It is the outermost layer of the onion. Every answer leaves with the request's story in ``x-troy-*`` headers, refusals
by a layer and a bug of ours included.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from troyproxy.accounting.limits import Standing
from troyproxy.accounting.records import Traced
from troyproxy.api.outermost import bug
from troyproxy.api.request_id import Noise
from troyproxy.catalog.keys import Key
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.ports import Clock, Headers, Observer, UsageSink
from troyproxy.proxy.answers import Receive, Send, send_error
from troyproxy.proxy.call import Call, Scope, peer_of, put_call, raw_headers
from troyproxy.proxy.ledger import Ledger
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.proxy.report import ATTEMPTS, RATES, rate_headers, story
from troyproxy.proxy.rows import row_of
from troyproxy.proxy.stage import ASGIApp, Stage, straight, told

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
        self.app, self._inner = app, straight(app)
        self._asks = isinstance(app, Stage)
        self._route, self._snapshot, self._clock = route, snapshot, clock
        self._path, self._named = UPSTREAM_PATHS[route], "{path}" in route
        self._observer, self._usage, self._policy = observer, usage, policy
        self._quiet, self._told = policy.expose == "id", policy.trace
        self._standing, self._traced, self._noise = standing, traced, Noise()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = self._new_call(scope)
        self._observer.request_started()
        try:
            # Our own layers ask the call for what belongs into a head; what is not ours is asked for it.
            await self._inner(call, put_call(scope, call), receive, send if self._asks else told(call, send))
        except asyncio.CancelledError:
            # The server took the request away: a stream was told so, anything else has nobody left to answer.
            call.client_left = not call.ledger.truncated
            raise
        except Exception:  # a bug of ours or of a host's layer: no list says what it raises, so this is all but signals
            if not call.begun:
                await send_error(told(call, send), bug())
            raise  # the server logs it
        finally:
            self._close(call)

    def _new_call(self, scope: Scope) -> Call:
        peer, clock = peer_of(scope), self._clock
        headers = raw_headers(scope) if peer is None else tuple(scope["headers"])
        now = clock.now()
        request_id, seed = self._noise.take(now)
        # Fourteen named arguments at most: the interpreter packs more of them into a dict first.
        return Call(
            request_id=request_id,
            at=now,
            started=clock.monotonic(),
            route=self._route,
            upstream_path=self._path.replace("{path}", scope["path_params"]["path"]) if self._named else self._path,
            headers=headers,
            snapshot=self._snapshot(),
            seed=seed,
            quiet=self._quiet,
            ledger=Ledger(told=self._told),
            traced=self._traced(headers),
            peer=peer,
            complete=self._complete,
        )

    def _close(self, call: Call) -> None:
        row = row_of(call, duration_s=self._clock.monotonic() - call.started)
        self._usage.record(row)
        self._observer.request_finished(row)
        gaps_s = call.ledger.gaps_s
        if gaps_s and row.provider is not None and row.model is not None:
            self._observer.events_seen(row.provider, row.model, gaps_s)
        if self._told:
            end = f"end {row.status} {row.outcome} after {row.duration_ms:.0f} ms"
            self._observer.trace(call.request_id, [*call.ledger.lines, end])
        call.over()

    def _complete(self, call: Call, given: Headers) -> list[tuple[bytes, bytes]]:
        """Return a head with the request's story, where the walk has not told it, and where the key stands."""
        headers = list(given)
        for name, _ in headers:
            if name == ATTEMPTS:  # told; not so in a head that went out before anybody answered
                break
        else:
            headers += story(call, self._policy, known={name for name, _ in headers})
        key = call.key
        if key is None or not key.limits:
            return headers
        rates = self._rates(call, key)
        return [*(pair for pair in headers if not pair[0].startswith(RATES)), *rates] if rates else headers

    def _rates(self, call: Call, key: Key) -> Headers:
        """Return where the caller's key stands. An answer from before its admission has what is known by now."""
        if self._standing is None or self._quiet:
            return ()
        return rate_headers(call.standing if call.standing is not None else self._standing(key))
