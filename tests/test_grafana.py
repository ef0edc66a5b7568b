"""The dashboards: Grafana's schema, the metrics they name, their queries, links and places.

What the queries find is in ``tests/e2e/test_dashboards.py``, the alert rules are in ``tests/test_alerts.py``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.dashboards.boards import BOARDS, FOLDER
from tests.dashboards.panels import RUNBOOK
from tests.dashboards.reading import asked, panels
from tests.promtool import complaint
from troyproxy.telemetry.declared import DECLARED, PREFIX, Kind

ROOT = Path(__file__).parent.parent
GRAFANA = ROOT / "grafana"
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
DASHBOARDS: dict[str, dict[str, Any]] = {board.name: json.loads(board.json()) for board in BOARDS}
PANELS = [(f"{name}: {panel['title']}", panel) for name, board in DASHBOARDS.items() for panel in panels(board)]
QUERIES = {query.text: query.where for board in BOARDS for query in asked(board)}
RULES = [
    rule
    for group in yaml.safe_load((GRAFANA / "alerts" / "troyproxy.yaml").read_bytes())["groups"]
    for rule in group["rules"]
]
EXPRESSIONS = {**QUERIES, **{rule["expr"]: rule["alert"] for rule in RULES}}
ADDED = {"instance", "job", "le"}
"""Labels that Prometheus and histograms add."""
BUILTIN = {"ALERTS": {"alertname"}, "up": {"job"}}
"""Series that Prometheus makes itself, with the labels that we use."""
_SERIES = re.compile(rf"\b({PREFIX}\w+|ALERTS|up)\b(?:\{{([^}}]*)\}})?")


def _metric(series: str) -> str:
    """Return the declared name behind a series' name: histograms have three."""
    plain = re.sub(r"_(bucket|sum|count)$", "", series)
    return plain if plain in DECLARED and DECLARED[plain].kind is Kind.HISTOGRAM else series


def _labels_of(metric: str) -> set[str]:
    return BUILTIN[metric] if metric in BUILTIN else {*DECLARED[metric].labels}


def _grouped(query: str) -> set[str]:
    return {label.strip() for group in re.findall(r"\bby \(([^)]*)\)", query) for label in group.split(",")}


def _matched(inside: str) -> set[str]:
    return set(re.findall(r"(\w+)\s*[=!]~?\"", inside))


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_the_committed_dashboard_is_the_declared_one(board: Any) -> None:  # noqa: ANN401 - one of `BOARDS`
    """If not: ``python -m tests.dashboards`` writes them."""
    assert (FOLDER / f"{board.name}.json").read_text(encoding="utf-8") == board.json()


def test_no_other_dashboard_lies_about() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"{board.name}.json" for board in BOARDS}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_is_what_the_schema_of_grafana_knows(name: str) -> None:
    """Read into Grafana's own types and written again nothing is missing: no field is unknown, none is misspelt."""
    register_default_plugins()
    assert json.loads(json.dumps(Dashboard.from_json(DASHBOARDS[name]), cls=JSONEncoder)) == DASHBOARDS[name]


def test_the_schema_notices_a_misspelt_field() -> None:
    register_default_plugins()
    wrong = json.loads(json.dumps(DASHBOARDS["overview"]).replace('"refresh"', '"refreshes"'))
    assert json.loads(json.dumps(Dashboard.from_json(wrong), cls=JSONEncoder)) != wrong


# --- queries ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", EXPRESSIONS, ids=EXPRESSIONS.values())
def test_a_query_names_metrics_and_labels_that_exist(query: str) -> None:
    found = [(_metric(series), _matched(inside)) for series, inside in _SERIES.findall(query)]
    assert found
    assert {metric for metric, _ in found} <= DECLARED.keys() | BUILTIN.keys()
    assert all(labels - ADDED <= _labels_of(metric) for metric, labels in found)
    assert all(_grouped(query) - ADDED <= _labels_of(metric) for metric, _ in found)


def test_every_metric_is_drawn() -> None:
    drawn = {_metric(series) for query in QUERIES for series, _ in _SERIES.findall(query)}
    assert drawn - BUILTIN.keys() == set(DECLARED)


def _as_prometheus_reads_it(query: str) -> str:
    times = query.replace("$__rate_interval", "5m").replace("$__range", "1h")
    return re.sub(r"\$\{?\w+\}?", ".*", times)


def test_every_query_is_promql(tmp_path: Path) -> None:
    rules = [{"record": f"q:{at}", "expr": _as_prometheus_reads_it(query)} for at, query in enumerate(QUERIES)]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboards", "rules": rules}]}), encoding="utf-8")
    assert complaint("check", "rules", str(file)) == ""


