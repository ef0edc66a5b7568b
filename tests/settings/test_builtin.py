"""The built-in providers."""

from __future__ import annotations

import pytest

from troyproxy.catalog.models import Model, ToolCalls
from troyproxy.catalog.providers import EffortSpelling
from troyproxy.errors import ConfigError
from troyproxy.settings.builtin import load_builtins, parse_builtins

BUILTINS = load_builtins()
NAMES = (
    "openrouter openai groq google anthropic deepseek zai zai-cn xai mistral together fireworks cerebras nvidia "
    "perplexity cohere moonshot minimax siliconflow sambanova nebius hyperbolic deepinfra ollama lmstudio vllm"
)


def test_the_promised_providers_are_built_in() -> None:
    assert set(BUILTINS) >= set(NAMES.split())


def test_ids_aliases_and_key_variables_are_unique() -> None:
    names = [n for pid, b in BUILTINS.items() for n in (pid, *b.aliases)]
    variables = [v for b in BUILTINS.values() for v in b.key_env]
    assert (len(set(names)), len(set(variables))) == (len(names), len(variables))


@pytest.mark.parametrize("name", BUILTINS)
def test_a_provider_has_a_key_variable_unless_it_is_keyless_and_local(name: str) -> None:
    builtin = BUILTINS[name]
    local = builtin.base_url.startswith("http://127.0.0.1:")
    assert local == builtin.provider(name).keyless == (not builtin.key_env)


@pytest.mark.parametrize("name", [n for n, b in BUILTINS.items() if b.key_env])
def test_a_remote_provider_uses_tls_and_has_a_default_model(name: str) -> None:
    assert BUILTINS[name].base_url.startswith("https://")
    assert BUILTINS[name].default_model


@pytest.mark.parametrize("name", ["mistral", "cohere", "perplexity"])
def test_who_refuses_stream_options_is_not_sent_any(name: str) -> None:
    assert BUILTINS[name].provider(name).accepts.stream_options is False


def test_openrouter_takes_the_effort_as_an_object() -> None:
    assert BUILTINS["openrouter"].provider("openrouter").accepts.effort is EffortSpelling.OBJECT


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("anthropic", EffortSpelling.BUDGET),
        ("zai", EffortSpelling.SWITCH),
        ("zai-cn", EffortSpelling.SWITCH),
        ("openai", EffortSpelling.FIELD),
    ],
)
def test_an_effort_is_spelled_as_the_vendor_takes_it(name: str, spelling: EffortSpelling) -> None:
    assert BUILTINS[name].provider(name).accepts.effort is spelling


@pytest.mark.parametrize(
    ("name", "model", "takes"),
    [
        ("anthropic", "claude-sonnet-4-5", True),
        ("anthropic", "claude-opus-4-7", False),
        ("anthropic", "claude-opus-4-20250514", True),
        ("xai", "grok-4", False),
        ("xai", "grok-4-1-fast-reasoning", False),
        ("xai", "grok-4.3", True),
        ("mistral", "magistral-medium-latest", False),
    ],
)
def test_some_models_reason_and_take_no_effort(name: str, model: str, *, takes: bool) -> None:
    assert BUILTINS[name].refine(Model(model)).no_effort is not takes


@pytest.mark.parametrize(
    ("name", "model", "weakest"),
    [
        ("openrouter", "x/y", "none"),
        ("zai", "glm-4.6", "none"),
        ("groq", "qwen/qwen3-32b", "none"),
        ("anthropic", "claude-sonnet-4-5", "none"),
    ],
)
def test_none_is_a_level_where_reasoning_can_be_switched_off(name: str, model: str, weakest: str) -> None:
    assert BUILTINS[name].refine(Model(model)).effort_levels[0] == weakest


@pytest.mark.parametrize(
    ("name", "catalogue"),
    [
        ("openai", "openai"),
        ("zai-cn", "zhipuai"),
        ("together", "togetherai"),
        ("moonshot", "moonshotai"),
        ("vllm", None),
    ],
)
def test_the_catalogue_may_know_a_provider_by_another_id(name: str, catalogue: str | None) -> None:
    assert BUILTINS[name].catalogue_id(name) == catalogue


@pytest.mark.parametrize("model", ["llama-3.3-70b-versatile", "meta-llama/Llama-4-Maverick-17b"])
def test_llama_models_on_groq_drift(model: str) -> None:
    assert BUILTINS["groq"].refine(Model(model)).tool_calls is ToolCalls.DRIFTS


def test_other_models_on_groq_do_not_drift() -> None:
    assert BUILTINS["groq"].refine(Model("openai/gpt-oss-120b")).tool_calls is None


def test_a_later_pattern_lies_over_an_earlier_one() -> None:
    model = BUILTINS["openai"].refine(Model("gpt-5.1"))
    assert (model.efforts, model.no_sampling_with_effort) == (("none", "low", "medium", "high"), True)


def test_a_mistake_in_the_data_names_its_place() -> None:
    with pytest.raises(ConfigError, match=r"^x\.base_url: is required$"):
        parse_builtins({"x": {}})
