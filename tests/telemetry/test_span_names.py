"""The names on spans are those of OpenTelemetry's conventions, or plainly ours."""

from __future__ import annotations

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from troyproxy.settings.builtin import load_builtins
from troyproxy.telemetry.span_names import GEN_AI, OPERATIONS, PROVIDERS, is_latest, operation_of, provider_of

KNOWN = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
PROVIDER_NAMES = {each.value for each in gen_ai_attributes.GenAiProviderNameValues}
OPERATION_NAMES = {each.value for each in gen_ai_attributes.GenAiOperationNameValues}


def test_a_name_that_is_not_ours_is_one_of_the_conventions() -> None:
    names = {name for pair in GEN_AI.values() for name in pair if not name.startswith("troy.")}
    assert names <= KNOWN


def test_the_latest_edition_has_a_name_for_everything() -> None:
    assert not [latest for _, latest in GEN_AI.values() if latest.startswith("troy.")]


def test_providers_and_operations_are_spelt_as_the_conventions_spell_them() -> None:
    assert (set(PROVIDERS.values()) - PROVIDER_NAMES, set(OPERATIONS.values()) - OPERATION_NAMES) == (set(), set())


def test_what_is_spelt_otherwise_is_a_built_in_provider() -> None:
    assert set(PROVIDERS) <= set(load_builtins())


@pytest.mark.parametrize(
    ("value", "latest"),
    [("", False), ("http", False), ("http, gen_ai_latest_experimental", True), ("gen_ai_latest_experimental", True)],
)
def test_the_latest_names_are_opted_into(value: str, latest: bool) -> None:
    assert is_latest(value) is latest


def test_a_route_without_a_name_there_has_that_of_its_path() -> None:
    assert [operation_of(route) for route in ("/v1/audio/{path}", "/v1/rerank")] == ["audio", "rerank"]


def test_an_unknown_provider_keeps_its_id() -> None:
    assert [provider_of(name) for name in ("google", "mine")] == ["gcp.gemini", "mine"]
