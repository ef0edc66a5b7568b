from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.catalog.models import EFFORTS, Capabilities, Limits, Model
from troyproxy.catalog.providers import Accepts, EffortSpelling, Provider
from troyproxy.routing.effort import adapt, decide
from troyproxy.routing.effort_spelling import BUDGETS, budget_spelled, has_budget

THINKS = Model("m1", Capabilities(reasoning=True), efforts=("none", "low", "medium", "high"))
BUDGET, SWITCH = (Provider(s.value, accepts=Accepts(effort=s)) for s in (EffortSpelling.BUDGET, EffortSpelling.SWITCH))
Body = dict[str, object]


def sent(body: Body, suffix: str | None = None, *, model: Model = THINKS, at: Provider = BUDGET) -> Body:
    """What goes upstream of *body*."""
    return adapt(decide(body, suffix, None), body, model, at).applied(body)


def budget(tokens: int) -> dict[str, object]:
    return {"type": "enabled", "budget_tokens": tokens}


@pytest.mark.parametrize(("level", "tokens"), [("low", 2048), ("medium", 8192), ("high", 16384)])
def test_a_level_is_its_budget_in_the_table(level: str, tokens: int) -> None:
    assert sent({}, level) == {"thinking": budget(tokens)}


def test_a_budget_has_an_off_switch_where_none_is_known() -> None:
    assert sent({"reasoning_effort": "none"}) == {"thinking": {"type": "disabled"}}


def test_another_table_is_another_budget() -> None:
    body: Body = {}
    changes = adapt(decide(body, "low", None), body, THINKS, BUDGET, {**BUDGETS, "low": 3000})
    assert (changes.applied(body), changes.adapted) == ({"thinking": budget(3000)}, ("thinking.budget_tokens=3000",))


@pytest.mark.parametrize(
    ("body", "output", "tokens"),
    [
        ({"max_tokens": 4000}, None, 3000),
        ({"max_completion_tokens": 4000, "max_tokens": 9000}, None, 3000),
        ({"max_tokens": 100_000}, 8000, 6000),
        ({}, 8000, 6000),
        ({"max_tokens": 100_000}, None, 16384),
    ],
)
def test_thoughts_leave_a_quarter_of_the_output_to_the_answer(body: Body, output: int | None, tokens: int) -> None:
    model = Model("m1", Capabilities(reasoning=True), Limits(output=output))
    assert sent(body, "high", model=model)["thinking"] == budget(tokens)


@pytest.mark.parametrize(
    ("body", "output"), [({"max_tokens": 1300}, None), ({}, 1300), ({"reasoning_effort": "high"}, 1300)]
)
def test_there_are_no_thoughts_where_less_than_the_least_is_left(body: Body, output: int | None) -> None:
    model = Model("m1", Capabilities(reasoning=True), Limits(output=output))
    assert sent(body, "high", model=model).keys() <= {"max_tokens"}


@pytest.mark.parametrize(("level", "kind"), [("none", "disabled"), ("low", "enabled"), ("high", "enabled")])
def test_a_switch_is_on_or_off(level: str, kind: str) -> None:
    body: Body = {"reasoning": {"effort": level}}
    changes = adapt(decide(body, None, None), body, THINKS, SWITCH)
    assert changes.applied(body) == {"thinking": {"type": kind}}
    assert changes.adapted == ("-reasoning", f"thinking={kind}")


def test_a_switch_of_the_clients_own_is_left_alone() -> None:
    body: Body = {"thinking": {"type": "disabled"}}
    assert sent(body, "high", at=SWITCH) == body


@pytest.mark.parametrize(
    ("spelling", "body", "upstream"),
    [
        (EffortSpelling.BUDGET, {"reasoning": {"max_tokens": 2000}}, {"thinking": budget(2000)}),
        (EffortSpelling.BUDGET, {"reasoning": {"max_tokens": 9}, "thinking": budget(8)}, {"thinking": budget(8)}),
        (EffortSpelling.OBJECT, {"thinking": budget(2000)}, {"reasoning": {"max_tokens": 2000}}),
        (
            EffortSpelling.OBJECT,
            {"thinking": budget(2000), "reasoning": {"exclude": True}},
            {"reasoning": {"exclude": True, "max_tokens": 2000}},
        ),
        (
            EffortSpelling.OBJECT,
            {"thinking": budget(9), "reasoning": {"max_tokens": 8}},
            {"reasoning": {"max_tokens": 8}},
        ),
        (EffortSpelling.OBJECT, {"thinking": {"type": "enabled"}}, {"thinking": {"type": "enabled"}}),
        (EffortSpelling.FIELD, {"reasoning": {"max_tokens": 2000}}, {"reasoning": {"max_tokens": 2000}}),
        (EffortSpelling.SWITCH, {"reasoning": {"max_tokens": 2000}}, {"reasoning": {"max_tokens": 2000}}),
        (EffortSpelling.BUDGET, {"reasoning": {"max_tokens": "many"}}, {"reasoning": {"max_tokens": "many"}}),
    ],
)
def test_a_budget_is_counted_where_its_provider_counts(spelling: EffortSpelling, body: Body, upstream: Body) -> None:
    assert budget_spelled(body, spelling).applied(body) == upstream
    assert sent(body, "high", at=Provider("p", accepts=Accepts(effort=spelling))) == upstream


@pytest.mark.parametrize(
    ("body", "has"),
    [({"thinking": {}}, True), ({"thinking": True}, False), ({"reasoning": {"max_tokens": None}}, False), ({}, False)],
)
def test_a_budget_is_an_object_of_thoughts_or_tokens_of_reasoning(body: Body, *, has: bool) -> None:
    assert has_budget(body) is has


@given(
    st.sampled_from(sorted(BUDGETS)),
    st.none() | st.integers(1, 200_000),
    st.none() | st.integers(1, 200_000),
    st.fixed_dictionaries(dict.fromkeys(BUDGETS, st.integers(1, 1_000_000))),
)
def test_thoughts_are_at_least_the_least_and_never_all_of_the_output(
    level: str, asked: int | None, output: int | None, table: dict[str, int]
) -> None:
    model = Model("m1", Capabilities(reasoning=True), Limits(output=output), efforts=EFFORTS)
    body: Body = {} if asked is None else {"max_tokens": asked}
    value = adapt(decide(body, level, None), body, model, BUDGET, table).set.get("thinking")
    room = min((limit for limit in (asked, output) if limit is not None), default=2_000_000)
    tokens = value["budget_tokens"] if isinstance(value, dict) else None
    assert tokens is None or min(table.values()) <= tokens <= table[level]
    assert tokens is None or tokens < room
    assert (tokens is None) == (min(table[level], room * 3 // 4) < min(table.values()))
