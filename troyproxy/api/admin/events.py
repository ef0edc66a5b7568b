"""``GET /api/events``: decisions and changes of state as they happen, as server-sent events.

Of the process that answers, which the first event names. A watcher that does not read loses events and is told; the
stream ends when the process stops.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import ExitStack
from typing import Final

from troyproxy.api.admin.operation import Operation
from troyproxy.api.admin.parameters import Parameter, whole
from troyproxy.api.admin.resource import AdminRequest
from troyproxy.api.admin.schemas import TEXT, one_of, some, titled
from troyproxy.api.flow import EVENTS, Flow
from troyproxy.api.services import Services
from troyproxy.errors import RateLimited
from troyproxy.ports import Clock
from troyproxy.telemetry.live import KINDS, LiveEvent, Watcher
from troyproxy.wire import json

TICK_S: Final = 0.5
"""How soon a stop, or a client that has left, is noticed."""
KEEPALIVE_S: Final = 15.0
KEEPALIVE: Final = b": keep-alive\n\n"
LONGEST_S: Final = 86_400
SECONDS: Final = whole(
    "seconds", "End after so many seconds; 0: after the first event. Without it there is no end.", 0, LONGEST_S
).optional()
EVENT: Final = titled(
    "LiveEvent",
    some({"event": one_of("hello", "lost", "end", *KINDS), "id": TEXT, "data": TEXT}, required=["event", "data"]),
)
"""One event of the stream; *data* is JSON."""
PROSE: Final = """Each event has a name, a number (`id`) and JSON (`data`) with `at`. `hello` comes first and names the
process; `lost` tells how many events a slow reader missed; `end` comes last when the process stops. Others: """


def _kinds(given: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(given.split(",")))
    if not all(kind in KINDS for kind in found):
        raise ValueError(f"must be one or several, with commas, of {', '.join(KINDS)}")
    return found


WANTED: Final = Parameter(
    "kinds", "Only these kinds of events, with commas between them.", _kinds, {"type": "string"}
).optional()


class Events:
    """The handler."""

    def __init__(self, services: Services) -> None:
        self._live, self._clock, self._stopping = services.live, services.clock, services.stopping
        self._hello = {"worker": {"name": services.worker, "pid": os.getpid()}}

    def operations(self) -> list[Operation]:
        """Return what can be watched."""
        told = "; ".join(f"`{kind}`: {said}" for kind, said in KINDS.items())
        return [
            Operation(
                "GET",
                "/api/events",
                self.watch,
                "state",
                "What happens in the process that answers, as server-sent events.",
                {200: EVENT},
                query=(WANTED, SECONDS),
                fails=(RateLimited,),
                description=f"{PROSE}{told}.",
                media=EVENTS,
            )
        ]

    async def watch(self, request: AdminRequest) -> Flow:
        """``GET /api/events?kinds=&seconds=``. Raises RateLimited when there are too many watchers."""
        wanted: Collection[str] | None = request.value(WANTED)
        held = ExitStack()
        watcher = held.enter_context(self._live.watch(wanted or KINDS))
        stream = Stream(watcher, self._clock, self._stopping, self._hello)
        return Flow(stream.parts(request.value(SECONDS)), held)


class Stream:
    """What one watcher is sent."""

    def __init__(
        self, watcher: Watcher, clock: Clock, stopping: Callable[[], bool], hello: Mapping[str, object]
    ) -> None:
        self._watcher, self._clock, self._stopping, self._hello = watcher, clock, stopping, hello

    async def parts(self, seconds: int | None) -> AsyncGenerator[bytes, None]:
        """Yield events as they come, and nothing now and then, until *seconds* are over or the process stops."""
        began = quiet_since = self._clock.monotonic()
        yield framed("hello", {"at": self._clock.now(), **self._hello})
        while not self._over(began, seconds):
            await self._watcher.news(TICK_S)
            part = b"".join(self._waiting())
            now = self._clock.monotonic()
            if not part and now - quiet_since >= KEEPALIVE_S:
                part = KEEPALIVE
            quiet_since = now if part else quiet_since
            yield part
        yield b"".join(self._waiting())
        if self._stopping():
            yield framed("end", {"at": self._clock.now(), "reason": "the process stops"})

    def _over(self, began: float, seconds: int | None) -> bool:
        return self._stopping() or (seconds is not None and self._clock.monotonic() - began >= seconds)

    def _waiting(self) -> list[bytes]:
        lost, events = self._watcher.take()
        notice = [framed("lost", {"at": self._clock.now(), "events": lost})] if lost else []
        return [*notice, *map(_event, events)]


def framed(name: str, facts: Mapping[str, object], number: int | None = None) -> bytes:
    """Return one server-sent event; its JSON holds no line break."""
    head = b"" if number is None else b"id: %d\n" % number
    return b"event: %b\n%bdata: %b\n\n" % (name.encode("ascii"), head, json.encode(facts))


def _event(event: LiveEvent) -> bytes:
    return framed(event.kind, {"at": event.at, **event.facts}, event.number)