# --- what a reader needs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("where", "panel"), PANELS, ids=[where for where, _ in PANELS])
def test_a_panel_says_what_it_shows(where: str, panel: dict[str, Any]) -> None:
    assert panel["description"].endswith((".", "?")), where
    assert panel["fieldConfig"]["defaults"].get("unit") or panel["type"] == "state-timeline"
    assert panel["targets"]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_titles_of_a_dashboard_are_its_own(name: str) -> None:
    titles = [panel["title"] for panel in panels(DASHBOARDS[name])]
    assert len(set(titles)) == len(titles)


def test_no_panel_shows_0_where_nothing_is_scraped() -> None:
    assert [query.where for board in BOARDS for query in asked(board) if "vector(" in query.text] == []


def test_failovers_are_a_table_by_from_to_and_class() -> None:
    panel = next(panel for _, panel in PANELS if panel["title"] == "Failovers of this range")
    assert panel["type"] == "table"
    assert "sum by (from_provider, to_provider, class)" in panel["targets"][0]["expr"]


def test_circuits_are_a_timeline_with_a_word_and_a_colour_for_each_state() -> None:
    panel = next(panel for _, panel in PANELS if panel["title"] == "Circuits")
    states = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
    assert panel["type"] == "state-timeline"
    assert [(state["text"], state["color"]) for state in states.values()] == [
        ("closed", "green"),
        ("half-open", "orange"),
        ("open", "red"),
    ]


def _headings() -> set[str]:
    return {heading.lower() for heading in re.findall(r"^##+ (\w+)$", OPERATIONS, re.MULTILINE)}


def test_a_link_to_the_runbook_leads_to_a_heading() -> None:
    links = re.findall(rf'"{RUNBOOK}#(\w+)"', json.dumps(DASHBOARDS))
    assert links
    assert set(links) <= _headings()


def test_every_alert_but_that_of_an_instance_which_is_gone_has_a_panel_that_links_to_its_runbook() -> None:
    links = set(re.findall(rf'"{RUNBOOK}#(\w+)"', json.dumps(DASHBOARDS)))
    assert {rule["alert"].lower() for rule in RULES} - links == {"troyproxydown"}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_leads_to_the_others_with_its_time_and_variables(name: str) -> None:
    link = DASHBOARDS[name]["links"][0]
    assert (link["type"], link["tags"], link["keepTime"], link["includeVars"]) == (
        "dashboards",
        DASHBOARDS[name]["tags"],
        True,
        True,
    )


# --- wherever it is imported ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_can_be_imported_anywhere(name: str) -> None:
    """It has a stable uid, and no panel or variable is tied to somebody's data source."""
    dashboard = DASHBOARDS[name]
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    sources = [panel["datasource"]["uid"] for panel in panels(dashboard)]
    sources += [variable["datasource"]["uid"] for variable in variables.values() if variable["type"] == "query"]
    assert dashboard["uid"] == f"troyproxy-{name}"
    assert set(sources) == {"${datasource}"}
    assert {"datasource", "instance", "provider", "combo"} <= variables.keys()


def test_the_dashboards_are_the_four_of_old() -> None:
    """Their uids stand in bookmarks and links."""
    assert [board["uid"] for board in DASHBOARDS.values()] == [
        "troyproxy-overview",
        "troyproxy-providers",
        "troyproxy-auto-tools",
        "troyproxy-quota-keys",
    ]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_have_ids_of_their_own_and_do_not_overlap(name: str) -> None:
    drawn = DASHBOARDS[name]["panels"]
    places = [tuple(panel["gridPos"][key] for key in "xywh") for panel in drawn]
    cells = [(x + i, y + j) for x, y, w, h in places for i in range(w) for j in range(h)]
    assert len({panel["id"] for panel in drawn}) == len(drawn)
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


# --- what is deployed -------------------------------------------------------------------------------------------------


def _mounts(service: str) -> dict[str, Path]:
    """Return the paths inside of a service of compose.yaml → what is mounted there."""
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_bytes())
    pairs = (volume.split(":") for volume in compose["services"][service]["volumes"])
    return {inside: (ROOT / "deploy" / outside).resolve() for outside, inside, _ in pairs if outside.startswith(".")}


def test_what_is_provisioned_is_where_compose_mounts_it() -> None:
    provider = yaml.safe_load((GRAFANA / "provisioning" / "dashboards" / "troyproxy.yaml").read_bytes())["providers"][0]
    mounts = _mounts("grafana")
    assert mounts[provider["options"]["path"]] == FOLDER
    assert mounts["/etc/grafana/provisioning"] == GRAFANA / "provisioning"


def test_prometheus_finds_the_rules_where_compose_mounts_them() -> None:
    mounts = _mounts("prometheus")
    config = Path("/etc/prometheus/prometheus.yml")
    pattern = yaml.safe_load(mounts[str(config)].read_bytes())["rule_files"][0]
    folder = (config.parent / pattern).parent
    assert [path.name for path in mounts[str(folder)].glob(Path(pattern).name)] == ["troyproxy.yaml"]


def test_the_configuration_of_prometheus_is_valid() -> None:
    assert complaint("check", "config", str(ROOT / "deploy" / "prometheus.yml")) == ""
