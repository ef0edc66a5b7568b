"""One process that serves: sockets, gateway, signals, in the order in which they may fail."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Final, cast

from troyproxy.api.gateway import Gateway
from troyproxy.app import create_app
from troyproxy.cli.exchange import Serve
from troyproxy.cli.listening import Listeners, listening
from troyproxy.cli.server import Server, SideServer, loop_factory, metrics_app, server_config
from troyproxy.cli.start import Start
from troyproxy.errors import ConfigError, StoreUnavailable
from troyproxy.settings.values import Settings
from troyproxy.store.store import SqlStore

LOGGER: Final = logging.getLogger("troyproxy")
LATER_MS: Final = 1000
"""The walk drops a client that does not read, and puts it on record; a little later the system does so for good."""


def listeners(stack: ExitStack, settings: Settings) -> tuple[Listeners, Listeners]:
    """Bind the sockets of the gateway and of the metrics' own port, closed with *stack*. Raises ConfigError."""
    if settings.metrics_port and settings.metrics_port == settings.port:
        # Two sockets may be bound to one port; the second one fails only when it begins to listen.
        said = f"{settings.port} is the port of the gateway, which has /metrics anyway; choose another"
        raise ConfigError(f"TROY_METRICS_PORT: {said}")
    deaf_ms = settings.write_stall_ms + LATER_MS
    main = stack.enter_context(listening(settings.host, settings.port, deaf_ms=deaf_ms))
    if settings.metrics_port is None:
        return main, []
    return main, stack.enter_context(listening(settings.host, settings.metrics_port))


class Serving:
    """Serves in this process alone, and loads again at SIGHUP. Raises ConfigError from `run`."""

    def __init__(self, start: Start) -> None:
        self._start = start

    def run(self) -> None:
        """Serve until a signal."""
        self._start.begin_log()
        with ExitStack() as stack:
            main, side = listeners(stack, self._start.settings)
            runner = stack.enter_context(asyncio.Runner(loop_factory=loop_factory()))
            runner.run(self._serve(main, side))

    async def _serve(self, main: Listeners, side: Listeners) -> None:
        start = self._start
        with start.new_secrets_told():
            store = start.store()
            await start.decide_on_demo(store)
            gateway = gateway_of(start, store)

        async def announce() -> None:
            start.listens(main, side)
            if not await start.somebody_can_call(gateway.snapshots.current.keys, store):
                start.nobody_can_call()

        async with gateway:
            await run_servers(gateway, start.settings, announce, main, side)


def gateway_of(start: Start, store: SqlStore) -> Gateway:
    """Return the gateway, not started; the log masks what it knows of secrets. Raises ConfigError."""
    start.wiring.store = store
    gateway = create_app(start.configuration, load_again=start.load, wiring=start.wiring)
    start.mask.watch(lambda: gateway.snapshots.current)
    return gateway


async def run_servers(
    gateway: Gateway, settings: Settings, on_start: Callable[[], Awaitable[None]], main: Listeners, side: Listeners
) -> None:
    """Serve *gateway*, which is started, at *main*, and its metrics at *side*, until a signal."""
    config = server_config(gateway, settings)
    config.stopping = lambda: gateway.life.stopping
    config.requests = None if settings.root_path else cast("Serve", gateway.table.serve)
    server = Server(config, on_start, gateway.life.stop_soon, drain_s=settings.drain_s)
    beside = SideServer(server_config(metrics_app(gateway), settings, lifespan=False))
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
