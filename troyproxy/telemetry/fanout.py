"""One observer in front of several. It adds nothing and catches nothing: observers do not raise.

Who does nothing with an event (`Silent`) or sleeps (`Sleeper`) is not told of it, and where one alone hears it, there
is nothing in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.ports import AutoPlan, Failover, Observer
from troyproxy.telemetry.silent import Silent, Sleeper

EVENTS: Final = tuple(name for name in vars(Observer) if not name.startswith("_"))


class Fanout:
    """Passes everything on, in the order of *observers*."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._everybody = tuple(observers)
        for each in self._everybody:
            if isinstance(each, Sleeper):
                each.on_turn(self._share_out)
        self._share_out()

    def _share_out(self) -> None:
        """Settle who hears what."""
        awake = [each for each in self._everybody if not (isinstance(each, Sleeper) and each.asleep)]
        self._hearing = {name: tuple(each for each in awake if _hears(each, name)) for name in EVENTS}
        for name, hearing in self._hearing.items():
            vars(self).pop(name, None)
            if len(hearing) == 1:
                setattr(self, name, getattr(hearing[0], name))
        self._finished = tuple([each.request_finished for each in self._hearing["request_finished"]])

    def request_started(self) -> None:
        for each in self._hearing["request_started"]:
            each.request_started()

    def request_finished(self, row: UsageRow) -> None:
        for tell in self._finished:
            tell(row)

    def attempt_finished(self, attempt: AttemptRecord) -> None:
        for each in self._hearing["attempt_finished"]:
            each.attempt_finished(attempt)

    def failed_over(self, failover: Failover) -> None:
        for each in self._hearing["failed_over"]:
            each.failed_over(failover)

    def skipped(self, provider: str, reason: str) -> None:
        for each in self._hearing["skipped"]:
            each.skipped(provider, reason)

    def circuit_changed(self, provider: str, model: str, before: str, after: str) -> None:
        for each in self._hearing["circuit_changed"]:
            each.circuit_changed(provider, model, before, after)

    def inflight_changed(self, provider: str, account: str, count: int) -> None:
        for each in self._hearing["inflight_changed"]:
            each.inflight_changed(provider, account, count)

    def leaked(self, provider: str, model: str, leak_format: str, action: str) -> None:
        for each in self._hearing["leaked"]:
            each.leaked(provider, model, leak_format, action)

    def adapted(self, provider: str, param: str, action: str) -> None:
        for each in self._hearing["adapted"]:
            each.adapted(provider, param, action)

    def auto_planned(self, plan: AutoPlan) -> None:
        for each in self._hearing["auto_planned"]:
            each.auto_planned(plan)

    def auto_excluded(self, provider: str, model: str, reason: str) -> None:
        for each in self._hearing["auto_excluded"]:
            each.auto_excluded(provider, model, reason)

    def events_seen(self, provider: str, model: str, gaps_s: Sequence[float]) -> None:
        for each in self._hearing["events_seen"]:
            each.events_seen(provider, model, gaps_s)

    def trace(self, request_id: str, lines: Sequence[str]) -> None:
        for each in self._hearing["trace"]:
            each.trace(request_id, lines)


def _hears(observer: Observer, name: str) -> bool:
    return getattr(type(observer), name, None) is not getattr(Silent, name)
