"""One observer in front of several. It adds nothing and catches nothing: observers do not raise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.ports import AutoPlan, Failover, Observer


class Fanout:
    """Passes everything on, in the order of *observers*."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._observers = tuple(observers)

    def request_started(self) -> None:
        for each in self._observers:
            each.request_started()

    def request_finished(self, row: UsageRow) -> None:
        for each in self._observers:
            each.request_finished(row)

    def attempt_finished(self, attempt: AttemptRecord) -> None:
        for each in self._observers:
            each.attempt_finished(attempt)

    def failed_over(self, failover: Failover) -> None:
        for each in self._observers:
            each.failed_over(failover)

    def skipped(self, provider: str, reason: str) -> None:
        for each in self._observers:
            each.skipped(provider, reason)

    def circuit_changed(self, provider: str, model: str, before: str, after: str) -> None:
        for each in self._observers:
            each.circuit_changed(provider, model, before, after)

    def inflight_changed(self, provider: str, account: str, count: int) -> None:
        for each in self._observers:
            each.inflight_changed(provider, account, count)

    def leaked(self, provider: str, model: str, leak_format: str, action: str) -> None:
        for each in self._observers:
            each.leaked(provider, model, leak_format, action)

    def adapted(self, provider: str, param: str, action: str) -> None:
        for each in self._observers:
            each.adapted(provider, param, action)

    def auto_planned(self, plan: AutoPlan) -> None:
        for each in self._observers:
            each.auto_planned(plan)

    def auto_excluded(self, provider: str, model: str, reason: str) -> None:
        for each in self._observers:
            each.auto_excluded(provider, model, reason)

    def events_seen(self, provider: str, model: str, gaps_s: Sequence[float]) -> None:
        for each in self._observers:
            each.events_seen(provider, model, gaps_s)

    def trace(self, request_id: str, lines: Sequence[str]) -> None:
        for each in self._observers:
            each.trace(request_id, lines)
