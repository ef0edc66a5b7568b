from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.catalog.models import DEFAULT_EFFORTS, EFFORTS, Capabilities, Model
from troyproxy.catalog.providers import Accepts, EffortSpelling, Provider
from troyproxy.errors import InvalidEffort
from troyproxy.routing.effort import EffortDecision, adapt, clamp, decide
from troyproxy.routing.effort_spelling import BUDGETS, states_effort

THINKS = Model("m1", Capabilities(reasoning=True))
KNOWS_NONE = Model("m2", Capabilities(reasoning=True), efforts=("none", "low", "high"))
PLAIN = Model("m0", Capabilities(reasoning=False))
UNKNOWN = Model("mx")
FIELD, OBJECT, BUDGET, SWITCH = (Provider(s.value, accepts=Accepts(effort=s)) for s in EffortSpelling)


def sent(
    body: dict[str, object],
    *,
    suffix: str | None = None,
    default: str | None = None,
    model: Model = THINKS,
    at: Provider = FIELD,
) -> dict[str, object]:
    """What goes upstream of *body*."""
    return adapt(decide(body, suffix, default), body, model, at).applied(body)


@pytest.mark.parametrize(
    ("body", "suffix", "default", "decision"),
    [
        ({}, None, None, EffortDecision()),
        ({}, None, "low", EffortDecision("low", "default")),
        ({}, "high", "low", EffortDecision("high", "suffix")),
        ({"reasoning_effort": "low"}, None, "max", EffortDecision("low", "body")),
        ({"reasoning_effort": "low"}, "low", None, EffortDecision("low", "body")),
        ({"reasoning_effort": "low"}, "high", None, EffortDecision("low", "body", overruled="high")),
        ({"reasoning": {"effort": "low"}}, "high", None, EffortDecision("low", "body", overruled="high")),
        ({"reasoning_effort": None, "reasoning": None}, "high", None, EffortDecision("high", "suffix")),
        ({"reasoning": {"enabled": False}}, None, "high", EffortDecision("none", "body")),
        ({"reasoning": {"enabled": True}}, "high", None, EffortDecision("high", "suffix")),
        ({"reasoning": {"max_tokens": 5}}, "high", None, EffortDecision(None, "budget", True, "high")),
        ({"thinking": {"budget_tokens": 5}}, None, "high", EffortDecision(None, "budget", True)),
        ({"reasoning_effort": "low", "thinking": {}}, None, None, EffortDecision("low", "body", True)),
        ({"thinking": "yes"}, None, None, EffortDecision()),
        ({"reasoning_effort": "low", "reasoning": {"effort": "high"}}, None, None, EffortDecision("low", "body")),
    ],
)
def test_one_decision_per_request(
    body: dict[str, object], suffix: str | None, default: str | None, decision: EffortDecision
) -> None:
    assert decide(body, suffix, default) == decision


@pytest.mark.parametrize("value", ["ultra", "HIGH", "", 5, True, ["high"], {"level": "high"}])
@pytest.mark.parametrize("where", ["reasoning_effort", "reasoning.effort"])
def test_an_unknown_level_is_refused_with_its_param(value: object, where: str) -> None:
    body = {"reasoning_effort": value} if where == "reasoning_effort" else {"reasoning": {"effort": value}}
    with pytest.raises(InvalidEffort) as caught:
        decide(body, None, None)
    assert caught.value.param == where


@pytest.mark.parametrize("value", ["high", 5, ["high"]])
def test_reasoning_that_is_no_object_is_refused(value: object) -> None:
    with pytest.raises(InvalidEffort) as caught:
        decide({"reasoning": value}, None, None)
    assert caught.value.param == "reasoning"


@pytest.mark.parametrize(
    ("asked", "model", "level"),
    [
        ("minimal", THINKS, "low"),
        ("xhigh", THINKS, "high"),
        ("max", THINKS, "high"),
        ("medium", THINKS, "medium"),
        ("medium", KNOWS_NONE, "low"),
        ("none", KNOWS_NONE, "none"),
        ("none", THINKS, None),
        ("low", Model("m", efforts=("none",)), None),
        ("low", Model("m", efforts=("none", "xhigh", "max")), "xhigh"),
        ("high", Model("m", no_effort=True), None),
        ("none", Model("m", efforts=("none", "low"), no_effort=True), None),
    ],
)
def test_a_level_is_clamped_to_the_nearest_the_model_takes(asked: str, model: Model, level: str | None) -> None:
    assert clamp(asked, model) == level


@pytest.mark.parametrize("model", [THINKS, PLAIN, UNKNOWN])
@pytest.mark.parametrize("at", [FIELD, OBJECT, BUDGET, SWITCH])
def test_nothing_is_added_when_nobody_asked(model: Model, at: Provider) -> None:
    assert sent({"messages": []}, model=model, at=at) == {"messages": []}


