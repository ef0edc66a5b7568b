"""Keeps this instance's locks and open circuits and those of all others equal, over a `ports.StateMirror`.

    own event ──► applied here ──► pushed, a moment later (`applied`, `_send`)
    others' news, and a full read every 2 s ──► merged into what is here (`_hear`)
    a new revision of the control row ──► told; heard of ──► the row is looked at, which alone is the truth (`_look`)

The state in this process always comes first and is all that requests see: none of them waits for the mirror. While the
mirror cannot be used, the state here decides, and what cannot be read lifts nothing. When it is back, all of the state
here is pushed. What is shared and how it merges is in ``resilience/shared.py``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import StoreUnavailable
from troyproxy.ports import Clock, News, StateMirror
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.snapshots import SnapshotKeeper
from troyproxy.resilience.events import CircuitClosed, CircuitOpened, Cleared, Event, Failed
from troyproxy.resilience.shared import is_lifted, shared_of, takes

LOGGER: Final = logging.getLogger("troyproxy.shared")
CLEARINGS: Final = 1024
"""Clearings that are remembered, one for each thing cleared; the oldest go first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How the mirror is used; all in seconds."""

    linger_s: float = 0.05
    """Between two pushes: a storm of failures becomes a few writes."""
    read_s: float = 2.0
    retry_s: float = 0.1
    """First wait after a failure; doubled up to *retry_max_s*."""
    retry_max_s: float = 2.0
    join_s: float = 2.0
    """How long a start may wait for the others' state."""
    looks_s: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2)
    """Waits before each look at the control row: who told of a revision may be a moment ahead of its commit."""


