"""``serve --workers N``: binds the sockets, prepares what the workers share, and keeps them alive.

It is our own because a worker must be told three things that no general one tells: its name, the same after each
restart; that SIGHUP reloads it; and that it counts with the others. It serves no request itself, but for ``/metrics``
on a port of its own.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from troyproxy.api.metrics import MetricsPage
from troyproxy.api.outermost import guarded
from troyproxy.api.routing_table import Route, RoutingTable
from troyproxy.api.wrong_tokens import WrongTokens
from troyproxy.app import LOOPBACK
from troyproxy.cli.crew import Crew
from troyproxy.cli.hiring import Hiring
from troyproxy.cli.listening import Listeners
from troyproxy.cli.metrics_folder import metrics_folder
from troyproxy.cli.seat import Seat
from troyproxy.cli.server import METRICS, SideServer, server_config
from troyproxy.cli.serving import listeners
from troyproxy.cli.start import Start
from troyproxy.errors import ConfigError
from troyproxy.settings.assemble import assemble
from troyproxy.settings.secrets import admin_token
from troyproxy.telemetry.workers import mark_dead, render_all

LOGGER: Final = logging.getLogger("troyproxy")
APART: Final = ", each with cooldowns and circuits of its own (TROY_REDIS_URL makes them share)"
QUEUES_S: Final = 15.0
"""How long a worker may take beyond ``TROY_SHUTDOWN_S``, to write its queues."""


class Supervisor:
    """Serves through *count* workers. *config* and *options* are what they read the configuration with, as we did."""

    def __init__(self, start: Start, count: int, config: Path | None, options: Mapping[str, object]) -> None:
        self._start, self._count = start, count
        self._config, self._options = None if config is None else str(config), options
        self._can_call = True

    def run(self) -> None:
        """Serve until a signal. Raises ConfigError."""
        self._start.begin_log()
        with ExitStack() as stack:
            main, side = listeners(stack, self._start.settings)
            runner = stack.enter_context(asyncio.Runner())
            runner.run(self._supervise(main, side))

    async def _supervise(self, main: Listeners, side: Listeners) -> None:
        start = self._start
        with start.new_secrets_told():
            await self._prepare()
        with metrics_folder(start.folder) as (folder, lock):
            seat = self._seat(main, folder)
            crew = Crew(
                self._count,
                Hiring(seat, lock),
                grace_s=start.settings.drain_s + start.settings.shutdown_s + QUEUES_S,
                buried=lambda name: mark_dead(folder, name),
            )
            async with signals_to(crew), self._metrics(folder, side), closing_at_stop(crew, main):
                await crew.run(lambda: self._announce(main, side))
        if crew.failure is not None:
            raise ConfigError(crew.failure)

    async def _prepare(self) -> None:
        """Do once what every worker would do: make the secrets, migrate a SQLite file, decide on the demo."""
        start = self._start
        admin_token(start.settings)
        store = start.store()
        await start.decide_on_demo(store)
        try:
            await store.start()
            keys = assemble(start.configuration, now=start.wiring.clock.now()).keys
            self._can_call = await start.somebody_can_call(keys, store)
        finally:
            await store.stop()

    def _seat(self, main: Listeners, folder: Path) -> Seat:
        return Seat(
            number=0,
            channel=-1,
            sockets=tuple(listener.fileno() for listener in main),
            metrics=str(folder),
            demo=self._start.wiring.demo,
            config=self._config,
            options=self._options,
        )

    def _announce(self, main: Listeners, side: Listeners) -> None:
        self._start.listens(main, side)
        shared = self._start.settings.redis_url is not None
        LOGGER.info("%d workers serve%s", self._count, " and share cooldowns and circuits" if shared else APART)
        if not self._can_call:
            self._start.nobody_can_call()

    @asynccontextmanager
    async def _metrics(self, folder: Path, side: Listeners) -> AsyncIterator[None]:
        """Serve what all workers count at *side*, if there is such a port."""
        settings = self._start.settings
        tokens = [token for token in (settings.metrics_token, admin_token(settings)) if token is not None]
        page = MetricsPage(
            lambda accept: render_all(folder, accept),
            tokens,
            open_here=settings.host in LOOPBACK,
            wrong=WrongTokens(self._start.wiring.clock),
        )
        app = RoutingTable([Route("GET", METRICS, guarded(page))])
        server = SideServer(server_config(app, settings, lifespan=False))
        async with asyncio.TaskGroup() as tasks:
            if side:
                tasks.create_task(server.serve(sockets=side))
            yield
            server.should_exit = True


@asynccontextmanager
async def signals_to(crew: Crew) -> AsyncIterator[None]:
    """Hand signals to *crew* meanwhile."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, crew.reload)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, crew.stop, number)
    yield
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        loop.remove_signal_handler(number)


@asynccontextmanager
async def closing_at_stop(crew: Crew, sockets: Listeners) -> AsyncIterator[None]:
    """Close our copies of *sockets* when *crew* stops: a connection that no worker would take must be refused."""

    async def close() -> None:
        await crew.stopping.wait()
        for listener in sockets:
            listener.close()

    async with asyncio.TaskGroup() as tasks:
        closer = tasks.create_task(close())
        yield
        closer.cancel()
