"""Who hears of what happens: usage rows, attempts, failovers, leaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from troyproxy.accounting.records import AttemptRecord, UsageRow


class UsageSink(Protocol):
    """Takes usage rows; never waits, never raises."""

    def record(self, row: UsageRow) -> None: ...


@dataclass(frozen=True, slots=True)
class Failover:
    """The walk left one provider for another."""

    combo: str | None
    from_provider: str
    to_provider: str
    error_class: str


@dataclass(frozen=True, slots=True)
class AutoPlan:
    """What the auto engine planned: who leads and with which score, and why. *name* is the auto id or the combo."""

    name: str
    provider: str
    model: str
    score: float
    explored: bool = False
    known: bool = False
    incident: bool = False


class Observer(Protocol):
    """Hears what happens, from the walk and the endpoint. Must not raise and must not wait."""

    def request_started(self) -> None: ...

    def request_finished(self, row: UsageRow) -> None: ...

    def attempt_finished(self, attempt: AttemptRecord) -> None: ...

    def failed_over(self, failover: Failover) -> None: ...

    def skipped(self, provider: str, reason: str) -> None: ...

    def circuit_changed(self, provider: str, model: str, before: str, after: str) -> None: ...

    def inflight_changed(self, provider: str, account: str, count: int) -> None: ...

    def leaked(self, provider: str, model: str, leak_format: str, action: str) -> None: ...

    def adapted(self, provider: str, param: str, action: str) -> None: ...

    def auto_planned(self, plan: AutoPlan) -> None: ...

    def auto_excluded(self, provider: str, model: str, reason: str) -> None:
        """The auto engine leaves a candidate out for a while: for its `score`, its `failures`, or a bad `probe`."""

    def events_seen(self, provider: str, model: str, gaps_s: Sequence[float]) -> None:
        """Gaps between the events of one finished stream, in seconds (bounded sample)."""

    def trace(self, request_id: str, lines: Sequence[str]) -> None:
        """The play-by-play of one finished request; called only when tracing is on."""
