"""Sums over requests: how many were served, in how many attempts, by whom, how fast and for how much."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from troyproxy.accounting.statistics import FAILED, SUCCEEDED, percentile, rate
from troyproxy.proxy.replay.recording import Source, samples_of
from troyproxy.proxy.replay.simulation import Simulated
from troyproxy.proxy.replay.trace import TracedRequest

MOST_LISTED: Final = 100
"""Members, accounts and unknown names that are told, the most frequent first."""
MOST_NAMES: Final = 10_000


@dataclass(slots=True)
class Tally:
    """Bounded but for eight bytes per served request, of which the percentiles are made."""

    requests: int = 0
    attempts: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    """Served requests whose cost is not known; they are not in the sum."""
    outcomes: Counter[str] = field(default_factory=Counter)
    members: Counter[str] = field(default_factory=Counter)
    accounts: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    """Names that the policy does not know, and how often they were asked for."""
    _served_ms: array[float] = field(default_factory=lambda: array("d"))

    def record(self, request: TracedRequest) -> None:
        """Add what really became of *request*."""
        served = request.served
        self._add(request.outcome, sum(1 for _ in samples_of(request)), request.duration_ms, request.cost_usd)
        if served is not None:
            self._serve(f"{served.provider}/{served.model}", served.account)

    def simulate(self, simulated: Simulated) -> None:
        """Add what became of a request in a simulation."""
        row = simulated.row
        self._add(row.outcome, len(simulated.attempts), row.duration_ms, row.cost_usd)
        if row.provider is not None:
            self._serve(f"{row.provider}/{row.model}", row.account or "")
        self.sources.update({str(source): count for source, count in simulated.sources.items()})
        if simulated.unknown:
            _count(self.unknown, row.requested_model)

    def _add(self, outcome: str, attempts: int, duration_ms: float, cost_usd: float | None) -> None:
        self.requests += 1
        self.attempts += attempts
        self.outcomes[outcome] += 1
        if outcome == SUCCEEDED:
            self._served_ms.append(duration_ms)
            self.unpriced += cost_usd is None
        self.cost_usd += cost_usd or 0.0

    def _serve(self, member: str, account: str) -> None:
        _count(self.members, member)
        _count(self.accounts, f"{member}#{account}")

    def told(self) -> dict[str, object]:
        """Return the sums, JSON-ready. What cannot be said of nothing is None."""
        succeeded, failed = self.outcomes[SUCCEEDED], sum(self.outcomes[name] for name in FAILED)
        times = sorted(self._served_ms)
        return {
            "requests": self.requests,
            "succeeded": succeeded,
            "failed": failed,
            "success_rate": rate(succeeded, failed),
            "attempts": self.attempts,
            "attempts_per_request": self.attempts / self.requests if self.requests else None,
            "cost_usd": self.cost_usd,
            "unpriced": self.unpriced,
            "latency_ms": {"p50": percentile(times, 0.5), "p95": percentile(times, 0.95)},
            "outcomes": dict(self.outcomes.most_common()),
            "members": _listed(self.members),
            "accounts": _listed(self.accounts),
        }

    def evidence(self) -> dict[str, object]:
        """Return where the outcomes of the attempts came from, and which names were unknown."""
        sources = {str(source): self.sources[source] for source in Source}
        return {"outcomes_from": sources, "unknown_models": _listed(self.unknown)}


def _count(counter: Counter[str], name: str) -> None:
    """Count *name*; models are named by clients, so there is a bound."""
    if name in counter or len(counter) < MOST_NAMES:
        counter[name] += 1


def _listed(counter: Counter[str]) -> Mapping[str, int]:
    return dict(sorted(counter.items(), key=lambda entry: (-entry[1], entry[0]))[:MOST_LISTED])
