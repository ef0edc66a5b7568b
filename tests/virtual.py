"""An event loop whose time jumps to the next timer as soon as nothing else is to do: deadlines cost no time.

With `LoopClock` every reading of time in a test comes from that loop.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import Any

START = 1_000.0
PATIENCE_S = 5.0
"""Real seconds without timer, task or socket after which a test is stuck for good."""


class _Selector(selectors.DefaultSelector):
    """Never waits for a timer; passes the wait on as time gone by."""

    gone_by = 0.0
    threads = 0
    """Work that runs in threads: until it is done, no time may pass."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            events = super().select(PATIENCE_S)
            assert events, "nothing will ever happen again: the test waits for what nobody does"
            return events
        events = super().select(PATIENCE_S if self.threads and timeout else 0)
        if not events:
            self.gone_by += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """For ``anyio_backend``: ``("asyncio", {"loop_factory": VirtualLoop})``."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return START + self._virtual.gone_by

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]  # noqa: ANN401
        work: Any = super().run_in_executor(executor, func, *args)
        self._virtual.threads += 1
        work.add_done_callback(self._returned)
        return work

    def _returned(self, _: object) -> None:
        self._virtual.threads -= 1


class LoopClock:
    """The loop's time as a `Clock`; without a running loop it stands at its start."""

    EPOCH = 1_800_000_000.0

    def now(self) -> float:
        return self.EPOCH + self.monotonic()

    def monotonic(self) -> float:
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return START

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