@pytest.mark.parametrize(
    ("body", "suffix", "upstream"),
    [
        ({}, "high", {"reasoning_effort": "high"}),
        ({"reasoning_effort": "xhigh"}, None, {"reasoning_effort": "high"}),
        ({"reasoning": {"effort": "low"}}, "high", {"reasoning_effort": "low"}),
        ({"reasoning": None}, "low", {"reasoning_effort": "low"}),
        (
            {"reasoning_effort": "low", "include_reasoning": True},
            "high",
            {"reasoning_effort": "low", "include_reasoning": True},
        ),
        ({"reasoning": {"max_tokens": 2000}}, "high", {"reasoning": {"max_tokens": 2000}}),
        ({"reasoning_effort": "low", "thinking": {"budget_tokens": 9}}, None, {"reasoning_effort": "low"}),
        ({"reasoning_effort": "low", "thinking": None}, None, {"reasoning_effort": "low", "thinking": None}),
    ],
)
def test_exactly_one_spelling_reaches_a_provider_that_takes_the_field(
    body: dict[str, object], suffix: str | None, upstream: dict[str, object]
) -> None:
    assert sent(body, suffix=suffix) == upstream


@pytest.mark.parametrize(
    ("body", "suffix", "upstream"),
    [
        ({}, "high", {"reasoning": {"effort": "high"}}),
        ({"reasoning_effort": "low"}, None, {"reasoning": {"effort": "low"}}),
        ({"reasoning": {"effort": "max", "exclude": True}}, None, {"reasoning": {"effort": "high", "exclude": True}}),
        ({"reasoning": {"effort": "low", "enabled": True}}, None, {"reasoning": {"effort": "low", "enabled": True}}),
        ({"reasoning": {"effort": "low", "enabled": False}}, None, {"reasoning": {"effort": "low"}}),
        ({"reasoning": {"effort": "low", "max_tokens": 5}}, None, {"reasoning": {"max_tokens": 5}}),
        ({"reasoning_effort": "low", "thinking": {"type": "enabled"}}, None, {"thinking": {"type": "enabled"}}),
    ],
)
def test_exactly_one_spelling_reaches_a_provider_that_takes_the_object(
    body: dict[str, object], suffix: str | None, upstream: dict[str, object]
) -> None:
    assert sent(body, suffix=suffix, at=OBJECT) == upstream


@pytest.mark.parametrize(
    "body",
    [{"reasoning_effort": "none"}, {"reasoning": {"effort": "none"}}, {"reasoning": {"enabled": False}}],
)
@pytest.mark.parametrize("model", [THINKS, UNKNOWN])
def test_none_is_removed_for_models_that_do_not_know_it(body: dict[str, object], model: Model) -> None:
    assert sent(body, model=model, default="high") == {}


def test_none_is_sent_to_models_that_know_it() -> None:
    assert sent({"reasoning": {"enabled": False}}, model=KNOWS_NONE) == {"reasoning_effort": "none"}


def test_removing_an_effort_leaves_the_rest_of_the_object() -> None:
    assert sent({"reasoning": {"effort": "none", "exclude": True}}) == {"reasoning": {"exclude": True}}


@pytest.mark.parametrize("suffix", ["high", None])
def test_every_spelling_is_stripped_for_models_that_do_not_reason(suffix: str | None) -> None:
    body: dict[str, object] = {"n": 1, "reasoning_effort": "low", "reasoning": {"max_tokens": 9}, "thinking": {}}
    changes = adapt(decide(body, suffix, "low"), body, PLAIN, FIELD)
    assert changes.applied(body) == {"n": 1}
    assert changes.adapted == ("-reasoning_effort", "-reasoning", "-thinking")


def test_a_default_is_not_sent_where_the_capability_is_unknown() -> None:
    assert sent({}, default="high", model=UNKNOWN) == {}
    assert sent({}, suffix="high", default="low", model=UNKNOWN) == {"reasoning_effort": "high"}
    assert sent({"reasoning_effort": "low"}, default="high", model=UNKNOWN) == {"reasoning_effort": "low"}


@pytest.mark.parametrize(
    ("body", "suffix", "kept"),
    [({}, "high", False), ({"reasoning_effort": "high"}, None, True), ({}, "none", True), ({}, None, True)],
)
def test_sampling_is_removed_beside_an_effort_of_ours_only(
    body: dict[str, object], suffix: str | None, *, kept: bool
) -> None:
    picky = Model("m", Capabilities(reasoning=True), efforts=("none", "high"), no_sampling_with_effort=True)
    upstream = sent({**body, "temperature": 1, "top_p": 0.5, "seed": 1}, suffix=suffix, model=picky)
    assert ("temperature" in upstream, "top_p" in upstream, "seed" in upstream) == (kept, kept, True)


