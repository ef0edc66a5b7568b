from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.catalog.models import Capabilities, Limits, Model
from troyproxy.catalog.providers import Accepts, EffortSpelling, Provider
from troyproxy.routing.adapt import EFFORT, Changes, may_learn, member_changes, parameter
from troyproxy.routing.effort import EffortDecision, decide
from troyproxy.routing.members import Candidate

ALPHA = Provider("alpha")
THINKS = Model("m1", Capabilities(reasoning=True, tools=True), Limits(output=100))
PLAIN = Model("m0", Capabilities(reasoning=False, tools=False))
M1 = Candidate("alpha/m1", ALPHA, "m1", THINKS)
M0 = Candidate("alpha/m0", ALPHA, "m0", PLAIN)
MX = Candidate("alpha/mx", ALPHA, "mx")
STUBBORN = Candidate("beta/m1", Provider("beta", accepts=Accepts(stream_options=False)), "m1", THINKS)
LONG = Model("m1", Capabilities(reasoning=True))
THINKER = Candidate("c/m1", Provider("c", accepts=Accepts(effort=EffortSpelling.BUDGET)), "m1", LONG)
NOBODY = EffortDecision()
INJECTED = EffortDecision("high", "suffix")
STREAM = {"model": "m1", "stream": True}


def adapted(
    body: dict[str, object],
    to: Candidate = M1,
    decision: EffortDecision = NOBODY,
    learned: Collection[str] = (),
    *,
    wants_usage: bool = True,
) -> tuple[dict[str, object], tuple[str, ...]]:
    """What goes upstream, and what is listed as changed."""
    changes = member_changes(body, to, decision, learned=learned, wants_usage=wants_usage)
    return changes.applied(body), changes.adapted


def test_the_model_is_the_members_and_not_listed_as_a_change() -> None:
    assert adapted({"model": "combo", "n": 1}) == ({"model": "m1", "n": 1}, ())


def test_a_body_that_fits_is_not_changed() -> None:
    assert member_changes({"model": "m1"}, M1, NOBODY) == Changes()


@pytest.mark.parametrize(
    ("own", "upstream"),
    [
        (None, {"include_usage": True}),
        ({}, {"include_usage": True}),
        ({"include_usage": False}, {"include_usage": True}),
        ({"include_obfuscation": False, "include_usage": False}, {"include_obfuscation": False, "include_usage": True}),
    ],
)
def test_a_stream_asks_for_usage_beside_what_the_client_sent(own: object, upstream: object) -> None:
    body, listed = adapted({**STREAM, "stream_options": own})
    assert body["stream_options"] == upstream
    assert listed == ("stream_options.include_usage=true",)


def test_a_stream_without_options_gets_them() -> None:
    assert adapted(STREAM)[0]["stream_options"] == {"include_usage": True}


def test_a_client_that_asks_for_usage_is_not_changed() -> None:
    body = {**STREAM, "stream_options": {"include_usage": True}}
    assert adapted(body) == (body, ())


@pytest.mark.parametrize("stream", [False, None, 1, "true"])
def test_stream_options_never_go_beside_what_is_no_stream(stream: object) -> None:
    body = {"model": "m1", "stream": stream, "stream_options": {"include_usage": True}}
    assert adapted(body) == ({"model": "m1", "stream": stream}, ("-stream_options",))


def test_other_routes_are_not_asked_for_usage() -> None:
    assert adapted(STREAM, wants_usage=False) == (STREAM, ())


def test_a_provider_that_does_not_take_the_options_never_gets_them() -> None:
    assert adapted(STREAM, STUBBORN) == (STREAM, ())
    assert adapted({**STREAM, "stream_options": {}}, STUBBORN) == (STREAM, ("-stream_options",))


def test_learned_stream_options_are_not_added_and_the_clients_own_stay() -> None:
    assert adapted(STREAM, learned={"stream_options"}) == (STREAM, ())
    assert adapted({**STREAM, "stream_options": None}, learned={"stream_options"})[0] == STREAM
    own = {**STREAM, "stream_options": {"include_obfuscation": False}}
    assert adapted(own, learned={"stream_options"}) == (own, ())


