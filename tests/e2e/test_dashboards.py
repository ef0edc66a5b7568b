"""What an operator sees: a real Prometheus scrapes a gateway through an outage; every panel has data."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.dashboards.boards import BOARDS
from tests.dashboards.reading import Asked, asked
from tests.e2e.outage import strike, watched
from tests.e2e.prometheus import Prometheus, prometheus
from tests.e2e.until import until

SCRAPES: Final = 8
"""In each of the two parts of the story."""
STEP_S: Final = 0.5
PATIENCE_S: Final = 60.0
QUERIES: Final = [query for board in BOARDS for query in asked(board)]
RAISED: Final = {"CircuitOpen", "ProviderCooling", "SuccessLow", "ToolLeaks", "BudgetNearlySpent"}
"""Alerts that the outage and the load are a reason for; none has lasted long enough to fire."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was measured, between two moments, and how the rules stood in the middle of the outage."""

    prometheus: Prometheus
    start: float
    end: float
    calm: dict[str, Any]
    rules: dict[str, Any]

    def finds(self, query: Asked) -> bool:
        """Whether a panel's query finds a number."""
        text = _filled(query.text, f"{math.ceil(self.end - self.start)}s")
        if query.instant:
            return any(not math.isnan(value) for _, value in self.prometheus.now(text))
        found = self.prometheus.over(text, self.start, self.end, STEP_S)
        return any(not math.isnan(value) for _, points in found for _, value in points)


def _filled(query: str, time_range: str) -> str:
    """Return *query* as Grafana asks it with everything chosen."""
    return re.sub(r"\$\w+", ".*", query.replace("$__rate_interval", "5s").replace("$__range", time_range))


def _rules(server: Prometheus) -> dict[str, Any]:
    return {rule["name"].removeprefix("Troyproxy"): rule for rule in server.rules()}


def raised(rules: dict[str, Any]) -> set[str]:
    """Return which alerts have a reason. A machine that is busy may miss a scrape, which is no news here."""
    return {name for name, rule in rules.items() if rule["state"] != "inactive"} - {"Down"}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    folder = tmp_path_factory.mktemp("watched")
    with watched(folder) as (gateway, upstreams), prometheus(f"127.0.0.1:{gateway.port}") as server:
        start = time.time()
        until(lambda: server.scrapes() > SCRAPES)
        calm = _rules(server)
        strike(upstreams)
        struck = server.scrapes()
        until(lambda: raised(_rules(server)) >= RAISED, within_s=PATIENCE_S)
        until(lambda: server.scrapes() > struck + SCRAPES)
        yield Seen(server, start, time.time(), calm, _rules(server))


def test_every_panel_has_data(seen: Seen) -> None:
    assert [f"{query.where}: {query.text}" for query in QUERIES if not seen.finds(query)] == []


def test_every_alert_can_be_evaluated(seen: Seen) -> None:
    assert {name: rule["health"] for name, rule in seen.rules.items() if rule["health"] != "ok"} == {}


def test_the_outage_raises_the_alerts_that_are_meant_for_it_and_no_other(seen: Seen) -> None:
    assert raised(seen.rules) == RAISED


def test_before_the_outage_nothing_else_is_wrong(seen: Seen) -> None:
    assert raised(seen.calm) <= RAISED


def test_what_a_silent_alert_looks_at_is_measured(seen: Seen) -> None:
    names = {name for rule in seen.rules.values() for name in re.findall(r"\btroyproxy_\w+|\bup\b", rule["query"])}
    assert [name for name in names if not seen.prometheus.now(name)] == []


def test_a_request_leads_from_its_time_to_its_id(seen: Seen) -> None:
    found = seen.prometheus.exemplars("troyproxy_request_duration_seconds_bucket", seen.start, seen.end)
    assert any(labels["request_id"].startswith("req_") for labels in found)
