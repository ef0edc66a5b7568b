"""What happens, as it happens, for those who watch: decisions and changes of state as small named events.

Nobody waits here. Each watcher has a bounded queue of its own; one that does not keep up loses the oldest events and is
told how many. Without a watcher nothing is made at all. Events are those of this process; there is no replay.

No prompt, no answer and no key is in them, and text that came from outside is masked once more.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Final

from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import RateLimited
from troyproxy.ports import AutoPlan, Clock, Failover
from troyproxy.telemetry.access import facts as access_facts
from troyproxy.telemetry.clean import masked
from troyproxy.telemetry.silent import Sleeper

KINDS: Final[Mapping[str, str]] = {
    "request": "a request has ended; the facts of the access log",
    "attempt": "an attempt at an upstream has ended",
    "failover": "a walk went from one provider to another",
    "skip": "a member was passed over",
    "adapted": "a parameter was changed for a provider",
    "leak": "a tool call leaked into text",
    "auto": "the auto engine made a plan",
    "exclusion": "the auto engine leaves a candidate out",
    "circuit": "a circuit changed its state",
    "cooldown": "an account, or a model of it, is left alone for a while",
    "cleared": "locks were lifted",
    "config": "a configuration came into force",
}
"""Every kind of event, and what it says."""
QUEUED: Final = 1000
"""Events that wait for one watcher."""
WATCHERS: Final = 32
LONGEST: Final = 500
"""Characters of one text."""


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """One event. *number* grows by one from event to event of this process."""

    number: int
    kind: str
    at: float
    facts: Mapping[str, object]


class Watcher:
    """One who watches, and what waits for it."""

    def __init__(self, kinds: Collection[str], bound: int) -> None:
        self._kinds, self._bound = frozenset(kinds), bound
        self._waiting: deque[LiveEvent] = deque()
        self._lost = 0
        self._news = asyncio.Event()

    def put(self, event: LiveEvent) -> None:
        """Queue *event* if it is wanted; at the bound the oldest one is lost."""
        if event.kind not in self._kinds:
            return
        if len(self._waiting) >= self._bound:
            self._waiting.popleft()
            self._lost += 1
        self._waiting.append(event)
        self._news.set()

    async def news(self, within_s: float) -> None:
        """Return when there is something to take, or after *within_s* seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._news.wait()

    def take(self) -> tuple[int, list[LiveEvent]]:
        """Return how many were lost since the last call, all of them older than what is returned with it."""
        lost, events = self._lost, list(self._waiting)
        self._lost = 0
        self._waiting.clear()
        self._news.clear()
        return lost, events


class Live(Sleeper):
    """Hears what happens and passes it on to the watchers; sleeps without any. Never waits, never raises."""

    def __init__(self, clock: Clock, *, queued: int = QUEUED, watchers: int = WATCHERS) -> None:
        super().__init__()
        self._clock, self._queued, self._most = clock, queued, watchers
        self._numbers = itertools.count(1)
        self._watchers: list[Watcher] = []

    def __len__(self) -> int:
        return len(self._watchers)

    @contextmanager
    def watch(self, kinds: Collection[str] = tuple(KINDS)) -> Iterator[Watcher]:
        """Watch for a while. Raises RateLimited when there are too many watchers."""
        if len(self._watchers) >= self._most:
            raise RateLimited(f"{self._most} watchers are connected already", retry_after_s=5.0)
        watcher = Watcher(kinds, self._queued)
        self._watchers.append(watcher)
        self.turn(asleep=False)
        try:
            yield watcher
        finally:
            self._watchers.remove(watcher)
            self.turn(asleep=not self._watchers)

    def tell(self, kind: str, facts: Mapping[str, object]) -> None:
        """Tell every watcher; what is None is left out."""
        if not self._watchers:
            return
        known = {name: _shown(value) for name, value in facts.items() if value is not None}
        event = LiveEvent(next(self._numbers), kind, self._clock.now(), known)
        for watcher in self._watchers:
            watcher.put(event)

    # --- what an observer hears ---

    def request_finished(self, row: UsageRow) -> None:
        """A request ended."""
        if self._watchers:
            self.tell("request", access_facts(row))

    def attempt_finished(self, attempt: AttemptRecord) -> None:
        """An upstream attempt ended."""
        if self._watchers:
            self.tell("attempt", _attempt(attempt))

    def failed_over(self, failover: Failover) -> None:
        """The walk went from one provider to another."""
        if self._watchers:
            facts = asdict(failover)
            self.tell("failover", {"class": facts.pop("error_class"), **facts})

    def skipped(self, provider: str, reason: str) -> None:
        """A member was passed over."""
        if self._watchers:
            self.tell("skip", {"provider": provider, "reason": reason})

    def circuit_changed(self, provider: str, model: str, before: str, after: str) -> None:
        """A circuit changed its state."""
        if self._watchers:
            self.tell("circuit", {"provider": provider, "model": model, "from": before, "to": after})

    def leaked(self, provider: str, model: str, leak_format: str, action: str) -> None:
        """A tool call leaked into text."""
        if self._watchers:
            self.tell("leak", {"provider": provider, "model": model, "format": leak_format, "action": action})

    def adapted(self, provider: str, param: str, action: str) -> None:
        """A parameter was changed for a provider."""
        if self._watchers:
            self.tell("adapted", {"provider": provider, "param": param, "action": action})

    def auto_planned(self, plan: AutoPlan) -> None:
        """The auto engine made a plan."""
        if self._watchers:
            self.tell("auto", asdict(plan))

    def auto_excluded(self, provider: str, model: str, reason: str) -> None:
        """The auto engine leaves a candidate out for a while."""
        if self._watchers:
            self.tell("exclusion", {"provider": provider, "model": model, "reason": reason})

    # --- what others tell ---

    def configured(self, before: Snapshot, after: Snapshot) -> None:
        """A configuration came into force."""
        del before
        self.tell("config", {"revision": after.revision, "warnings": len(after.warnings)})


def _attempt(attempt: AttemptRecord) -> dict[str, object]:
    return {
        "provider": attempt.provider,
        "model": attempt.model,
        "account": attempt.account,
        "outcome": attempt.outcome,
        "status": attempt.status,
        "reason": attempt.reason or None,
        "duration_ms": round(attempt.duration_ms, 1),
        "wait_s": attempt.hint_s,
    }


def _shown(value: object) -> object:
    return masked(value, limit=LONGEST) if isinstance(value, str) else value
