"""Keeps a number of workers alive until it is told to stop. What a worker is, it does not know.

every worker must serve once     else the start has failed, and with it all of them
a worker that ends after that    is started again: at once, then after 1, 2, 4 … 30 s while it keeps ending young
one that cannot start again      is tried again, as long as another serves
SIGHUP                           to all that serve; to the others as soon as they do
SIGTERM, SIGINT                  SIGTERM to all; a second SIGINT is passed on as such and ends them at once
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Protocol

from troyproxy.cli.seat import name_of

STEADY_S: Final = 60.0
"""A worker that lived so long is started again as if it was the first time."""
LONGEST_PAUSE_S: Final = 30.0
LOGGER: Final = logging.getLogger("troyproxy")


class Worker(Protocol):
    """A worker as the crew needs it (`hiring.WorkerProcess`)."""

    name: str
    serving: bool
    refusal: str | None

    async def ready(self) -> bool: ...

    async def ended(self) -> int: ...

    def send(self, number: signal.Signals) -> None: ...


Hire = Callable[[int], Awaitable[Worker]]
"""Starts the worker of a number. Raises OSError."""


def pause_s(deaths: int) -> float:
    """Return how long to wait before a worker starts again after so many short lives in a row."""
    return 0.0 if deaths <= 1 else min(LONGEST_PAUSE_S, 2.0 ** (deaths - 2))


class Crew:
    """*count* workers. *grace_s*: how long they may take to stop. *buried* hears the name of each that has ended."""

    def __init__(self, count: int, hire: Hire, *, grace_s: float, buried: Callable[[str], None]) -> None:
        self._numbers, self._hire, self._grace_s, self._buried = range(1, count + 1), hire, grace_s, buried
        self._workers: dict[int, Worker] = {}
        self._owed: set[int] = set()
        self._complete, self._stopping = asyncio.Event(), asyncio.Event()
        self.failure: str | None = None
        """Why the crew has given up."""

    async def run(self, on_complete: Callable[[], None]) -> None:
        """Work until `stop`, or until `failure` says why not. *on_complete* is called once, when all serve."""
        async with asyncio.TaskGroup() as tasks:
            seats = [tasks.create_task(self._keep(number)) for number in self._numbers]
            watches = [tasks.create_task(self._announce(on_complete)), tasks.create_task(self._hurry())]
            await asyncio.wait(seats)
            for watch in watches:
                watch.cancel()

    def reload(self) -> None:
        """Make every worker read the configuration again."""
        for number in self._numbers:
            worker = self._workers.get(number)
            if worker is not None and worker.serving:
                worker.send(signal.SIGHUP)
            else:
                self._owed.add(number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop every worker in an orderly way; at a second SIGINT at once."""
        again = self._stopping.is_set() and number == signal.SIGINT
        self._stopping.set()
        for worker in self._workers.values():
            worker.send(signal.SIGINT if again else signal.SIGTERM)

    @property
    def stopping(self) -> asyncio.Event:
        """Set once the crew stops."""
        return self._stopping

    async def _announce(self, on_complete: Callable[[], None]) -> None:
        await self._complete.wait()
        on_complete()

    async def _hurry(self) -> None:
        """End what has not stopped in time."""
        await self._stopping.wait()
        await asyncio.sleep(self._grace_s)
        for worker in self._workers.values():
            LOGGER.error("%s did not stop within %g s and is killed", worker.name, self._grace_s)
            worker.send(signal.SIGKILL)

    async def _keep(self, number: int) -> None:
        loop, deaths = asyncio.get_running_loop(), 0
        while not self._stopping.is_set():
            began = loop.time()
            await self._life(number)
            deaths = deaths + 1 if loop.time() < began + STEADY_S else 0
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s(deaths)):
                    await self._stopping.wait()

    async def _life(self, number: int) -> None:
        """Start a worker and see it to its end."""
        try:
            worker = await self._hire(number)
        except OSError as error:
            self._judge(f"{name_of(number)} cannot be started: {error.strerror}", served=False)
            return
        self._workers[number] = worker
        if self._stopping.is_set():
            worker.send(signal.SIGTERM)
        served = await worker.ready()
        if served:
            self._welcome(number, worker)
        status = await worker.ended()
        del self._workers[number]
        self._buried(worker.name)
        if not self._stopping.is_set():
            self._judge(worker.refusal or f"{worker.name} has ended {_how(status)}", served=served)

    def _welcome(self, number: int, worker: Worker) -> None:
        if number in self._owed:
            self._owed.discard(number)
            worker.send(signal.SIGHUP)
        if self._serving() == len(self._numbers):
            self._complete.set()

    def _serving(self) -> int:
        return sum(worker.serving for worker in self._workers.values())

    def _judge(self, what: str, *, served: bool) -> None:
        """Go on after the end of a worker, or give up: nobody would serve, or the start was not all it should be."""
        if served or (self._complete.is_set() and self._serving()):
            LOGGER.warning("%s; it is started again", what)
            return
        self.failure = self.failure or what
        self.stop()


def _how(status: int) -> str:
    return f"with status {status}" if status >= 0 else f"by {signal.Signals(-status).name}"