def test_sampling_stays_where_there_was_no_room_for_an_effort() -> None:
    picky = Model("m", Capabilities(reasoning=True), no_sampling_with_effort=True)
    body: dict[str, object] = {"temperature": 1, "max_tokens": 500}
    assert sent(body, suffix="high", model=picky, at=BUDGET) == body


@pytest.mark.parametrize("body", [{}, {"reasoning_effort": "high"}, {"reasoning": {"effort": "low"}}])
@pytest.mark.parametrize("at", [FIELD, OBJECT, BUDGET, SWITCH])
def test_a_model_that_takes_no_effort_gets_none_whoever_asked(body: dict[str, object], at: Provider) -> None:
    stubborn = Model("m", Capabilities(reasoning=True), no_effort=True)
    assert sent(body, suffix="high", default="low", model=stubborn, at=at) == {}


def test_a_model_that_takes_no_effort_keeps_what_else_the_client_said_of_reasoning() -> None:
    stubborn = Model("m", Capabilities(reasoning=True), no_effort=True)
    body: dict[str, object] = {"reasoning": {"enabled": True}}
    assert sent(body, default="high", model=stubborn) == body


@pytest.mark.parametrize(
    ("body", "suffix", "default", "told"),
    [
        ({}, None, None, ""),
        ({}, None, "low", "effort: low (from the settings)"),
        ({}, "high", None, "effort: high (from the name)"),
        (
            {"reasoning_effort": "low"},
            "high",
            None,
            "effort: low (from the body), which overrules the suffix high",
        ),
        ({"thinking": {}}, None, "high", "effort: a budget of its own (from the body)"),
    ],
)
def test_the_decision_tells_where_it_comes_from(
    body: dict[str, object], suffix: str | None, default: str | None, told: str
) -> None:
    assert decide(body, suffix, default).told == told


def test_every_level_but_none_has_a_budget() -> None:
    assert list(BUDGETS) == [level for level in EFFORTS if level != "none"]


@pytest.mark.parametrize(
    ("body", "stated"),
    [
        ({"reasoning_effort": "low"}, True),
        ({"reasoning": {"effort": "low"}}, True),
        ({"reasoning": {}}, False),
        ({"reasoning_effort": None}, False),
    ],
)
def test_a_body_states_an_effort_in_either_spelling(body: dict[str, object], *, stated: bool) -> None:
    assert states_effort(body) is stated


LEVELS = st.none() | st.sampled_from(EFFORTS)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "reasoning_effort": LEVELS,
        "reasoning": st.none()
        | st.fixed_dictionaries(
            {}, optional={"effort": LEVELS, "max_tokens": st.integers(1, 9), "enabled": st.booleans()}
        ),
        "thinking": st.none() | st.fixed_dictionaries({}, optional={"budget_tokens": st.integers(1, 9)}),
        "max_tokens": st.integers(1, 99_999),
        "temperature": st.floats(0, 2),
    },
)
MODELS = st.builds(
    lambda reasoning, efforts: Model("m", Capabilities(reasoning=reasoning), efforts=tuple(efforts)),
    st.none() | st.booleans(),
    st.lists(st.sampled_from(EFFORTS), unique=True),
)


@given(BODIES, LEVELS, LEVELS, MODELS)
def test_no_level_that_the_model_does_not_take_is_ever_set(
    body: dict[str, object], suffix: str | None, default: str | None, model: Model
) -> None:
    changes = adapt(decide(body, suffix, default), body, model, FIELD)
    level = changes.set.get("reasoning_effort")
    assert level is None or level in (model.efforts or DEFAULT_EFFORTS)


@given(BODIES, LEVELS, LEVELS, MODELS, st.sampled_from([FIELD, OBJECT, BUDGET, SWITCH]))
def test_adapting_twice_is_adapting_once(
    body: dict[str, object], suffix: str | None, default: str | None, model: Model, at: Provider
) -> None:
    decision = decide(body, suffix, default)
    once = adapt(decision, body, model, at).applied(body)
    assert adapt(decision, once, model, at).applied(once) == once


@given(BODIES, LEVELS, LEVELS, MODELS, st.sampled_from([FIELD, OBJECT, BUDGET, SWITCH]))
def test_an_effort_we_set_stands_alone(
    body: dict[str, object], suffix: str | None, default: str | None, model: Model, at: Provider
) -> None:
    changes = adapt(decide(body, suffix, default), body, model, at)
    ours = changes.set.keys() & {"reasoning_effort", "reasoning", "thinking"}
    upstream = {key for key in ("reasoning_effort", "reasoning") if changes.applied(body).get(key) is not None}
    assert len(ours) <= 1
    assert not ours & {"reasoning_effort"} or upstream == {"reasoning_effort"}
