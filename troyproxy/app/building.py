"""Makes the parts of a gateway and hands them to each other."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from troyproxy.api.gateway import Gateway
from troyproxy.api.outermost import cors
from troyproxy.api.routing_table import RoutingTable
from troyproxy.api.services import Services
from troyproxy.api.status import Status
from troyproxy.api.wiring import Wiring
from troyproxy.app.counting import Counting
from troyproxy.app.measured import Measured
from troyproxy.app.onion import Onion
from troyproxy.app.routes import Routes
from troyproxy.app.scoring import auto_engine
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.demo.app import demo_app
from troyproxy.demo.provider import demo_combo, demo_provider
from troyproxy.leaks.leak_rate import LeakRates
from troyproxy.ports import Clock
from troyproxy.proxy.accounts import AccountDesk
from troyproxy.proxy.authenticator import Authenticate, Authenticator, OpenDoor
from troyproxy.proxy.auto_engine import AutoEngine
from troyproxy.proxy.catalogue_refresh import CatalogueRefresh
from troyproxy.proxy.catalogue_shelf import CatalogueShelf
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.learned import LearnedParameters
from troyproxy.proxy.life import Life
from troyproxy.proxy.lock_news import lock_news
from troyproxy.proxy.memory import account_name
from troyproxy.proxy.mirroring import Mirroring
from troyproxy.proxy.orders import Orders
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.policy import WalkPolicy, health_policy, journal_keep_s
from troyproxy.proxy.quota_page import QuotaPage
from troyproxy.proxy.retries import Retries
from troyproxy.proxy.snapshots import SnapshotKeeper, changed_accounts, changed_combos
from troyproxy.proxy.sources import Load, SnapshotSource
from troyproxy.proxy.trials import Trials
from troyproxy.resilience.cooldowns import ANY
from troyproxy.resilience.retry_budget import RetryPolicy
from troyproxy.settings.assemble import Stored
from troyproxy.settings.catalogue_file import CatalogueFile
from troyproxy.settings.ceilings import load_ceilings
from troyproxy.settings.instance import instance_name
from troyproxy.settings.load import Configuration
from troyproxy.settings.secrets import admin_token, data_folder, secret_key
from troyproxy.settings.values import Settings
from troyproxy.store.pruning import Keep
from troyproxy.store.redis_door import state_mirror
from troyproxy.store.store import SqlStore
from troyproxy.telemetry.access import AccessLog
from troyproxy.telemetry.fanout import Fanout
from troyproxy.telemetry.labels import KnownModels, Labels
from troyproxy.telemetry.live import Live
from troyproxy.telemetry.metrics import Metrics
from troyproxy.telemetry.ring import RequestRing
from troyproxy.telemetry.trace import TraceObserver
from troyproxy.telemetry.tracing import Tracing
from troyproxy.upstream.network import network
from troyproxy.upstream.router import RoutedUpstream


def sql_store(settings: Settings, clock: Clock, *, source: str | None = None) -> SqlStore:
    """Return the database of *settings*, not started; *source* is who writes the journal. Raises ConfigError."""
    return SqlStore(
        settings.database_url,
        secret_key=secret_key(settings),
        clock=clock,
        source=source or instance_name(settings),
        keep=Keep(events_s=journal_keep_s(settings), usage_days=settings.usage_days),
    )


class Builder:
    """Wires one gateway. Opens nothing."""

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
        self._live = Live(self._clock)
        self._tracing = Tracing(configuration.env)
        watching = (self._metrics, self._ring, AccessLog(), self._live, self._tracing, *traces)
        self._observer = Fanout((*watching, *wiring.observers))
        self._store = wiring.store or sql_store(self._settings, wiring.clock)
        self._token = admin_token(self._settings)
        log, policy = self._store.events, self._health_policy
        self._health = HealthKeeper(clock=self._clock, log=log, observer=self._observer, policy=policy, rng=wiring.rng)
        self._learned = LearnedParameters(self._clock)
        self._leak_rates = LeakRates()
        self._retries = Retries(self._clock, RetryPolicy(self._policy.retry_budget))
        self._desk = AccountDesk(max_inflight=self._policy.max_inflight, observer=self._observer)
        self._authenticator = Authenticator(snapshot=self._snapshot, keys=self._store.keys, clock=self._clock)
        self._orders = Orders(self._store.control, self._health, self._clock)
        self._shelf = self._catalogue_shelf()
        self._snapshots = self._snapshot_keeper()
        self._snapshots.tell(self._metrics.configured)
        self._snapshots.tell(self._live.configured)
        self._health.watch(lock_news(self._live.tell))
        self._upstream = wiring.upstream or RoutedUpstream(
            network(self._settings.transport), {"demo": demo_app(), **wiring.apps}
        )
        self._refresh = self._catalogue_refresh()
        self._measured = Measured.of(self._settings, wiring, self._store, self._health, self._snapshot)
        self._auto = self._auto_engine()
        self._planner = self._new_planner()
        self._mirroring = self._shared_state()
        self._counting = Counting.of(self._settings, wiring, self._store, self._snapshot)
        self._status = self._new_status()

    def _new_planner(self) -> Planner:
        return Planner(
            health=self._health,
            measuring=self._measured.measuring,
            auto=self._auto,
            clock=self._clock,
            policy=self._policy,
            observer=self._observer,
            drifting=self._leak_rates.late,
        )

    def _auto_engine(self) -> AutoEngine:
        rate, measuring = self._settings.auto_exploration, self._measured.measuring
        return auto_engine(measuring, self._clock, self._observer, exploration=rate)

    def gateway(self) -> Gateway:
        """Return the app."""
        self._metrics.watch(self._status)
        self._life = Life(
            store=self._store,
            snapshots=self._snapshots,
            health=self._health,
            upstream=self._upstream,
            background=(
                self._snapshots.follow,
                lambda: self._metrics.keep_fresh(self._clock),
                *(() if self._refresh is None else (self._refresh.follow,)),
                *self._counting.background,
                *self._measured.background,
                self._tracing.follow,
            ),
            mirroring=self._mirroring,
            first=(*self._counting.first, *self._measured.first, self._tracing.open),
        )
        origins = self._settings.cors_origins
        table = RoutingTable(self._routes().all(), around=lambda app: cors(app, origins))
        return Gateway(table, self._life, self._snapshots)

    def _new_status(self) -> Status:
        return Status(
            health=self._health,
            desk=self._desk,
            snapshots=self._snapshots,
            store=self._store,
            clock=self._clock,
            shared=self._mirroring,
            catalogue=self._refresh,
            limits=self._counting.keeper,
        )

    def _shared_state(self) -> Mirroring | None:
        keep_s = journal_keep_s(self._settings)
        mirror = self._wiring.mirror or state_mirror(self._settings.redis_url, keep_s=keep_s)
        if mirror is None:
            return None
        return Mirroring(mirror, health=self._health, snapshots=self._snapshots, clock=self._clock, keep_s=keep_s)

    def _catalogue_shelf(self) -> CatalogueShelf | None:
        url, folder = self._settings.model_catalog_url, data_folder(self._settings.database_url)
        return CatalogueShelf(CatalogueFile(folder, url), self._first.builtins, self._clock) if url else None

    def _catalogue_refresh(self) -> CatalogueRefresh | None:
        url, shelf = self._settings.model_catalog_url, self._shelf
        if url is None or shelf is None:
            return None
        return CatalogueRefresh(
            url,
            shelf,
            upstream=self._upstream,
            snapshots=self._snapshots,
            orders=self._orders,
            clock=self._clock,
            rng=self._wiring.rng,
        )

    def _snapshot_keeper(self) -> SnapshotKeeper:
        return SnapshotKeeper(
            self._source().build,
            control=self._store.control,
            clock=self._clock,
            on_change=(self._changed,),
            on_refused=self._forget_keys,
            orders=self._orders,
        )

    def _snapshot(self) -> Snapshot:
        return self._snapshots.current

    def _source(self) -> SnapshotSource:
        ours = Stored(keys=self._wiring.keys)
        if self._wiring.demo:
            ours = replace(ours, demo=demo_provider(), demo_combo=demo_combo())
        fetched = None if self._shelf is None else self._shelf.models
        return SnapshotSource(self._first, self._load, store=self._store, clock=self._clock, ours=ours, fetched=fetched)

    def _changed(self, before: Snapshot, after: Snapshot) -> None:
        """A new snapshot is in force: keys are looked up anew, locks of accounts that changed are gone."""
        self._forget_keys()
        self._desk.keep(after.providers)
        for provider, account in changed_accounts(before, after):
            self._health.forget(provider, account)
            self._measured.measuring.quotas.forget(provider, account)
            self._auto.memory.failed(provider, ANY, account_name(provider, account))
        for combo in changed_combos(before, after):
            self._auto.memory.forget_combo(combo)

    def _forget_keys(self) -> None:
        """Client keys were written, here or elsewhere: what is known of them is read anew."""
        self._authenticator.forget()
        self._counting.keys.written()

    def _routes(self) -> Routes:
        return Routes(self._settings, self._onion(), self.services(), self._metrics, lambda: self._life.stopping)

    def _onion(self) -> Onion:
        return Onion(
            settings=self._settings,
            gear=self._gear(),
            planner=self._planner,
            authenticate=self._authenticate(),
            snapshot=self._snapshot,
            usage=self._store.usage,
            limits=self._counting.keeper,
            traced=self._tracing.begin,
            known=self._authenticator.known if self._settings.auth else None,
        )

    def _authenticate(self) -> Authenticate:
        if self._settings.auth:
            return self._authenticator.authenticate
        return OpenDoor(self._settings.cors_origins).authenticate

    def _gear(self) -> Gear:
        return Gear(
            upstream=self._upstream,
            health=self._health,
            desk=self._desk,
            learned=self._learned,
            retries=self._retries,
            measuring=self._measured.measuring,
            auto=self._auto,
            observer=self._observer,
            clock=self._clock,
            policy=self._policy,
            leak_rates=self._leak_rates,
        )

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
            trials=Trials(self._gear(), self._planner, self._store.usage, self._snapshot),
            forget_keys=self._forget_keys,
            quota=self._quota_page(),
            live=self._live,
            stopping=lambda: self._life.stopping,
            catalogue=self._refresh,
        )

    def _quota_page(self) -> QuotaPage:
        return QuotaPage(
            quotas=self._measured.measuring.quotas,
            health=self._health,
            snapshot=self._snapshot,
            sums=self._store.sums,
            clock=self._clock,
            ceilings=cache(load_ceilings),
        )
