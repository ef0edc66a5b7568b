"""config.auto of stored combos: what is read, and every problem by its path."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.auto.config import PLAIN, BadAuto, read_auto
from troyproxy.auto.weights import DEFAULT, PACKS


def problems(raw: object) -> dict[str, str]:
    with pytest.raises(BadAuto) as caught:
        read_auto(raw)
    return dict(caught.value.problems)


def test_nothing_said_is_plain_auto() -> None:
    assert read_auto(None) is PLAIN
    assert read_auto({}).weights == DEFAULT


def test_everything_that_may_be_said_is_read() -> None:
    found = read_auto(
        {
            "candidatePool": ["anthropic", "google"],
            "modePack": "cost-saver",
            "explorationRate": 0.1,
            "budgetUsd": 2,
            "budgetPolicy": "strict",
        }
    )
    assert (found.pool, found.weights, found.exploration) == (("anthropic", "google"), PACKS["cost-saver"], 0.1)
    assert (found.budget_usd, found.strict) == (2.0, True)


def test_weights_are_laid_over_the_pack() -> None:
    found = read_auto({"modePack": "fast", "weights": {"taskFit": 0.2}})
    assert found.weights["latencyInv"] == pytest.approx(0.35 / 1.1)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ([], ""),
        ({"speed": 1}, "speed"),
        ({"candidatePool": "openai"}, "candidatePool"),
        ({"candidatePool": ["a"] * 201}, "candidatePool"),
        ({"candidatePool": ["a", 7]}, "candidatePool[1]"),
        ({"weights": [1]}, "weights"),
        ({"weights": {"speed": 1}}, "weights.speed"),
        ({"weights": {"health": -1}}, "weights.health"),
        ({"weights": {"health": math.nan}}, "weights.health"),
        ({"weights": {"health": 0}}, "weights"),
        ({"modePack": "turbo"}, "modePack"),
        ({"modePack": ["fast"]}, "modePack"),
        ({"explorationRate": 1.5}, "explorationRate"),
        ({"explorationRate": True}, "explorationRate"),
        ({"budgetUsd": -1}, "budgetUsd"),
        ({"budgetUsd": math.inf}, "budgetUsd"),
        ({"budgetPolicy": "loose"}, "budgetPolicy"),
    ],
)
def test_a_problem_is_told_by_its_path(raw: object, path: str) -> None:
    assert set(problems(raw)) == {path}


def test_all_problems_are_told_at_once() -> None:
    assert set(problems({"speed": 1, "modePack": "x", "weights": {"health": -1}})) == {
        "speed",
        "modePack",
        "weights.health",
    }


@given(st.recursive(st.none() | st.floats() | st.text(), lambda i: st.lists(i) | st.dictionaries(st.text(), i)))
def test_no_value_is_too_odd(raw: object) -> None:
    try:
        found = read_auto(raw)
    except BadAuto as error:
        assert error.problems  # noqa: PT017 -- either is right, and neither may be anything else
    else:
        assert sum(found.weights.values()) == pytest.approx(1.0)
