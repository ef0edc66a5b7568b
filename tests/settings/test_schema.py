"""The JSON Schema of the config file."""

from __future__ import annotations

import copy
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from troyproxy.settings.parsers import PARSERS
from troyproxy.settings.schema import json_schema

EXAMPLE = yaml.safe_load(Path(__file__).with_name("example.yaml").read_text(encoding="utf-8"))
VALIDATOR = jsonschema_rs.validator_for(json_schema())


def test_the_example_of_the_documentation_fits() -> None:
    assert [e.message for e in VALIDATOR.iter_errors(EXAMPLE)] == []


def test_the_schema_is_itself_valid() -> None:
    assert jsonschema_rs.meta.is_valid(json_schema())


@pytest.mark.parametrize(
    ("section", "value"),
    [
        ("provider", {}),
        ("settings", {"strem_idle_ms": 5}),
        ("settings", {"stream_idle_ms": 5}),
        ("combos", {"c": {"strategy": "best"}}),
        ("keys", [{"name": "k"}]),
        ("providers", {"p": {"accounts": [{"api_key": "x"}]}}),
    ],
)
def test_what_the_reader_refuses_does_not_fit(section: str, value: object) -> None:
    changed = copy.deepcopy(EXAMPLE) | {section: value}
    assert not VALIDATOR.is_valid(changed)


def test_every_setting_that_may_stand_in_the_file_is_described() -> None:
    properties = json_schema()["properties"]
    assert isinstance(properties, dict)
    described = {n: s["description"] for n, s in properties["settings"]["properties"].items()}
    assert described == {n: rule.doc for n, rule in PARSERS.items() if rule.in_file}


def test_a_bare_off_fits_where_off_is_allowed() -> None:
    assert VALIDATOR.is_valid({"settings": yaml.safe_load("{auth: off, leak: off, trace: on}")})
