"""Samples of the limits of keys; those of the rest of the state are shown in `test_metrics`."""

from __future__ import annotations

from troyproxy.telemetry.labels import MAX_KEYS, OTHER, Labels
from troyproxy.telemetry.status import StatusFacts, samples_of

NAMES = [f"key-{n}" for n in range(MAX_KEYS + 2)]


def test_refusals_are_counted_by_key_and_limit() -> None:
    samples = samples_of(StatusFacts(refusals={("ci", "day"): 3, ("ci", "tokens"): 1}), Labels(dict, tuple))
    assert samples["rate_limited_total"] == {("ci", "day"): 3.0, ("ci", "tokens"): 1.0}


def test_refusals_of_keys_beyond_the_bound_are_counted_together() -> None:
    samples = samples_of(StatusFacts(refusals={(name, "day"): 2 for name in NAMES}), Labels(dict, tuple))
    assert samples["rate_limited_total"][OTHER, "day"] == 4.0


def test_of_budgets_beyond_the_bound_the_one_with_least_left_is_shown() -> None:
    budgets = tuple((name, "day", 1 - n / len(NAMES)) for n, name in enumerate(NAMES))
    samples = samples_of(StatusFacts(budgets=budgets), Labels(dict, tuple))
    assert samples["budget_remaining_ratio"][OTHER, "day"] == budgets[-1][2]


def test_what_is_left_of_a_budget_is_shown() -> None:
    samples = samples_of(StatusFacts(budgets=(("ci", "month", 0.25),)), Labels(dict, tuple))
    assert samples["budget_remaining_ratio"] == {("ci", "month"): 0.25}