@pytest.mark.parametrize("key", ["max_tokens", "max_completion_tokens"])
def test_an_answer_longer_than_the_members_limit_is_clamped_and_listed(key: str) -> None:
    assert adapted({"model": "m1", key: 999}) == ({"model": "m1", key: 100}, (f"{key}:100",))


@pytest.mark.parametrize(("to", "value"), [(M1, 100), (M1, None), (M1, "999"), (MX, 999)])
def test_an_answer_within_the_limit_or_without_one_is_left_alone(to: Candidate, value: object) -> None:
    assert adapted({"model": to.model, "max_tokens": value}, to)[1] == ()


@pytest.mark.parametrize("empty", [[], None])
def test_empty_tools_and_their_companions_are_kept_from_members_without_tools(empty: object) -> None:
    body = {"model": "m0", "tools": empty, "functions": empty, "tool_choice": "auto", "parallel_tool_calls": True}
    assert adapted(body, M0)[0] == {"model": "m0"}


@pytest.mark.parametrize("to", [M1, MX])
def test_empty_tools_reach_members_that_may_have_tools(to: Candidate) -> None:
    body: dict[str, object] = {"model": to.model, "tools": [], "tool_choice": "auto"}
    assert adapted(body, to) == (body, ())


def test_a_tool_choice_alone_is_the_clients_own() -> None:
    body: dict[str, object] = {"model": "m0", "tool_choice": "none"}
    assert adapted(body, M0) == (body, ())


def test_the_effort_is_adapted_per_member() -> None:
    body: dict[str, object] = {"model": "m1", "reasoning_effort": "max"}
    decision = decide(body, None, None)
    assert adapted(body, M1, decision)[1] == ("reasoning_effort=high",)
    assert adapted(body, M0, decision)[1] == ("-reasoning_effort",)


def test_a_member_without_a_provider_gets_no_effort() -> None:
    lost = Candidate("x/y", None, "y")
    assert adapted({"model": "y"}, lost, INJECTED) == ({"model": "y"}, ())


@pytest.mark.parametrize(
    "body",
    [{"model": "m1"}, {"model": "m1", "reasoning_effort": "high"}, {"model": "m1", "reasoning": {"effort": "high"}}],
)
def test_a_learned_effort_is_dropped_whoever_set_it(body: dict[str, object]) -> None:
    assert adapted(body, M1, decide(body, "high", None), {EFFORT})[0] == {"model": "m1"}


def test_a_learned_effort_leaves_the_clients_budget() -> None:
    body: dict[str, object] = {"model": "m1", "thinking": {"budget_tokens": 5}}
    assert adapted(body, M1, decide(body, None, None), {EFFORT}) == (body, ())


def test_a_learned_effort_leaves_a_budget_as_its_provider_counts_it() -> None:
    body: dict[str, object] = {"model": "m1", "reasoning_effort": "high", "reasoning": {"max_tokens": 2000}}
    upstream, _ = adapted(body, THINKER, decide(body, None, None), {EFFORT})
    assert upstream == {"model": "m1", "thinking": {"type": "enabled", "budget_tokens": 2000}}


def test_the_table_of_budgets_reaches_the_member() -> None:
    body: dict[str, object] = {"model": "m1"}
    changes = member_changes(body, THINKER, INJECTED, budgets={"minimal": 1, "high": 7})
    assert changes.set["thinking"] == {"type": "enabled", "budget_tokens": 7}


def test_a_learned_effort_changes_nothing_for_models_that_get_none() -> None:
    body: dict[str, object] = {"model": "m0", "thinking": {}, "reasoning_effort": "low"}
    assert adapted(body, M0, decide(body, None, None), {EFFORT})[0] == {"model": "m0"}


def test_learned_sampling_fields_are_dropped_beside_an_injected_effort_only() -> None:
    body: dict[str, object] = {"model": "m1", "temperature": 1, "top_p": 1}
    assert adapted(body, M1, INJECTED, {"temperature"})[0] == {"model": "m1", "top_p": 1, "reasoning_effort": "high"}
    assert adapted(body, M1, NOBODY, {"temperature"}) == (body, ())
    own: dict[str, object] = {**body, "reasoning_effort": "high"}
    assert adapted(own, M1, decide(own, None, None), {"temperature"}) == (own, ())


