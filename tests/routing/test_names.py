from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.routing.builders import combo, model, provider, snapshot
from troyproxy.catalog.models import EFFORTS
from troyproxy.errors import InvalidRequest, ModelNotFound, UnknownVariant
from troyproxy.routing.lookup import AUTO_IDS
from troyproxy.routing.names import NameKind, Resolution, resolve

ALPHA = provider(
    "alpha", model("m1", aliases=("llama",)), "qwen3-max", "codex-max", "gpt-x", "shared", aliases=("al", "groq")
)
BARE = provider("bare")
ROUTER = provider("openrouter", "anthropic/claude-x", "a/claude-two", "b/claude-two", "openrouter/auto", "shared")
OPENAI = provider("openai", "o3-mini", "gpt-x", "shared")
HOUSE = snapshot(
    BARE,
    ALPHA,
    ROUTER,
    OPENAI,
    combo("MASTER-LIGHT", "alpha/m1"),
    combo("caf\u00e9", "alpha/m1"),
    combo("模型-快", "alpha/m1"),
    combo("gpt-x", "alpha/m1"),
    combo("daily", "alpha/m1"),
)


def spec(name: str) -> tuple[str | None, str | None, str | None]:
    """Provider id, upstream model and effort of *name*."""
    found = resolve(name, HOUSE)
    assert found.kind is NameKind.SPEC
    assert found.provider is not None
    return found.provider.id, found.model, found.effort


@pytest.mark.parametrize(
    ("name", "provider_id", "upstream"),
    [
        ("alpha/m1", "alpha", "m1"),
        ("ALPHA/m1", "alpha", "m1"),
        ("al/m1", "alpha", "m1"),
        ("alpha/M1", "alpha", "M1"),
        ("alpha/llama", "alpha", "m1"),
        ("alpha/nosuch", "alpha", "nosuch"),
        ("alpha/nosuch:free", "alpha", "nosuch:free"),
        ("groq/openai/gpt-oss-120b", "alpha", "openai/gpt-oss-120b"),
        ("openrouter/anthropic/claude-x", "openrouter", "anthropic/claude-x"),
        ("openrouter/auto", "openrouter", "openrouter/auto"),
        ("alpha/gpt-x", "alpha", "gpt-x"),
        ("openrouter/MASTER-LIGHT", "openrouter", "MASTER-LIGHT"),
        (" alpha/m1 ", "alpha", "m1"),
    ],
)
def test_a_spec_is_split_once_and_reaches_its_provider(name: str, provider_id: str, upstream: str) -> None:
    assert spec(name) == (provider_id, upstream, None)


@pytest.mark.parametrize(
    ("name", "provider_id", "upstream"),
    [
        ("m1", "alpha", "m1"),
        ("llama", "alpha", "m1"),
        ("anthropic/claude-x", "openrouter", "anthropic/claude-x"),
        ("claude-x", "openrouter", "anthropic/claude-x"),
        ("claude-two", "openrouter", "claude-two"),
        ("claude-nosuch", "openrouter", "claude-nosuch"),
        ("gpt-nosuch", "openai", "gpt-nosuch"),
        ("nothing-known", "openai", "nothing-known"),
    ],
)
def test_a_bare_name_is_looked_up_and_then_inferred(name: str, provider_id: str, upstream: str) -> None:
    assert spec(name) == (provider_id, upstream, None)


def test_of_several_providers_that_list_a_name_the_inferred_one_serves() -> None:
    assert spec("shared")[0] == "openai"


def test_without_the_inferred_one_the_first_in_file_order_serves() -> None:
    found = resolve("shared", snapshot(ROUTER, ALPHA))
    assert found.canonical == "openrouter/shared"


def test_the_catalogue_completes_names_when_the_provider_has_no_list() -> None:
    house = snapshot(provider("openrouter"))
    with_catalogue = type(house)(
        providers=house.providers,
        provider_names=house.provider_names,
        catalog={"openrouter": {"anthropic/claude-x": model("anthropic/claude-x")}},
    )
    assert resolve("claude-x", with_catalogue).model == "anthropic/claude-x"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("MASTER-LIGHT", "MASTER-LIGHT"),
        ("master-light", "MASTER-LIGHT"),
        ("id-daily", "daily"),
        ("combo/daily", "daily"),
        ("COMBO/Daily", "daily"),
        ("caf\u00e9", "caf\u00e9"),
        ("cafe\u0301", "caf\u00e9"),
        ("模型-快 ", "模型-快"),
        ("gpt-x", "gpt-x"),
    ],
)
def test_a_combo_is_found_by_name_id_normal_form_or_case(name: str, wanted: str) -> None:
    found = resolve(name, HOUSE)
    assert (found.kind, found.canonical) == (NameKind.COMBO, wanted)
    assert found.combo is HOUSE.combos[wanted]


def test_a_listed_model_comes_before_a_combo_that_differs_by_case() -> None:
    house = snapshot(ALPHA, combo("M1", "alpha/m1"))
    assert (resolve("m1", house).kind, resolve("M1", house).kind) == (NameKind.SPEC, NameKind.COMBO)


def test_combos_that_differ_only_by_case_answer_to_their_exact_names_only() -> None:
    house = snapshot(combo("Ab", "x/y"), combo("aB", "x/y"))
    assert resolve("aB", house).canonical == "aB"
    with pytest.raises(ModelNotFound):
        resolve("ab", house)


@pytest.mark.parametrize("name", [*AUTO_IDS, "default"])
def test_reserved_names_are_themselves(name: str) -> None:
    found = resolve(name, HOUSE)
    assert found.canonical == name
    assert found.kind is (NameKind.DEFAULT if name == "default" else NameKind.AUTO)


