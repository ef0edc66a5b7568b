"""Task fitness: patterns at token boundaries, blanks by family, and what a name alone tells."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.auto.fitness import UNKNOWN, Row, Task, table
from troyproxy.settings.fitness import load_fitness

TABLE = load_fitness()
CODING, PLANNING, ANALYSIS = Task.CODING, Task.PLANNING, Task.ANALYSIS


@pytest.mark.parametrize(
    ("model", "pattern"),
    [
        ("claude-sonnet-4-5", "claude-sonnet"),
        ("anthropic/claude-3-5-sonnet-20241022", "claude-*-sonnet"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-4o-2024-11-20", "gpt-4o"),
        ("o1-preview", "o1"),
        ("openai/gpt-5-codex", "gpt-5-codex"),
        ("gemini-2.5-pro-preview", "gemini-2.5-pro"),
        ("gemini-2.0-flash-lite", "gemini-*-flash-lite"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek-v3.2"),
        ("llama-3.3-70b-versatile", "llama"),
        ("grok-4-fast-reasoning", "grok-4-fast"),
    ],
)
def test_a_model_is_found_under_the_pattern_that_says_most_of_it(model: str, pattern: str) -> None:
    row = TABLE.row_of(model)
    assert row is not None
    assert row.pattern == pattern


@pytest.mark.parametrize("model", ["o10", "gpt4omni", "olmo-2", "my-own-model", ""])
def test_a_pattern_matches_whole_tokens_only(model: str) -> None:
    assert TABLE.row_of(model) is None


def test_the_table_has_every_task_for_at_least_thirty_patterns() -> None:
    assert len(TABLE.rows) >= 30
    for _, row in TABLE.rows:
        assert set(TABLE.cells_of(row.pattern.replace("*", "3"))) == set(Task)
        assert all(0 < value <= 1 for value in row.cells.values())
        assert row.family in TABLE.families


def test_a_blank_cell_is_the_rows_default_and_then_the_familys() -> None:
    made = table([Row("m", {CODING: 0.9, Task.DEFAULT: 0.7}, "f"), Row("n", {CODING: 0.8}, "f")], {"f": 0.6})
    assert made.cells_of("m")[PLANNING] == 0.7
    assert made.cells_of("n")[PLANNING] == 0.6
    assert table([Row("n", {}, "none")], {}).cells_of("n")[PLANNING] == UNKNOWN


def test_an_unknown_model_is_a_half_for_everything() -> None:
    assert set(TABLE.cells_of("my-own-model").values()) == {UNKNOWN}


def test_a_coder_is_good_at_coding_whatever_the_table_says() -> None:
    assert TABLE.cells_of("nobody/some-coder-7b")[CODING] == 0.85
    assert TABLE.cells_of("qwen3-coder-480b")[CODING] == 0.85
    assert TABLE.cells_of("deepseek-coder-v2")[CODING] == 0.90
    assert TABLE.cells_of("decoder-x")[CODING] == UNKNOWN


def test_fast_and_thinking_tell_something_of_models_that_the_table_does_not_know() -> None:
    assert TABLE.cells_of("acme-fast")[CODING] == pytest.approx(0.55)
    thinking = TABLE.cells_of("acme-thinking")
    assert (thinking[PLANNING], thinking[ANALYSIS], thinking[CODING]) == (0.6, 0.6, 0.5)
    assert TABLE.cells_of("qwen3-thinking")[PLANNING] == 0.72


def test_a_users_own_value_wins() -> None:
    assert TABLE.cells_of("some-coder", {CODING: 0.1})[CODING] == 0.1


def test_a_users_default_is_what_he_says_nothing_of_where_the_table_knows_nothing() -> None:
    cells = TABLE.cells_of("acme-thinking", {Task.DEFAULT: 0.95, CODING: 0.1})
    assert (cells[Task.DEBUGGING], cells[PLANNING], cells[CODING]) == (0.95, 1.0, 0.1)
    assert TABLE.cells_of("qwen3-thinking", {Task.DEFAULT: 0.1})[PLANNING] == 0.72


def test_of_equal_patterns_the_later_row_wins() -> None:
    made = table([Row("m", {CODING: 0.1}), Row("m", {CODING: 0.2})], {})
    assert made.cells_of("m")[CODING] == 0.2


@given(st.text(max_size=40))
def test_any_name_has_a_fitness_for_every_task(model: str) -> None:
    cells = TABLE.cells_of(model)
    assert set(cells) == set(Task)
    assert all(0 <= value <= 1 for value in cells.values())


SEED = Path(__file__).parent / "fitness_seed.csv"


@pytest.mark.parametrize("line", list(csv.DictReader(SEED.read_text().split("\n"))), ids=lambda line: line["pattern"])
def test_the_table_holds_the_starting_values(line: dict[str, str]) -> None:
    patterns = {row.pattern: row for _, row in TABLE.rows}
    given_ = {Task(name): float(value) for name, value in line.items() if name != "pattern" and value}
    assert given_.items() <= patterns[line["pattern"]].cells.items()
