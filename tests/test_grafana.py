"""The dashboards against the metrics: what a panel asks for exists, with its labels, and every query is PromQL."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from troyproxy.telemetry.declared import DECLARED, PREFIX, Kind

ROOT = Path(__file__).parent.parent
GRAFANA = ROOT / "grafana"
DASHBOARDS = {path.name: json.loads(path.read_bytes()) for path in sorted((GRAFANA / "dashboards").glob("*.json"))}
NOT_DRAWN = {
    "troyproxy_upstream_duration_seconds",
    "troyproxy_inter_event_seconds",
    "troyproxy_circuit_transitions_total",
    "troyproxy_tool_leaks_total",
    "troyproxy_params_adapted_total",
    "troyproxy_config_revision",
    "troyproxy_shared_state_up",
    "troyproxy_auto_score",
    "troyproxy_auto_picks_total",
    "troyproxy_auto_explorations_total",
    "troyproxy_auto_exclusions_total",
    "troyproxy_auto_incident",
    "troyproxy_rate_limited_total",
    "troyproxy_budget_remaining_ratio",
}
"""Metrics that no panel shows yet."""
ADDED = {"instance", "job", "le"}
"""Labels that Prometheus and histograms add."""
_SERIES = re.compile(rf"\b({PREFIX}\w+)(?:\{{([^}}]*)\}})?")


def _panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def _queries() -> Iterator[tuple[str, str]]:
    for name, dashboard in DASHBOARDS.items():
        for panel in _panels(dashboard):
            yield from ((f"{name}: {panel['title']}", target["expr"]) for target in panel["targets"])


QUERIES = list(_queries())


def _metric(series: str) -> str:
    """Return the declared name behind a series' name: histograms have three."""
    plain = re.sub(r"_(bucket|sum|count)$", "", series)
    return plain if plain in DECLARED and DECLARED[plain].kind is Kind.HISTOGRAM else series


def _labels(query: str) -> set[str]:
    grouped = {label.strip() for group in re.findall(r"\bby \(([^)]*)\)", query) for label in group.split(",")}
    matched = {label for _, inside in _SERIES.findall(query) for label in re.findall(r"(\w+)\s*[=!]~?", inside)}
    return grouped | matched


@pytest.mark.parametrize(("where", "query"), QUERIES)
def test_a_query_names_metrics_and_labels_that_exist(where: str, query: str) -> None:
    metrics = {_metric(series) for series, _ in _SERIES.findall(query)}
    assert metrics, where
    assert metrics <= DECLARED.keys()
    assert _labels(query) - ADDED <= {label for metric in metrics for label in DECLARED[metric].labels}


def test_every_metric_is_drawn_or_listed_as_not_drawn() -> None:
    text = "".join(json.dumps(dashboard) for dashboard in DASHBOARDS.values())
    drawn = {_metric(series) for series, _ in _SERIES.findall(text)}
    assert drawn | NOT_DRAWN == set(DECLARED)
    assert drawn & NOT_DRAWN == set()


def _as_prometheus_reads_it(query: str) -> str:
    times = query.replace("$__rate_interval", "5m").replace("$__range", "1h")
    return re.sub(r"\$\{?\w+\}?", ".*", times)


def test_every_query_is_promql(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool (Debian package prometheus)")
    rules = [{"record": f"q:{at}", "expr": _as_prometheus_reads_it(query)} for at, (_, query) in enumerate(QUERIES)]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboards", "rules": rules}]}), encoding="utf-8")
    done = subprocess.run([promtool, "check", "rules", str(file)], check=False, capture_output=True, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_can_be_imported_anywhere(name: str) -> None:
    """It has a stable uid, and no panel or variable is tied to somebody's data source."""
    dashboard = DASHBOARDS[name]
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    sources = [panel["datasource"]["uid"] for panel in _panels(dashboard)]
    sources += [variable["datasource"]["uid"] for variable in variables.values() if variable["type"] == "query"]
    assert dashboard["uid"].startswith("troyproxy-")
    assert set(sources) == {"${datasource}"}
    assert {"datasource", "instance", "provider", "combo"} <= variables.keys()


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_have_ids_of_their_own_and_do_not_overlap(name: str) -> None:
    panels = DASHBOARDS[name]["panels"]
    places = [tuple(panel["gridPos"][key] for key in "xywh") for panel in panels]
    cells = [(x + i, y + j) for x, y, w, h in places for i in range(w) for j in range(h)]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def test_what_is_provisioned_is_where_compose_mounts_it() -> None:
    provider = yaml.safe_load((GRAFANA / "provisioning" / "dashboards" / "troyproxy.yaml").read_bytes())["providers"][0]
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_bytes())
    mounts = [volume.split(":") for volume in compose["services"]["grafana"]["volumes"]]
    assert provider["options"]["path"] in {inside for _, inside, _ in mounts}
    assert all((ROOT / "deploy" / outside).is_dir() for outside, _, _ in mounts)