@pytest.mark.parametrize(("name", "variant"), [("auto", None), ("auto/", None), ("Auto/Coding", "coding")])
def test_the_auto_variant_is_what_stands_behind_the_slash(name: str, variant: str | None) -> None:
    assert resolve(name, HOUSE).variant == variant


def test_an_unknown_variant_lists_the_seven_ids() -> None:
    with pytest.raises(UnknownVariant) as caught:
        resolve("auto/nosuch", HOUSE)
    assert all(name in str(caught.value) for name in AUTO_IDS)
    assert caught.value.param == "model"


@pytest.mark.parametrize(
    ("name", "canonical", "effort"),
    [
        ("alpha/m1-high", "alpha/m1", "high"),
        ("alpha/m1:high", "alpha/m1", "high"),
        ("alpha/m1-max", "alpha/m1", "max"),
        ("alpha/llama-low", "alpha/m1", "low"),
        ("m1:xhigh", "alpha/m1", "xhigh"),
        ("o3-mini-high", "openai/o3-mini", "high"),
        ("alpha/codex-max-high", "alpha/codex-max", "high"),
        ("claude-x-minimal", "openrouter/anthropic/claude-x", "minimal"),
        ("openrouter/auto-high", "openrouter/openrouter/auto", "high"),
        ("daily-none", "daily", "none"),
        ("combo/daily-low", "daily", "low"),
        ("DAILY-medium", "daily", "medium"),
        ("auto-high", "auto", "high"),
        ("auto/coding-high", "auto/coding", "high"),
        ("default-low", "default", "low"),
    ],
)
def test_a_suffix_is_an_effort_when_only_the_name_without_it_is_known(name: str, canonical: str, effort: str) -> None:
    found = resolve(name, HOUSE)
    assert (found.canonical, found.effort) == (canonical, effort)
    assert effort in found.how


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("alpha/qwen3-max", "alpha/qwen3-max"),
        ("qwen3-max", "alpha/qwen3-max"),
        ("alpha/codex-max", "alpha/codex-max"),
        ("alpha/other-high", "alpha/other-high"),
        ("bare/m1-high", "bare/m1-high"),
        ("alpha/m1-HIGH", "alpha/m1-HIGH"),
        ("alpha/m1-high-low", "alpha/m1-high-low"),
        ("gpt-nosuch-high", "openai/gpt-nosuch-high"),
        ("-high", "openai/-high"),
    ],
)
def test_a_name_that_is_known_or_stays_unknown_keeps_its_suffix(name: str, canonical: str) -> None:
    found = resolve(name, HOUSE)
    assert (found.canonical, found.effort) == (canonical, None)


@pytest.mark.parametrize(
    "name", ["nosuch/m1", "/", "/m1", "alpha/", "combo/nosuch", "combo/", "default/x", "x" * 300 + "/y"]
)
def test_a_spec_without_a_configured_provider_is_not_found(name: str) -> None:
    with pytest.raises(ModelNotFound) as caught:
        resolve(name, HOUSE)
    assert (caught.value.param, caught.value.http_code) == ("model", "model_not_found")


def test_a_bare_name_whose_inferred_provider_is_not_configured_is_not_found() -> None:
    with pytest.raises(ModelNotFound, match="near names: gpt-alpha"):
        resolve("gpt-alpa", snapshot(provider("alpha", "gpt-alpha")))


def test_near_names_of_a_spec_are_specs() -> None:
    with pytest.raises(ModelNotFound, match="near names: alpha/m1"):
        resolve("alpa/m1", HOUSE)


def test_the_error_repeats_two_hundred_characters_at_most() -> None:
    with pytest.raises(ModelNotFound) as caught:
        resolve("x" * 100_000, snapshot())
    assert "x" * 200 in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_name_that_no_list_has_is_sent_on_up_to_512_characters() -> None:
    longest = "m" * (512 - len("alpha/"))
    assert spec(f"alpha/{longest}") == ("alpha", longest, None)
    with pytest.raises(ModelNotFound):
        resolve(f"alpha/{longest}m", HOUSE)


def test_a_longer_name_is_found_where_it_is_listed() -> None:
    longest = "m" * 600
    assert resolve(f"alpha/{longest}", snapshot(provider("alpha", longest))).model == longest


def test_a_lone_surrogate_in_a_name_can_be_reported() -> None:
    with pytest.raises(ModelNotFound) as caught:
        resolve("nosuch/\ud83d", HOUSE)
    assert str(caught.value).encode("utf-8")


@pytest.mark.parametrize("value", [None, 5, ["a"], {"a": 1}, True, "", "   ", "\n"])
def test_what_is_no_name_is_refused_with_its_param(value: object) -> None:
    with pytest.raises(InvalidRequest) as caught:
        resolve(value, HOUSE)
    assert caught.value.param == "model"


def test_what_the_client_wrote_is_kept() -> None:
    assert resolve(" AL/m1:high ", HOUSE).asked == " AL/m1:high "


@given(st.text())
def test_any_text_resolves_or_is_refused(name: str) -> None:
    outcome: Resolution | str | None
    try:
        outcome = resolve(name, HOUSE)
    except (InvalidRequest, ModelNotFound) as refusal:
        outcome = refusal.param
    assert isinstance(outcome, Resolution) or outcome == "model"


@given(st.sampled_from(["alpha/m1", "m1", "daily", "auto/smart", "default"]), st.sampled_from(EFFORTS))
def test_every_level_works_as_a_suffix_of_every_known_name(name: str, level: str) -> None:
    plain, suffixed = resolve(name, HOUSE), resolve(f"{name}-{level}", HOUSE)
    assert (suffixed.canonical, suffixed.effort) == (plain.canonical, level)