class _Clearings:
    """The latest clearing of each thing that was cleared."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str | None, str | None, str | None], Cleared] = {}

    def __iter__(self) -> Iterator[Cleared]:
        return iter(self._latest.values())

    def add(self, event: Cleared) -> bool:
        """Remember *event*; False when it is known, or older than one that lifts the same."""
        what = (event.provider, event.account, event.model)
        known = self._latest.pop(what, None)
        latest = event if known is None or known.at < event.at else known
        self._latest[what] = latest
        if len(self._latest) > CLEARINGS:
            del self._latest[next(iter(self._latest))]
        return latest is event

    def drop(self, before: float) -> None:
        """Forget what was cleared before a moment: nothing that it could lift is left."""
        self._latest = {what: event for what, event in self._latest.items() if event.at > before}


class Mirroring:
    """Owns the mirror from `join` to `leave`; `follow` is its background work."""

    def __init__(
        self,
        mirror: StateMirror,
        *,
        health: HealthKeeper,
        snapshots: SnapshotKeeper,
        clock: Clock,
        keep_s: float,
        pace: Pace | None = None,
    ) -> None:
        self._mirror, self._health, self._snapshots, self._clock = mirror, health, snapshots, clock
        self._keep_s, self._pace = keep_s, pace or Pace()
        self._public, self._private = _Clearings(), _Clearings()
        self._closed: list[Event] = []
        self._revision: int | None = None
        self._heard = -1
        self._changed, self._told = asyncio.Event(), asyncio.Event()
        self.up = False
        """Whether the mirror can be used now."""
        self.failures = 0
        """How often it could not, since the start of the process."""
        health.tell(self.applied)
        snapshots.tell(self.moved)

    def applied(self, event: Event, *, private: bool) -> None:
        """Take note of an event of our own. *private*: others do the same for themselves."""
        match event:
            case Cleared():
                (self._private if private else self._public).add(event)
            case CircuitClosed() if not private and len(self._closed) < CLEARINGS:
                self._closed.append(event)
            case CircuitOpened():
                pass
            case Failed() if event.cooldown_s is not None:
                pass
            case _:
                return
        self._changed.set()

    def moved(self, before: Snapshot, after: Snapshot) -> None:
        """Tell the others of a revision that they may not have seen yet."""
        if before.loaded_at and after.revision > max(before.revision, self._heard):
            self._heard = self._revision = after.revision
            self._changed.set()

    async def join(self) -> None:
        """Take over what the others know, before the first request. A mirror that cannot be used stops no start."""
        self._changed, self._told = asyncio.Event(), asyncio.Event()  # a host may start us again on another loop
        try:
            async with asyncio.timeout(self._pace.join_s):
                await self._begin()
        except (StoreUnavailable, TimeoutError) as exc:
            self._went_down(exc)

    async def follow(self) -> None:
        """Mirror until cancelled; after a failure begin again."""
        wait_s = self._pace.retry_s
        while True:
            try:
                if not self.up:
                    await self._begin()
                wait_s = self._pace.retry_s
                async with asyncio.TaskGroup() as session:
                    for work in (self._send, self._reread, self._look):
                        session.create_task(work())
                    await self._listen()  # in the body: a group that only waits miscounts cancellations (before 3.13)
            except* StoreUnavailable as failed:
                self._went_down(failed.exceptions[0])
            # A group whose member failed while it was being cancelled reports the failure only.
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError
            await self._clock.sleep(wait_s)
            wait_s = min(2 * wait_s, self._pace.retry_max_s)

    async def leave(self) -> None:
        """Push what is new, and disconnect."""
        try:
            if self.up and self._changed.is_set():
                await self._push()
        except StoreUnavailable as exc:
            self._went_down(exc)
        finally:
            self.up = False
            await self._mirror.close()

    async def _begin(self) -> None:
        """Listen, read, push everything: in this order nothing is missed."""
        await self._mirror.open()
        self._hear(await self._mirror.read(self._clock.now()))
        await self._push()
        if self.failures:
            LOGGER.warning("the shared state is back")
        self.up = True

    def _went_down(self, exc: BaseException) -> None:
        if self.up or not self.failures:  # once for each outage, not for each attempt
            LOGGER.warning(
                "%s; the state of this instance decides alone", str(exc) or "the shared state does not answer"
            )
        self.up = False
        self.failures += 1

    async def _listen(self) -> None:
        while True:
            news: News = await self._mirror.listen()
            self._hear(news.events)
            if news.revision is not None and news.revision > self._heard:
                self._heard = news.revision
                self._told.set()

    async def _send(self) -> None:
        while True:
            await self._changed.wait()
            await self._push()
            await self._clock.sleep(self._pace.linger_s)

    async def _reread(self) -> None:
        """Read everything now and then: what a lost message said is still there, and what is lost there is written."""
        while True:
            await self._clock.sleep(self._pace.read_s)
            self._hear(await self._mirror.read(self._clock.now()))
            await self._push()

    async def _look(self) -> None:
        while True:
            await self._told.wait()
            self._told.clear()
            for wait_s in self._pace.looks_s:
                await self._clock.sleep(wait_s)
                seen = await self._snapshots.look()
                if seen is None or seen >= self._heard:
                    break

    async def _push(self) -> None:
        self._changed.clear()
        now = self._clock.now()
        news, self._closed, self._revision = News(tuple(self._closed), self._revision), [], None
        self._public.drop(now - self._keep_s)
        self._private.drop(now - self._keep_s)
        kept = [*shared_of(self._health.state, now), *self._public]
        await self._mirror.push(kept, now=now, news=news)

    def _hear(self, events: Iterable[Event]) -> None:
        """Merge *events*; clearings first, so that nothing is set that one of them lifts."""
        now = self._clock.now()
        for event in sorted(events, key=lambda each: not isinstance(each, Cleared)):
            if not takes(self._health.state, event, now) or self._lifted(event):
                continue
            if isinstance(event, Cleared) and not self._public.add(event):
                continue
            self._health.hear(event)

    def _lifted(self, event: Event) -> bool:
        return is_lifted(event, self._public) or is_lifted(event, self._private)
