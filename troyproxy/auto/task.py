"""What a request is about: six tasks, found by weighted signs in the system prompt, the last message and the tools.

A hint of the caller decides. Below a confidence nothing is claimed, and the task is `default`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from troyproxy.auto.brief import Brief
from troyproxy.auto.fitness import Task
from troyproxy.auto.signs import SIGNS, counted

CONFIDENT: Final = 2.0
"""Points that a task needs to be claimed."""
LEAD: Final = 1.25
"""How often a sign counts in the first words of the message, where people say what they want."""
OPENING: Final = 160
GIST, HEAD = 1200, 800
"""Characters of a long text that are read for words, and how many of them at its beginning; the rest is its end."""
SYSTEM_SHARE: Final = 0.4
HINTS: Final[Mapping[str, Task]] = MappingProxyType(
    {task.value: task for task in Task}
    | {"code": Task.CODING, "debug": Task.DEBUGGING, "docs": Task.DOCUMENTATION, "plan": Task.PLANNING}
)
_TASKS: Final[tuple[Task, ...]] = tuple(task for task in Task if task is not Task.DEFAULT)
_TRACE: Final = re.compile(
    r"^Traceback \(most recent|^[ \t]{1,40}at [\w.$<>]{1,200} ?\(|^panicked at|^[ \t]{0,40}File \"[^\n]+\", line \d",
    re.MULTILINE,
)
_OF_TRACES: Final = ("Traceback (most recent", "at ", 'File "')
"""One of these is in every trace: a look for a text costs far less than a pattern."""
_DIFF: Final = re.compile(r"^(?:diff --git |@@ -\d|\+\+\+ b/)", re.MULTILINE)
_OF_DIFFS: Final = ("diff --git ", "@@ -", "+++ b/")
_FENCE: Final = "```"
_EDITING: Final = re.compile(r"edit|bash|grep|write|patch|shell|glob|read_?file|terminal", re.IGNORECASE)


def task_of(brief: Brief) -> Task:
    """Return the task of a request; `Task.DEFAULT` where the signs are too few."""
    if brief.hint is not None and brief.hint.strip().lower() in HINTS:
        return HINTS[brief.hint.strip().lower()]
    points = _points(brief)
    best = max(points, key=points.__getitem__)
    return best if points[best] >= CONFIDENT else Task.DEFAULT


def _points(brief: Brief) -> dict[Task, float]:
    points = dict.fromkeys(_TASKS, 0.0)
    gist = brief.last if len(brief.last) <= GIST else f"{brief.last[:HEAD]}\n{brief.last[HEAD - GIST :]}"
    opening, text, system = map(counted, (gist[:OPENING].lower(), gist[OPENING:].lower(), brief.system[:HEAD].lower()))
    for sign, first, later, told in zip(SIGNS, opening, text, system, strict=True):
        if first or later or told:
            points[sign.task] += sign.weight * (LEAD * first + later / 2 + (SYSTEM_SHARE if told else 0.0))
    if _within(_TRACE, _OF_TRACES, gist):
        points[Task.DEBUGGING] += 4.0
    if gist.startswith(_FENCE) or f"\n{_FENCE}" in gist:
        points[Task.CODING] += 1.0
    if _within(_DIFF, _OF_DIFFS, gist):
        points[Task.REVIEW] += 3.0 if points[Task.REVIEW] > 0 else 1.0
        points[Task.CODING] += 1.0
    if brief.tools and any(_EDITING.search(name) for name in brief.tools):
        points[Task.CODING] += 1.0
    return points


def _within(pattern: re.Pattern[str], literals: tuple[str, ...], text: str) -> bool:
    for literal in literals:
        if literal in text:
            return pattern.search(text) is not None
    return False
