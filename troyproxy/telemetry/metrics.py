"""The observer that counts. Its metrics are declared in ``declared.py``, its label values come from ``labels.py``.

Each instance has a registry of its own, so two gateways in one process do not share a number. Workers that count into
one folder (``workers.py``) answer a scrape with the numbers of all of them.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Counter

from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.ports import AutoPlan, Clock, Failover
from troyproxy.resilience.breaker import TRANSITIONS
from troyproxy.telemetry.declared import DECLARED, instruments
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
TRACE_ID: Final = 32
_MAX_EXEMPLAR: Final = 64  # OpenMetrics allows 128 characters for all labels of an exemplar


class Metrics(Silent):
    """Counts what it hears. Call `watch` once the owner of the live state exists.

    *folder*: that of several workers, of which this process is one (`workers.join` was called); None: it is alone.
    """

    def __init__(self, labels: Labels, *, folder: Path | None = None) -> None:
        self.registry = CollectorRegistry()
        self._labels, self._folder = labels, folder
        made = instruments(self.registry)
        self._counters, self._gauges, self._histograms = made.counters, made.gauges, made.histograms
        self._status, self._live = StatusCollector(labels), Live(labels)
        self.registry.register(self._status)
        self._gauges["build_info"].labels(VERSION, platform.python_version()).set(1)
        for before, after in CHANGES:
            # There from the start: of a counter that appears with its first event, Prometheus does not see that event.
            self._counters["circuit_transitions_total"].labels(before, after)

    def watch(self, source: StatusSource) -> None:
        """Ask *source* for the live state at each scrape."""
        self._status.source = source

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
        self._gauges["inflight_requests"].inc()

    def request_finished(self, row: UsageRow) -> None:
        self._gauges["inflight_requests"].dec()
        self._count(
            "requests_total",
            self._labels.route(row.route),
            self._labels.combo(row.combo),
            "true" if row.stream else "false",
            one_of(row.outcome, OUTCOMES),
            status_label(row.status),
        ).inc()
        self._durations(row)
        self._tokens(row)
        self._wasted(row)

    def attempt_finished(self, attempt: AttemptRecord) -> None:
        target = self._labels.target(attempt.provider, attempt.model)
        self._count("attempts_total", *target, *_ending(attempt.outcome)).inc()
        self._histograms["upstream_duration_seconds"].observe(_seconds(attempt.duration_ms))

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
        self._gauges["account_inflight"].labels(*self._labels.account(provider, account)).set(count)

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
        self._histograms["auto_score"].labels(combo).observe(plan.score)
        self._count("auto_picks_total", combo, *self._labels.target(plan.provider, plan.model)).inc()
        if plan.explored:
            self._count("auto_explorations_total", combo).inc()
        self._gauges["auto_incident"].labels(combo).set(float(plan.incident))

    def auto_excluded(self, provider: str, model: str, reason: str) -> None:
        target = self._labels.target(provider, model)
        self._count("auto_exclusions_total", *target, one_of(reason, EXCLUSIONS)).inc()

    def events_seen(self, provider: str, model: str, gaps_s: Sequence[float]) -> None:
        gaps = self._histograms["inter_event_seconds"].labels(*self._labels.target(provider, model))
        for gap_s in gaps_s:
            gaps.observe(max(0.0, gap_s))

    def _count(self, name: str, *labels: str) -> Counter:
        return self._counters[name].labels(*labels)

    def _durations(self, row: UsageRow) -> None:
        exemplar = _exemplar(row)
        self._histograms["request_duration_seconds"].observe(_seconds(row.duration_ms), exemplar)
        if row.overhead_ms is not None:
            self._histograms["overhead_seconds"].observe(_seconds(row.overhead_ms))
        if row.first_token_ms is not None:
            waits = self._histograms["time_to_first_token_seconds"].labels(
                *self._labels.target(row.provider, row.model)
            )
            waits.observe(_seconds(row.first_token_ms), exemplar)

    def _tokens(self, row: UsageRow) -> None:
        target = self._labels.target(row.provider, row.model)
        for kind, count in _kinds(row.usage):
            self._count("tokens_total", *target, kind).inc(count)
        if row.cost_usd is not None and row.cost_usd > 0:
            self._count("cost_usd_total", *target).inc(row.cost_usd)

    def _wasted(self, row: UsageRow) -> None:
        """Share the row's wasted tokens out among the attempts that lost them; the counts sum to the row's."""
        left = row.wasted.total if row.wasted is not None else 0
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


def _exemplar(row: UsageRow) -> dict[str, str]:
    """Return where to look a request up: its trace where it has one, and its id."""
    trace = {} if row.trace_id is None else {"trace_id": row.trace_id[:TRACE_ID]}
    return {**trace, "request_id": row.request_id[:_MAX_EXEMPLAR]}


def _ending(outcome: str) -> tuple[str, str]:
    if outcome == OK:
        return OK, NONE
    return CANCELLED if outcome == CANCELLED else FAILED, one_of(outcome, CLASSES)


def _kinds(usage: Usage | None) -> list[tuple[str, int]]:
    """Return the kinds of tokens that are not zero."""
    if usage is None:
        return []
    kinds = ("input", usage.input), ("output", usage.output), ("cached", usage.cached), ("reasoning", usage.reasoning)
    return [(kind, count) for kind, count in kinds if count > 0]


def _seconds(milliseconds: float) -> float:
    return max(0.0, milliseconds / 1000)
