from __future__ import annotations

import pytest

from tests.routing.builders import combo, model, provider, snapshot
from troyproxy.catalog.providers import NO_AUTH, Provider
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import InvalidRequest
from troyproxy.routing.members import Candidate, leaves
from troyproxy.routing.names import resolve
from troyproxy.routing.resolvers import connected, drifting_of, nobody_drifts, resolve_default, root_of, steady_first

GROQ = provider("groq", model("llama", drifts=True, tools=True), aliases=("gq",))
OPENAI = provider("openai", model("gpt", tools=True))
GOOGLE = provider("google", model("gemini", tools=True))
PLAIN = provider("plain", model("chat", tools=False))
OTHER = provider("other", model("able", tools=None))


def picked(house: Snapshot, *, tools: bool = False, header: str | None = None, key: str | None = None) -> list[str]:
    found = resolve_default(house, wants_tools=tools, header_provider=header, key_provider=key)
    return [candidate.spec.partition("/")[0] for candidate in found]


def test_chat_takes_any_configured_provider_in_file_order() -> None:
    assert picked(snapshot(PLAIN, GROQ, OPENAI)) == ["plain", "groq", "openai"]


@pytest.mark.parametrize("tools", [False, True])
def test_the_callers_header_comes_before_the_keys_provider(*, tools: bool) -> None:
    house = snapshot(OTHER, OPENAI, GOOGLE, default_provider="openai")
    assert picked(house, tools=tools, header="google", key="other")[0] == "google"
    assert picked(house, tools=tools, key="google")[0] == "google"
    assert picked(house, tools=tools)[0] == "openai"


def test_the_default_provider_comes_after_the_callers() -> None:
    house = snapshot(PLAIN, GROQ, OPENAI, default_provider="openai")
    assert picked(house, header="gq") == ["groq", "openai", "plain"]


def test_an_unknown_header_is_refused_and_an_unknown_key_or_default_is_not() -> None:
    house = snapshot(PLAIN, default_provider="gone")
    assert picked(house, key="gone") == ["plain"]
    with pytest.raises(InvalidRequest):
        picked(house, header="gone")


def test_tools_go_to_openai_then_google_then_the_others() -> None:
    assert picked(snapshot(OTHER, GOOGLE, OPENAI), tools=True) == ["openai", "google", "other"]


def test_providers_without_tools_stay_in_the_list_so_that_a_plan_can_say_why_they_are_out() -> None:
    house = snapshot(PLAIN, OTHER)
    assert picked(house, tools=True, header="plain") == ["plain", "other"]


def test_models_marked_as_drifting_come_last_on_tool_turns_even_when_preferred() -> None:
    house = snapshot(GROQ, OTHER, OPENAI)
    assert picked(house, tools=True, header="groq") == ["openai", "other", "groq"]
    assert picked(house, header="groq") == ["groq", "other", "openai"]


def test_models_that_drift_lately_come_last_and_the_others_keep_their_order() -> None:
    house = snapshot(OPENAI, GOOGLE, OTHER)
    root = root_of(resolve("default", house), house, wants_tools=True)
    late = steady_first(root, {("openai", "gpt"), ("nobody", "gpt")})
    assert [leaf.spec for leaf in leaves(late)] == ["google/gemini", "other/able", "openai/gpt"]
    assert steady_first(root, nobody_drifts()) is root


def test_a_candidate_without_a_provider_drifts_nowhere() -> None:
    assert drifting_of([Candidate("x/y", None, "y")], {("x", "y"), ("", "y")}) == frozenset()


def test_only_groq_serves_tools_when_only_groq_is_there() -> None:
    assert picked(snapshot(GROQ), tools=True) == ["groq"]


def test_the_model_is_the_providers_default_with_its_alias_resolved() -> None:
    house = snapshot(
        provider("alpha", "m1", model("m2", aliases=("best",)), default_model="best"),
        provider("beta", "m1", default_model="new"),
        provider("gamma", "m1", "m2"),
        provider("delta"),
    )
    assert [c.spec for c in resolve_default(house, wants_tools=False)] == ["alpha/m2", "beta/new", "gamma/m1"]


@pytest.mark.parametrize(
    ("unit", "yes"),
    [
        (provider("a"), True),
        (provider("a", accounts=0), False),
        (Provider("a", auth=NO_AUTH), True),
        (Provider("a", app="inner"), True),
    ],
)
def test_a_provider_is_connected_by_account_keylessness_or_app(unit: Provider, *, yes: bool) -> None:
    assert connected(unit) is yes


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("default", ["none/m", "openai/gpt"]),
        ("auto", ["openai/gpt"]),
        ("daily", ["none/m"]),
        ("openai/gpt", ["openai/gpt"]),
    ],
)
def test_every_kind_of_name_has_its_tree(name: str, members: list[str]) -> None:
    house = snapshot(provider("none", "m", accounts=0), OPENAI, combo("daily", "none/m"))
    root = root_of(resolve(name, house), house, wants_tools=False)
    assert [leaf.spec for leaf in leaves(root)] == members
    assert (root.combo.strategy == "auto") is (name == "auto")


def test_an_unknown_header_is_refused_whatever_was_asked_for() -> None:
    house = snapshot(OPENAI)
    with pytest.raises(InvalidRequest):
        root_of(resolve("openai/gpt", house), house, wants_tools=False, header_provider="gone")
