from __future__ import annotations

from troyproxy.auto.brief import brief_of
from troyproxy.auto.fitness import Task
from troyproxy.auto.gist import gist_of
from troyproxy.auto.specificity import specificity


def test_the_gist_is_what_a_request_is_scored_by_without_its_text() -> None:
    tools = [{"type": "function", "function": {"name": "search"}}]
    brief = brief_of({"messages": [{"role": "user", "content": "hello"}], "tools": tools}, hint="review")
    gist = gist_of(brief)
    assert (gist.task, gist.specificity, gist.tools) == (Task.REVIEW, specificity(brief), True)


def test_without_tools_it_says_so() -> None:
    assert gist_of(brief_of({"messages": []})).tools is False
