"""The observer that counts. Its metrics are declared in ``declared.py``, its label values come from ``labels.py``.

Each instance has a registry of its own, so two gateways in one process do not share a number. Workers that count into
one folder (``workers.py``) answer a scrape with the numbers of all of them.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeVar

from prometheus_client import CollectorRegistry

from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.ports import AutoPlan, Clock, Failover
from troyproxy.resilience.breaker import TRANSITIONS
from troyproxy.telemetry.counting import Number, Spread
from troyproxy.telemetry.declared import DECLARED
from troyproxy.telemetry.instruments import Endings, Tally, instruments
from troyproxy.telemetry.labels import (
    CLASSES,
    EXCLUSIONS,
    LEAK_ACTIONS,
    NONE,
    OUTCOMES,
    REASONS,
    Labels,
    one_of,
    status_label,
)
from troyproxy.telemetry.render import render
from troyproxy.telemetry.silent import Silent
from troyproxy.telemetry.status import StatusCollector, StatusSource
from troyproxy.telemetry.workers import REFRESH_S, Live, render_all
from troyproxy.version import VERSION

__all__ = ["DECLARED", "Labels", "Metrics"]

OK: Final = "ok"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
HANDOFF: Final = "handoff"
"""Why tokens of a summary reached no client: they were for the next model."""
CHANGES: Final = sorted({(str(before), str(after)) for (before, _), after in TRANSITIONS.items() if before != after})
MOST_LATE: Final = 64
"""Ends of requests and of attempts that are counted together, at the latest."""
MOST_BOUND: Final = 4096
"""Names, as they come, whose numbers are remembered; then they are looked up anew. Names can be invented by clients."""

Names = tuple[object, ...]
"""What an event says of itself, before it is made into label values."""
Bound = TypeVar("Bound")


class Metrics(Silent):
    """Counts what it hears. Call `watch` once the owner of the live state exists.

    *folder*: that of several workers, of which this process is one (`workers.join` was called); None: it is alone.
    """

    def __init__(self, labels: Labels, *, folder: Path | None = None) -> None:
        self.registry = CollectorRegistry()
        self._labels, self._folder = labels, folder
        self._made = made = instruments(self.registry, several=folder is not None)
        # What happens in every request is noted, and counted with others or before a scrape. What other workers read
        # from a file is counted at once.
        self._behind: list[Tally | Endings] = []
        """Those for which something waits."""
        self._loads: dict[tuple[str, str], int] = {}
        self._begun = self._over = self._late = 0
        self._patience = 1 if folder is not None else MOST_LATE
        made.tell_before_showing(self._catch_up)
        self._counters, self._gauges, self._histograms = made.counters, made.gauges, made.histograms
        self._inflight = made.gauges["inflight_requests"].of()
        # Which numbers an event counts in is worked out once for each set of names, until the configuration changes.
        self._requests: dict[Names, Tally] = {}
        self._attempts: dict[Names, Endings] = {}
        self._accounts: dict[Names, Number] = {}
        self._gaps: dict[Names, Spread] = {}
        self._status, self._live = StatusCollector(labels), Live(labels)
        self.registry.register(self._status)
        self._gauges["build_info"].of(VERSION, platform.python_version()).set(1)
        for before, after in CHANGES:
            # There from the start: of a counter that appears with its first event, Prometheus does not see that event.
            self._counters["circuit_transitions_total"].of(before, after)

    def watch(self, source: StatusSource) -> None:
        """Ask *source* for the live state at each scrape."""
        self._status.source = source

    def configured(self, before: Snapshot, after: Snapshot) -> None:
        """A configuration came into force: what a name is called in a label may be another now."""
        del before, after
        for bound in (self._requests, self._attempts, self._accounts, self._gaps):
            bound.clear()

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their content type, Prometheus text or OpenMetrics as *accept* asks."""
        if self._folder is None:
            return render(self.registry, accept)
        self.refresh()
        return render_all(self._folder, accept)

    def refresh(self) -> None:
        """Write the live state down, for the scrapes that other workers answer."""
        if self._status.source is not None:
            self._live.write(self._status.source.facts())

    async def keep_fresh(self, clock: Clock) -> None:
        """Write the live state down every second until cancelled; does nothing where there is one worker only."""
        while self._folder is not None:
            self.refresh()
            await clock.sleep(REFRESH_S)

    def request_started(self) -> None:
        self._begun += 1
        if self._patience == 1:
            self._catch_up()

    def request_finished(self, row: UsageRow) -> None:
        names = row.route, row.combo, row.stream, row.outcome, row.status, row.provider, row.model
        tally = self._requests.get(names)
        if tally is None:
            tally = _remember(self._requests, names, self._tally(row))
        if not tally.waiting:
            self._behind.append(tally)
        tally.waiting.append(row)
        self._over += 1
        if self._over >= self._patience:
            self._catch_up()
        if row.wasted is not None:
            self._wasted(row, row.wasted.total)

    def attempt_finished(self, attempt: AttemptRecord) -> None:
        names = attempt.provider, attempt.model, attempt.outcome
        endings = self._attempts.get(names)
        if endings is None:
            target = self._labels.target(attempt.provider, attempt.model)
            endings = _remember(self._attempts, names, Endings(self._made, (*target, *_ending(attempt.outcome))))
        if not endings.waiting:
            self._behind.append(endings)
        endings.waiting.append(attempt.duration_ms)
        self._late += 1
        if self._late >= self._patience:
            self._catch_up()

    def _catch_up(self) -> None:
        """Count what was noted."""
        behind, loads, change = self._behind, self._loads, self._begun - self._over
        self._behind, self._loads, self._begun, self._over, self._late = [], {}, 0, 0, 0
        self._inflight.inc(change)
        for each in behind:
            each.count()
        for names, count in loads.items():
            number = self._accounts.get(names)
            if number is None:
                number = self._gauges["account_inflight"].of(*self._labels.account(*names))
                _remember(self._accounts, names, number)
            number.set(count)

    def failed_over(self, failover: Failover) -> None:
        labels = self._labels
        self._count(
            "failovers_total",
            labels.combo(failover.combo),
            labels.provider(failover.from_provider),
            labels.provider(failover.to_provider),
            one_of(failover.error_class, CLASSES),
        ).inc()

    def skipped(self, provider: str, reason: str) -> None:
        self._count("skips_total", self._labels.provider(provider), one_of(reason, REASONS)).inc()

    def circuit_changed(self, provider: str, model: str, before: str, after: str) -> None:  # noqa: ARG002 -- the port's
        word = self._labels.word
        self._count("circuit_transitions_total", word("state", before), word("state", after)).inc()

    def inflight_changed(self, provider: str, account: str, count: int) -> None:
        self._loads[provider, account] = count
        if self._patience == 1:
            self._catch_up()

    def leaked(self, provider: str, model: str, leak_format: str, action: str) -> None:
        target = self._labels.target(provider, model)
        found = self._labels.word("format", leak_format)
        self._count("tool_leaks_total", *target, found, one_of(action, LEAK_ACTIONS)).inc()

    def adapted(self, provider: str, param: str, action: str) -> None:
        labels = self._labels
        words = labels.word("param", param), labels.word("action", action)
        self._count("params_adapted_total", labels.provider(provider), *words).inc()

    def auto_planned(self, plan: AutoPlan) -> None:
        combo = self._labels.combo(plan.name)
        self._histograms["auto_score"].of(combo).observe(plan.score)
        self._count("auto_picks_total", combo, *self._labels.target(plan.provider, plan.model)).inc()
        if plan.explored:
            self._count("auto_explorations_total", combo).inc()
        self._gauges["auto_incident"].of(combo).set(float(plan.incident))

    def auto_excluded(self, provider: str, model: str, reason: str) -> None:
        target = self._labels.target(provider, model)
        self._count("auto_exclusions_total", *target, one_of(reason, EXCLUSIONS)).inc()

    def events_seen(self, provider: str, model: str, gaps_s: Sequence[float]) -> None:
        spread = self._gaps.get((provider, model))
        if spread is None:
            spread = self._histograms["inter_event_seconds"].of(*self._labels.target(provider, model))
            _remember(self._gaps, (provider, model), spread)
        spread.observe_all(gaps_s if min(gaps_s, default=0.0) >= 0.0 else [max(0.0, gap_s) for gap_s in gaps_s])

    def _count(self, name: str, *labels: str) -> Number:
        return self._counters[name].of(*labels)

    def _tally(self, row: UsageRow) -> Tally:
        labels, stream = self._labels, "true" if row.stream else "false"
        ending = one_of(row.outcome, OUTCOMES), status_label(row.status)
        request = labels.route(row.route), labels.combo(row.combo), stream, *ending
        return Tally(self._made, request, labels.target(row.provider, row.model))

    def _wasted(self, row: UsageRow, left: int) -> None:
        """Share *left*, the row's wasted tokens, out among the attempts that lost them; the counts sum to the row's."""
        for attempt in row.attempts:
            unseen = attempt.outcome != OK or attempt.handoff
            lost = min(left, attempt.usage.total) if attempt.usage is not None and unseen else 0
            reason = HANDOFF if attempt.handoff else one_of(attempt.outcome, CLASSES)
            self._waste(attempt.provider, attempt.model, reason, lost)
            left -= lost
        self._waste(row.provider, row.model, one_of(row.outcome, OUTCOMES), left)

    def _waste(self, provider: str | None, model: str | None, reason: str, tokens: int) -> None:
        if tokens > 0:
            self._count("wasted_tokens_total", *self._labels.target(provider, model), reason).inc(tokens)


def _remember(bound: dict[Names, Bound], names: Names, found: Bound) -> Bound:
    if len(bound) >= MOST_BOUND:
        bound.clear()
    bound[names] = found
    return found


def _ending(outcome: str) -> tuple[str, str]:
    if outcome == OK:
        return OK, NONE
    return CANCELLED if outcome == CANCELLED else FAILED, one_of(outcome, CLASSES)
