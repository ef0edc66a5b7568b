"""One run of the server: sockets, gateway, demo mode, signals, in the order in which they may fail."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Final

from troyproxy.api.gateway import Gateway
from troyproxy.app import Wiring, create_app, sql_store
from troyproxy.cli.announce import Announcer
from troyproxy.cli.demo_mode import demo_key, nothing_configured
from troyproxy.cli.listening import Listeners, is_loopback, listening, url_of
from troyproxy.cli.log_mask import LogMask, secrets_in
from troyproxy.cli.server import METRICS, Server, SideServer, loop_factory, metrics_app, server_config
from troyproxy.errors import ConfigError, StoreUnavailable
from troyproxy.ports import Store
from troyproxy.settings.load import Configuration
from troyproxy.settings.secrets import ADMIN_TOKEN, SECRET_KEY, Generated, data_folder
from troyproxy.settings.values import Settings
from troyproxy.telemetry.logs import setup

LOGGER: Final = logging.getLogger("troyproxy")


def refuse_open_door(settings: Settings) -> None:
    """Raise ConfigError when everybody in a network could call without a key."""
    if not settings.auth and not is_loopback(settings.host):
        raise ConfigError(
            f"TROY_AUTH=off is for a loopback listener, and TROY_HOST is {settings.host}: "
            "listen on 127.0.0.1, or leave TROY_AUTH on"
        )


class Serving:
    """Serves what *load* returns, and loads again at SIGHUP. Raises ConfigError from `run`."""

    def __init__(self, load: Callable[[], Configuration], *, demo: bool) -> None:
        self._load, self._configuration, self._chosen = load, load(), demo
        self._settings = self._configuration.settings
        self._folder = data_folder(self._settings.database_url)
        self._mask = LogMask(secrets_in(self._settings))
        self._wiring = Wiring()
        self._announcer = Announcer(sys.stderr)
        self._demo_key: Generated | None = None

    def run(self) -> None:
        """Serve until a signal."""
        settings = self._settings
        refuse_open_door(settings)
        setup(settings.log, sys.stderr, sys.stderr.isatty(), mask=self._mask)
        with ExitStack() as stack:
            main = stack.enter_context(listening(settings.host, settings.port))
            side: Listeners = []
            if settings.metrics_port is not None:
                side = stack.enter_context(listening(settings.host, settings.metrics_port))
            runner = stack.enter_context(asyncio.Runner(loop_factory=loop_factory()))
            runner.run(self._serve(main, side))

    async def _serve(self, main: Listeners, side: Listeners) -> None:
        missing = [path for path in (self._folder / SECRET_KEY, self._folder / ADMIN_TOKEN) if not path.exists()]
        store = sql_store(self._settings, self._wiring.clock)
        if self._chosen or await nothing_configured(self._configuration, store):
            self._enter_demo()
        self._wiring.store = store
        gateway = create_app(self._configuration, load_again=self._load, wiring=self._wiring)
        self._mask.watch(lambda: gateway.snapshots.current)
        self._announcer.made(path for path in missing if path.exists())
        async with gateway:
            await self._run_servers(gateway, lambda: self._announce(gateway, store, main, side), main, side)

    def _enter_demo(self) -> None:
        self._wiring.demo = True
        if self._settings.auth:
            self._demo_key, key = demo_key(self._folder)
            self._wiring.keys = (key,)
            self._mask.add(self._demo_key.secret.reveal())

    async def _announce(self, gateway: Gateway, store: Store, main: Listeners, side: Listeners) -> None:
        host, announcer = self._settings.host, self._announcer
        if side:
            LOGGER.info("metrics are served at %s%s", url_of(host, side), METRICS)
        if self._wiring.demo:
            announcer.demo(url_of(host, main), self._demo_key, chosen=self._chosen)
            return
        announcer.ready(url_of(host, main))
        if self._settings.auth and not gateway.snapshots.current.keys and not await self._stored_keys(store):
            announcer.no_key()

    async def _stored_keys(self, store: Store) -> bool:
        """Whether the database has a key that opens something; assumed when it cannot be asked."""
        try:
            return any(key.valid(self._wiring.clock.now()) for key in await store.keys.list())
        except StoreUnavailable:
            return True

    async def _run_servers(
        self, gateway: Gateway, announce: Callable[[], Awaitable[None]], main: Listeners, side: Listeners
    ) -> None:
        server = Server(server_config(gateway, self._settings), announce, gateway.life.stop_soon)
        beside = SideServer(server_config(metrics_app(gateway), self._settings, lifespan=False))
        async with asyncio.TaskGroup() as tasks:
            if side:
                tasks.create_task(beside.serve(sockets=side))
            reloader = tasks.create_task(reload_at_hangup(gateway))
            await server.serve(sockets=main)
            beside.should_exit = True
            reloader.cancel()


async def reload_at_hangup(gateway: Gateway) -> None:
    """Read the configuration again at every SIGHUP, until cancelled. An invalid one changes nothing."""
    hangup = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, hangup.set)
    try:
        while True:
            await hangup.wait()
            hangup.clear()
            await _reload(gateway)
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


async def _reload(gateway: Gateway) -> None:
    try:
        await gateway.snapshots.reload()
    except (ConfigError, StoreUnavailable) as error:
        LOGGER.error("the configuration was not reloaded, the last good one stays: %s", error)  # noqa: TRY400 -- no trace
        return
    LOGGER.info("the configuration was reloaded")
    for warning in gateway.snapshots.current.warnings:
        LOGGER.warning("%s", warning)
