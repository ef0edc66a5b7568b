"""The task detector: the labelled prompts, hints, tools, and odd bodies."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.auto.prompts import DIFF, PROMPTS, TRACE
from troyproxy.auto.brief import LONGEST, Brief, brief_of
from troyproxy.auto.fitness import Task
from troyproxy.auto.task import HINTS, task_of


def _said(text: str, **more: object) -> Task:
    return task_of(brief_of({"messages": [{"role": "user", "content": text}], **more}))


def test_at_least_six_of_seven_labelled_prompts_are_told_right() -> None:
    wrong = [(label, _said(text), text) for label, text in PROMPTS if _said(text) != label]
    assert len(PROMPTS) >= 60
    assert len(wrong) <= 0.15 * len(PROMPTS), wrong


@pytest.mark.parametrize("task", list(Task))
def test_every_task_is_reachable_and_mostly_right(task: Task) -> None:
    labelled = [text for label, text in PROMPTS if label == task]
    found = Counter(_said(text) for text in labelled)
    assert found[task] >= 0.7 * len(labelled), found


@pytest.mark.parametrize("hint", HINTS)
def test_a_hint_of_the_caller_decides(hint: str) -> None:
    brief = brief_of({"messages": [{"role": "user", "content": TRACE}]}, hint=f" {hint.upper()} ")
    assert task_of(brief) is HINTS[hint]


def test_a_hint_in_the_metadata_decides_too_and_the_header_comes_first() -> None:
    payload = {"messages": [], "metadata": {"task": "planning"}}
    assert task_of(brief_of(payload)) is Task.PLANNING
    assert task_of(brief_of(payload, hint="review")) is Task.REVIEW


def test_a_hint_that_names_no_task_is_ignored() -> None:
    assert _said(TRACE, metadata={"task": "cooking"}) is Task.DEBUGGING


def test_a_diff_alone_leans_to_nothing_certain_but_with_a_review_word_it_is_a_review() -> None:
    assert _said(DIFF) in {Task.CODING, Task.DEFAULT}
    assert _said(f"What do you think, can this be improved? Review: {DIFF}") is Task.REVIEW


def test_tools_that_edit_lean_to_coding() -> None:
    tools = [{"type": "function", "function": {"name": "bash"}}]
    assert _said("the function is too slow", tools=tools) is Task.CODING
    assert _said("the soup is too salty", tools=tools) is Task.DEFAULT


def test_the_system_prompt_counts_a_little() -> None:
    messages = [{"role": "system", "content": "You write documentation."}, {"role": "user", "content": "The docs."}]
    assert task_of(brief_of({"messages": messages})) is Task.DOCUMENTATION


def test_a_long_message_is_read_at_both_ends() -> None:
    text = "x" * 50_000 + "\nPlease write docstrings and a README for this."
    assert len(brief_of({"messages": [{"role": "user", "content": text}]}).last) <= LONGEST + 1
    assert _said("Write docstrings and a README. " + "x" * 50_000) is Task.DOCUMENTATION


def test_the_last_user_message_is_what_is_asked() -> None:
    messages = [
        {"role": "user", "content": TRACE},
        {"role": "assistant", "content": "Fixed."},
        {"role": "user", "content": [{"type": "text", "text": "Now write the README."}, {"type": "image_url"}]},
    ]
    brief = brief_of({"messages": messages})
    assert (brief.last, brief.messages) == ("Now write the README.", 3)


FIELDS = ["role", "content", "text", "function", "name", "task", "type"]
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["messages", "tools", "metadata"]), ODD))
def test_no_body_is_too_odd_for_a_brief(payload: dict[str, Any]) -> None:
    brief = brief_of(payload)
    assert isinstance(brief, Brief)
    assert task_of(brief) in Task
