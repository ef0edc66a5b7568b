"""The onion of layers around the proxy endpoint, one for each client route. Read it from the inside out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from troyproxy.accounting.records import Traced
from troyproxy.api.edge import Edge
from troyproxy.api.endpoint import ProxyEndpoint
from troyproxy.api.gateway import ASGIApp
from troyproxy.api.outermost import cors
from troyproxy.catalog.keys import Key
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.leaks.policy import Leak
from troyproxy.middleware.auth_guard import AuthGuard
from troyproxy.middleware.bridge import Bridge
from troyproxy.middleware.effort_resolver import EffortResolver
from troyproxy.middleware.key_limits import KeyLimits
from troyproxy.middleware.preflight import Preflight
from troyproxy.middleware.tool_leak_guard import ToolLeakGuard
from troyproxy.middleware.usage_injector import UsageInjector
from troyproxy.ports import Headers, UsageSink
from troyproxy.proxy.authenticator import Authenticate
from troyproxy.proxy.call import Call
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.limits import LimitKeeper
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.walk import Walk
from troyproxy.settings.values import Settings


@dataclass(frozen=True, slots=True)
class Onion:
    """What every client route is wrapped in."""

    settings: Settings
    gear: Gear
    planner: Planner
    authenticate: Authenticate
    snapshot: Callable[[], Snapshot]
    usage: UsageSink
    limits: LimitKeeper
    traced: Callable[[Headers], Traced | None]
    known: Callable[[Call], Key | None] | None = None
    """Knows at once whose key a request presents, where that was looked up a moment ago."""

    def around(self, route: str) -> ASGIApp:
        """Return the app that serves *route*."""
        app: ASGIApp = ProxyEndpoint(Walk(self.gear, self.planner))
        app = UsageInjector(app)
        app = ToolLeakGuard(app, mode=self.settings.leak, tell=self._leaked)
        app = KeyLimits(app, keeper=self.limits)
        app = Preflight(app, plan=self.planner.plan)
        app = EffortResolver(app)
        app = Bridge(app, max_body=self.gear.policy.max_body, patience=self.gear.policy.patience)
        app = AuthGuard(app, authenticate=self.authenticate, known=self.known)
        return cors(self._edge(app, route), self.settings.cors_origins)

    def _edge(self, app: ASGIApp, route: str) -> Edge:
        gear = self.gear
        return Edge(
            app,
            route,
            snapshot=self.snapshot,
            clock=gear.clock,
            observer=gear.observer,
            usage=self.usage,
            policy=gear.policy,
            standing=self.limits.standing,
            traced=self.traced,
        )

    def _leaked(self, call: Call, leak: Leak) -> None:
        """Count a leak of the attempt under way, or of the one that ended by it."""
        attempt = call.ledger.attempts[-1]
        self.gear.observer.leaked(attempt.provider, attempt.model, leak.format, str(leak.action))