def test_learned_sampling_that_is_removed_anyway_is_listed_once() -> None:
    picky = replace(M1, facts=replace(THINKS, no_sampling_with_effort=True))
    listed = adapted({"model": "m1", "temperature": 1}, picky, INJECTED, {"temperature"})[1]
    assert listed.count("-temperature") == 1


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("reasoning_effort", EFFORT),
        ("reasoning.effort", EFFORT),
        ("reasoning", EFFORT),
        ("body.reasoning_effort", EFFORT),
        ("thinking.budget_tokens", EFFORT),
        ("/reasoning/effort", EFFORT),
        ("$.body.reasoning_effort", EFFORT),
        ("reasoningEffort", EFFORT),
        ("stream_options", "stream_options"),
        ("stream_options.include_usage", "stream_options"),
        ("body.stream_options", "stream_options"),
        (" temperature ", "temperature"),
        ("max_tokens", "max_tokens"),
        ("", ""),
    ],
)
def test_a_rejected_parameter_is_remembered_under_one_name(name: str, known: str) -> None:
    assert parameter(name) == known


def learns(name: str, body: dict[str, object], *, suffix: str | None = None, to: Candidate = M1) -> bool:
    decision = decide(body, suffix, None)
    return may_learn(name, body, member_changes(body, to, decision, wants_usage=True), decision)


@pytest.mark.parametrize(
    ("name", "body", "suffix", "to", "may"),
    [
        ("reasoning_effort", {"reasoning_effort": "high"}, None, M1, True),
        ("reasoning_effort", {"reasoning_effort": "high", "reasoning": None}, None, M1, True),
        ("reasoning.effort", {}, "high", M1, True),
        ("thinking", {}, "high", THINKER, True),
        ("thinking", {"thinking": {"budget_tokens": 5}}, None, THINKER, False),
        ("thinking", {"reasoning": {"max_tokens": 5}}, None, THINKER, False),
        ("reasoning", {"reasoning": {"max_tokens": 5}}, None, M1, False),
        ("reasoning_effort", {}, None, M1, False),
        ("reasoning_effort", {"reasoning_effort": "high"}, None, M0, False),
        ("stream_options", {"stream": True}, None, M1, True),
        ("stream_options", {"stream": True, "stream_options": None}, None, M1, True),
        ("stream_options", {"stream": True, "stream_options": {}}, None, M1, False),
        ("stream_options", {}, None, M1, False),
        ("temperature", {"temperature": 1}, "high", M1, True),
        ("top_p", {"temperature": 1}, "high", M1, False),
        ("temperature", {"temperature": 1, "reasoning_effort": "high"}, None, M1, False),
        ("temperature", {"temperature": 1}, "high", M0, False),
        ("max_tokens", {"max_tokens": 999_999, "reasoning_effort": "high"}, None, M1, False),
        ("messages", {"messages": []}, "high", M1, False),
        ("", {}, "high", M1, False),
    ],
)
def test_only_what_the_gateway_may_drop_is_learned(
    name: str, body: dict[str, object], suffix: str | None, to: Candidate, *, may: bool
) -> None:
    assert learns(name, body, suffix=suffix, to=to) is may


@given(
    st.sampled_from(["reasoning_effort", "stream_options", "temperature", "top_p"]),
    st.fixed_dictionaries(
        {},
        optional={
            "stream": st.booleans(),
            "stream_options": st.none() | st.just({"include_obfuscation": False}),
            "reasoning_effort": st.sampled_from(["low", "max"]),
            "temperature": st.just(1),
            "top_p": st.just(1),
        },
    ),
    st.none() | st.just("high"),
    st.sampled_from([M1, M0, MX, STUBBORN]),
)
def test_what_may_be_learned_is_gone_from_the_retry(
    name: str, body: dict[str, object], suffix: str | None, to: Candidate
) -> None:
    decision = decide(body, suffix, None)
    first = member_changes(body, to, decision, wants_usage=True)
    second = member_changes(body, to, decision, learned={parameter(name)}, wants_usage=True)
    gone = name not in second.applied(body) or body.get(name) is not None
    assert not may_learn(name, body, first, decision) or gone
    assert not may_learn(name, body, first, decision) or second.applied(body) != first.applied(body)
