"""An observer that hears everything and does nothing; the others override what they care about."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.ports import AutoPlan, Failover


class Silent:
    """The base of every observer here: `ports.Observer` with nothing in it."""

    def request_started(self) -> None:
        """A request came in."""

    def request_finished(self, row: UsageRow) -> None:
        """A request ended, whatever became of it."""

    def attempt_finished(self, attempt: AttemptRecord) -> None:
        """An upstream attempt ended."""

    def failed_over(self, failover: Failover) -> None:
        """The walk went from one provider to another."""

    def skipped(self, provider: str, reason: str) -> None:
        """A member was passed over."""

    def circuit_changed(self, provider: str, model: str, before: str, after: str) -> None:
        """A circuit changed its state."""

    def inflight_changed(self, provider: str, account: str, count: int) -> None:
        """An account carries *count* requests now."""

    def leaked(self, provider: str, model: str, leak_format: str, action: str) -> None:
        """A tool call leaked into text."""

    def adapted(self, provider: str, param: str, action: str) -> None:
        """A parameter was changed for a provider."""

    def auto_planned(self, plan: AutoPlan) -> None:
        """The auto engine made a plan."""

    def auto_excluded(self, provider: str, model: str, reason: str) -> None:
        """The auto engine leaves a candidate out for a while."""

    def events_seen(self, provider: str, model: str, gaps_s: Sequence[float]) -> None:
        """A stream ended; *gaps_s* is a sample of the seconds between its events."""

    def trace(self, request_id: str, lines: Sequence[str]) -> None:
        """The play-by-play of a finished request."""


class Sleeper(Silent):
    """An observer that has nothing to do for most of the time: while it sleeps, `Fanout` leaves it out."""

    def __init__(self) -> None:
        self.asleep = True
        self._told: list[Callable[[], object]] = []

    def on_turn(self, told: Callable[[], object]) -> None:
        """Call *told* whenever it falls asleep or wakes."""
        self._told.append(told)

    def turn(self, *, asleep: bool) -> None:
        """Be *asleep*, or awake, from now on."""
        if asleep is not self.asleep:
            self.asleep = asleep
            for told in self._told:
                told()
