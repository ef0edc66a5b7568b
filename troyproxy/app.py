"""The one place that names concrete classes: adapters behind ports, the onion of layers, the route table.

create_app(settings)    the gateway as an ASGI app of its own
TroyProxy(app, …)       the same, around an existing ASGI app
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from troyproxy.api.admin.routes import admin_routes
from troyproxy.api.edge import UPSTREAM_PATHS, Edge
from troyproxy.api.endpoint import ProxyEndpoint
from troyproxy.api.gateway import ASGIApp, Embedded, Gateway
from troyproxy.api.health import Liveness, Readiness
from troyproxy.api.metrics import MetricsPage
from troyproxy.api.models import ModelList
from troyproxy.api.outermost import cors, guarded, outermost, preflights
from troyproxy.api.routing_table import Route, RoutingTable
from troyproxy.api.services import Services
from troyproxy.api.status import Status
from troyproxy.api.wiring import Wiring
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.demo.app import demo_app
from troyproxy.demo.provider import demo_combo, demo_provider
from troyproxy.leaks.suppress import Leak
from troyproxy.middleware.auth_guard import AuthGuard
from troyproxy.middleware.bridge import Bridge
from troyproxy.middleware.effort_resolver import EffortResolver
from troyproxy.middleware.preflight import Preflight
from troyproxy.middleware.tool_leak_guard import ToolLeakGuard
from troyproxy.middleware.usage_injector import UsageInjector
from troyproxy.ports import Clock
from troyproxy.proxy.accounts import AccountDesk
from troyproxy.proxy.authenticator import Authenticate, Authenticator, OpenDoor
from troyproxy.proxy.call import Call
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.learned import LearnedParameters
from troyproxy.proxy.life import Life
from troyproxy.proxy.mirroring import Mirroring
from troyproxy.proxy.orders import Orders
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.policy import WalkPolicy, health_policy, journal_keep_s
from troyproxy.proxy.retries import Retries
from troyproxy.proxy.snapshots import SnapshotKeeper, changed_accounts
from troyproxy.proxy.sources import Load, SnapshotSource
from troyproxy.proxy.walk import Walk
from troyproxy.resilience.retry_budget import RetryPolicy
from troyproxy.settings.assemble import Stored
from troyproxy.settings.builtin import load_builtins
from troyproxy.settings.instance import instance_name
from troyproxy.settings.load import Configuration, load
from troyproxy.settings.secrets import admin_token, secret_key
from troyproxy.settings.values import Settings
from troyproxy.store.redis_door import state_mirror
from troyproxy.store.store import SqlStore
from troyproxy.telemetry.access import AccessLog
from troyproxy.telemetry.fanout import Fanout
from troyproxy.telemetry.labels import KnownModels, Labels
from troyproxy.telemetry.metrics import Metrics
from troyproxy.telemetry.ring import RequestRing
from troyproxy.telemetry.trace import TraceObserver
from troyproxy.upstream.http import HttpxUpstream
from troyproxy.upstream.router import RoutedUpstream

__all__ = ["TroyProxy", "Wiring", "create_app", "create_with_services", "sql_store"]

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


def create_app(
    settings: Settings | Configuration | None = None, *, load_again: Load | None = None, wiring: Wiring | None = None
) -> Gateway:
    """Return a gateway. Without *settings* they come from the environment and ``troyproxy.yaml``, if it is there.

    *load_again* reads the configuration anew at a reload; by default the way it was read here. Opens nothing: the
    lifespan does. Raises ConfigError.
    """
    return create_with_services(settings, load_again=load_again, wiring=wiring)[0]


def create_with_services(
    settings: Settings | Configuration | None = None, *, load_again: Load | None = None, wiring: Wiring | None = None
) -> tuple[Gateway, Services]:
    """Return a gateway as `create_app` does, and the parts that commands and the admin API work with."""
    again = load_again or _loader(settings)
    configuration = again() if not isinstance(settings, Configuration) else settings
    builder = _Builder(configuration, again, wiring or Wiring())
    return builder.gateway(), builder.services()


def _loader(settings: Settings | Configuration | None) -> Load:
    if isinstance(settings, Configuration):
        return lambda: settings
    if isinstance(settings, Settings):
        return lambda: Configuration(settings, {}, builtins=load_builtins())
    return lambda: load(os.environ)


def sql_store(settings: Settings, clock: Clock, *, source: str | None = None) -> SqlStore:
    """Return the database of *settings*, not started; *source* is who writes the journal. Raises ConfigError."""
    return SqlStore(
        settings.database_url,
        secret_key=secret_key(settings),
        clock=clock,
        source=source or instance_name(settings),
        keep_s=journal_keep_s(settings),
    )


class TroyProxy(Embedded):
    """ASGI middleware: the gateway's routes under *prefix*, its admin pages under *admin_prefix*, the rest is *app*'s.

    *config* is the path of a config file; *settings* come instead of, or with *config* over, the environment's.
    *prefix* and *admin_prefix* begin with a slash, or are empty; *admin_prefix* None: no admin pages at all.
    ``auth="off"`` opens the client API, under the rules of ``TROY_AUTH=off``; that variable alone opens nothing here.
    A provider with ``app: inner`` is *app* itself, called in process at ``/v1``.
    """

    def __init__(  # noqa: PLR0913 -- options of a middleware, by keyword
        self,
        app: ASGIApp,
        config: str | Path | None = None,
        *,
        prefix: str = "",
        admin_prefix: str | None = "/troy",
        auth: str | None = None,
        settings: Mapping[str, object] | None = None,
        wiring: Wiring | None = None,
    ) -> None:
        options = {"auth": "on", **(settings or {}), **({"auth": auth} if auth is not None else {})}
        wiring = wiring or Wiring()
        wiring = replace(wiring, apps={**wiring.apps, "inner": app})
        gateway = create_app(load_again=lambda: load(os.environ, config=config, options=options), wiring=wiring)
        super().__init__(app, gateway, prefix=prefix, admin_prefix=admin_prefix)


class _Builder:
    """Wires one gateway."""

    def __init__(self, configuration: Configuration, load_again: Load, wiring: Wiring) -> None:
        self._settings, self._first = configuration.settings, configuration
        self._load, self._wiring, self._clock = load_again, wiring, wiring.clock
        self._policy, self._health_policy = WalkPolicy.of(self._settings), health_policy(self._settings)
        self._ring = RequestRing()
        labels = Labels(
            KnownModels(self._snapshot), lambda: self._snapshot().combos, max_models=self._settings.metrics_models
        )
        self._metrics = Metrics(labels, folder=wiring.metrics_folder)
        traces = (TraceObserver(),) if self._settings.trace else ()
        self._observer = Fanout((self._metrics, self._ring, AccessLog(), *traces, *wiring.observers))
        self._store = wiring.store or sql_store(self._settings, wiring.clock)
        self._token = admin_token(self._settings)
        log, policy = self._store.events, self._health_policy
        self._health = HealthKeeper(clock=self._clock, log=log, observer=self._observer, policy=policy, rng=wiring.rng)
        self._learned = LearnedParameters(self._clock)
        self._retries = Retries(self._clock, RetryPolicy(self._policy.retry_budget))
        self._desk = AccountDesk(max_inflight=self._policy.max_inflight, observer=self._observer)
        self._authenticator = Authenticator(snapshot=self._snapshot, keys=self._store.keys, clock=self._clock)
        self._orders = orders = Orders(self._store.control, self._health, self._clock)
        self._snapshots = SnapshotKeeper(
            self._source().build,
            control=self._store.control,
            clock=self._clock,
            on_change=(self._changed,),
            orders=orders,
        )
        self._upstream = wiring.upstream or RoutedUpstream(HttpxUpstream(), {"demo": demo_app(), **wiring.apps})
        self._planner = Planner(health=self._health, clock=self._clock, policy=self._policy, observer=self._observer)
        self._mirroring = shared = self._shared_state()
        health, snapshots, clock = self._health, self._snapshots, self._clock
        self._status = Status(
            health=health, desk=self._desk, snapshots=snapshots, store=self._store, clock=clock, shared=shared
        )

    def gateway(self) -> Gateway:
        """Return the app."""
        self._metrics.watch(self._status)
        self._life = Life(
            store=self._store,
            snapshots=self._snapshots,
            health=self._health,
            upstream=self._upstream,
            background=(self._snapshots.follow, lambda: self._metrics.keep_fresh(self._clock)),
            mirroring=self._mirroring,
        )
        return Gateway(RoutingTable(self._routes()), self._life, self._snapshots)

    def _shared_state(self) -> Mirroring | None:
        keep_s = journal_keep_s(self._settings)
        mirror = self._wiring.mirror or state_mirror(self._settings.redis_url, keep_s=keep_s)
        if mirror is None:
            return None
        return Mirroring(mirror, health=self._health, snapshots=self._snapshots, clock=self._clock, keep_s=keep_s)

    def _snapshot(self) -> Snapshot:
        return self._snapshots.current

    def _source(self) -> SnapshotSource:
        ours = Stored(keys=self._wiring.keys)
        if self._wiring.demo:
            ours = replace(ours, demo=demo_provider(), demo_combo=demo_combo())
        return SnapshotSource(self._first, self._load, store=self._store, clock=self._clock, ours=ours)

    def _changed(self, before: Snapshot, after: Snapshot) -> None:
        """A new snapshot is in force: keys are looked up anew, locks of accounts that changed are gone."""
        self._authenticator.forget()
        self._desk.keep(after.providers)
        for provider, account in changed_accounts(before, after):
            self._health.forget(provider, account)

    def _routes(self) -> list[Route]:
        authenticate = self._authenticate()
        origins = self._settings.cors_origins
        live = guarded(Liveness())
        ready = guarded(Readiness(self._status.dependencies, lambda: self._life.stopping))
        tokens = [token for token in (self._settings.metrics_token, self._token) if token is not None]
        metrics = MetricsPage(self._metrics.render, tokens, open_here=self._settings.host in LOOPBACK)
        client = [Route("POST", path, self._client_app(path, authenticate)) for path in UPSTREAM_PATHS]
        listed = outermost(ModelList(self._snapshot, authenticate), origins)
        client += [Route("GET", "/v1/models", listed), Route("GET", "/v1/models/{id:path}", listed)]
        return [
            *client,
            *preflights(client, origins),
            *(Route("GET", path, live) for path in ("/healthz", "/livez")),
            Route("GET", "/readyz", ready),
            Route("GET", "/metrics", guarded(metrics)),
            *admin_routes(self.services()),
        ]

    def _authenticate(self) -> Authenticate:
        if self._settings.auth:
            return self._authenticator.authenticate
        return OpenDoor(self._settings.cors_origins).authenticate

    def _client_app(self, route: str, authenticate: Authenticate) -> ASGIApp:
        """The onion of `architecture`: read it from the inside out."""
        settings, max_body = self._settings, self._policy.max_body
        gear = Gear(
            upstream=self._upstream,
            health=self._health,
            desk=self._desk,
            learned=self._learned,
            retries=self._retries,
            observer=self._observer,
            clock=self._clock,
            policy=self._policy,
        )
        app: ASGIApp = ProxyEndpoint(Walk(gear, self._planner))
        app = UsageInjector(app)
        app = ToolLeakGuard(app, mode=settings.leak, tell=self._leaked)
        app = Preflight(app, plan=self._planner.plan)
        app = EffortResolver(app)
        app = Bridge(app, max_body=max_body)
        app = AuthGuard(app, authenticate=authenticate)
        edge = Edge(
            app,
            route,
            snapshot=self._snapshot,
            clock=self._clock,
            observer=self._observer,
            usage=self._store.usage,
            policy=self._policy,
        )
        return cors(edge, settings.cors_origins)

    def _leaked(self, call: Call, leak: Leak) -> None:
        self._observer.leaked(call.ledger.provider or "", call.ledger.model or "", leak.format, str(leak.action))

    def services(self) -> Services:
        """Return the parts behind ``/api``."""
        return Services(
            store=self._store,
            snapshots=self._snapshots,
            health=self._health,
            planner=self._planner,
            learned=self._learned,
            orders=self._orders,
            status=self._status,
            ring=self._ring,
            clock=self._clock,
            configuration=self._first,
            admin_token=self._token,
            worker=self._wiring.worker,
        )
