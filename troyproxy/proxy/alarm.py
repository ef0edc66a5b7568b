"""The clocks of all requests: `asyncio.timeout`, over and over, with at most one timer of the event loop pending.

A request is timed at almost every await, and almost never does a time run out. So nobody has a timer of its own: the
`Bell` has one, for the earliest time that anybody has set, and looks who is due when it fires; most were put off or
are over by then. What a timeout means is as the standard library has it: the task is cancelled where it waits, and
that cancellation leaves the guard as TimeoutError, unless somebody else cancelled the task as well.
"""

from __future__ import annotations

import asyncio
import math
from types import TracebackType
from typing import Final, Self

OFF: Final = math.inf
SOON: Final = -math.inf


class Bell:
    """The one timer of an event loop that rings the alarms which are due."""

    __slots__ = ("_timer", "alarms", "at", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.alarms: set[Alarm] = set()
        """Those that are not closed."""
        self._timer: asyncio.Handle | None = None
        self.at = OFF
        """When it fires; `SOON` = as soon as the loop can."""

    def schedule(self, at: float) -> None:
        """Fire *at*, not when it was to be."""
        if self._timer is not None:
            self._timer.cancel()
        if at > self.loop.time():
            self._timer, self.at = self.loop.call_at(at, self._fire), at
        else:
            self._timer, self.at = self.loop.call_soon(self._fire), SOON

    def _fire(self) -> None:
        fired_at = self.loop.time() if self.at == SOON else self.at
        self._timer, self.at, soonest = None, OFF, OFF
        for alarm in tuple(self.alarms):
            if alarm.at <= fired_at:
                alarm.ring()
            elif alarm.at < soonest:
                soonest = alarm.at
        if soonest != OFF:
            self.schedule(soonest)


class Alarm:
    """Times what the task that made it awaits. One thing at a time: guards do not nest.

    ``with alarm.until(at): await …`` raises TimeoutError out of the block once the loop's time is *at*.
    """

    __slots__ = ("_cancelling", "_rang", "at", "bell", "task", "time")

    def __init__(self, bell: Bell | None = None) -> None:
        self.bell = bell or Bell()
        self.time = self.bell.loop.time
        task = asyncio.current_task(self.bell.loop)
        if task is None:  # pragma: no cover -- an ASGI app always runs in a task
            raise RuntimeError("no task to time")
        self.task, self._cancelling = task, 0
        self._rang = False
        self.at = OFF
        """When the time is up. Inside a guard, a later time may be written here, or `OFF`; any other takes `set`."""
        self.bell.alarms.add(self)

    def until(self, at: float) -> Self:
        """Guard a ``with`` block: its time is up *at*, on the loop's clock; `OFF` = never."""
        self._cancelling, self.at = self.task.cancelling(), at
        if at < self.bell.at:
            self.bell.schedule(at)
        return self

    def set(self, at: float) -> None:
        """Change the time of the guard that was entered."""
        self.at = at
        if at < self.bell.at:
            self.bell.schedule(at)

    def close(self) -> None:
        """The request is over: nothing of it stays behind in the loop."""
        self.bell.alarms.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, _: TracebackType | None) -> None:
        self.at = OFF
        if self._rang:
            self._rang = False
            if self.task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
                raise TimeoutError from exc

    def ring(self) -> None:
        """The time is up."""
        self.at = OFF
        if not self._rang:
            self._rang = True
            self.task.cancel()
