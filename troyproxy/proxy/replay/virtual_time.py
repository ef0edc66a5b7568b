"""An event loop whose time jumps to the next timer as soon as nothing else is to do, and the clock that reads it.

For simulations: an hour of traffic passes in the time that its decisions take. Nothing may be awaited in it but timers
and tasks of the same loop: no socket, no thread.
"""

from __future__ import annotations

import asyncio
import selectors


class _Selector(selectors.DefaultSelector):
    """Looks at no file: a wait is time gone by."""

    def __init__(self) -> None:
        super().__init__()
        self.gone_by = 0.0
        self.settled: list[asyncio.Future[None]] = []

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Let *timeout* seconds pass, unless somebody waits for this very moment."""
        if timeout is not None and timeout <= 0:
            return []
        waiting, self.settled = self.settled, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
        if not waiting:
            if timeout is None:
                raise RuntimeError("nothing will ever happen in this simulation")
            self.gone_by += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its time is seconds since its start."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return the seconds that have gone by."""
        return self._virtual.gone_by

    async def settle(self) -> None:
        """Return when nothing more can happen at this moment, and no time has passed."""
        future = self.create_future()
        self._virtual.settled.append(future)
        await future


class VirtualClock:
    """`ports.Clock` of a running `VirtualLoop` that began at *start* (unix seconds)."""

    def __init__(self, start: float) -> None:
        self._start = start

    def now(self) -> float:
        """Return unix seconds."""
        return self._start + self.monotonic()

    def monotonic(self) -> float:
        """Return the loop's seconds; 0 before it runs."""
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return 0.0

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)
