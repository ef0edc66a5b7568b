"""The alert rules: each fires when it must and is silent when it must be, names what exists, and has its runbook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.alert_cases import CASES, STEP, Case
from tests.dashboards.panels import RUNBOOK
from tests.promtool import complaint
from troyproxy.telemetry.declared import PREFIX

ROOT = Path(__file__).parent.parent
FILE = ROOT / "grafana" / "alerts" / "troyproxy.yaml"
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in yaml.safe_load(FILE.read_bytes())["groups"] for rule in group["rules"]
}
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def test_the_rules_are_valid() -> None:
    assert complaint("check", "rules", "--lint-fatal", str(FILE)) == ""


def _series(name: str, values: str) -> dict[str, str]:
    return {"series": name if name.startswith("up{") else PREFIX + name, "values": values}


def _expected(case: Case, rule: dict[str, Any]) -> list[dict[str, Any]]:
    if case.summary is None:
        return []
    annotations = {**rule["annotations"], "summary": case.summary}
    return [{"exp_labels": {**rule["labels"], **case.labels}, "exp_annotations": annotations}]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}: {case.what}")
def test_an_alert_fires_when_it_must_and_not_when_it_must_not(case: Case, tmp_path: Path) -> None:
    name = "Troyproxy" + case.alert
    asked = {"alertname": name, "eval_time": case.at, "exp_alerts": _expected(case, RULES[name])}
    series = [_series(name, values) for name, values in case.series.items()]
    test = {"interval": STEP, "input_series": series, "alert_rule_test": [asked]}
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(FILE)], "evaluation_interval": STEP, "tests": [test]}))
    assert complaint("test", "rules", str(file)) == ""


@pytest.mark.parametrize("name", RULES)
def test_an_alert_has_cases_of_both_kinds(name: str) -> None:
    assert {case.summary is None for case in CASES if "Troyproxy" + case.alert == name} == {True, False}


@pytest.mark.parametrize("name", RULES)
def test_an_alert_leads_to_its_part_of_the_runbook(name: str) -> None:
    annotations = RULES[name]["annotations"]
    assert annotations["runbook_url"] == f"{RUNBOOK}#{name.lower()}"
    assert re.search(rf"^### {name}$", OPERATIONS, re.MULTILINE)
    assert annotations["summary"]


def test_the_runbook_knows_no_other_alerts() -> None:
    assert re.findall(r"^### (Troyproxy\w+)$", OPERATIONS, re.MULTILINE) == list(RULES)
