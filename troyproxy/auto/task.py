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

CONFIDENT: Final = 2.0
"""Points that a task needs to be claimed."""
LEAD: Final = 1.25
"""How often a sign counts in the first words of the message, where people say what they want."""
OPENING: Final = 160
GIST, HEAD = 1200, 800
"""Characters of a long text that are read for words, and how many of them at its beginning; the rest is its end."""
SYSTEM_SHARE: Final = 0.4
MOST: Final = 3
"""How often one sign counts, at most."""
HINTS: Final[Mapping[str, Task]] = MappingProxyType(
    {task.value: task for task in Task}
    | {"code": Task.CODING, "debug": Task.DEBUGGING, "docs": Task.DOCUMENTATION, "plan": Task.PLANNING}
)


def _sign(words: str) -> re.Pattern[str]:
    """Return the pattern of *words*, for text in lower case: a case-blind pattern is several times slower."""
    return re.compile(words)


def _shape(lines: str) -> re.Pattern[str]:
    return re.compile(lines, re.MULTILINE)


_WORDS: Final = (
    (Task.DEBUGGING, 3.0, _sign(r"\b(?:debug(?:ging)?|traceback|stack ?trace|segfault|core dump)\b")),
    (
        Task.DEBUGGING,
        2.0,
        _sign(
            r"\b(?:fix(?:es|ed)?|broken|crash(?:es|ed|ing)?|fail(?:s|ed|ing)|hangs?|freez(?:es|ing)|bugs?|deadlocks?"
            r"|doesn'?t work|does not work|not working|(?:throws?|raises?|raised|get(?:ting)?)"
            r" (?:an? )?\w*(?:error|exception))\b"
        ),
    ),
    (Task.DEBUGGING, 1.0, _sign(r"\b(?:\w*(?:error|exception)|undefined|nan|exit code|root cause)\b")),
    (
        Task.REVIEW,
        3.0,
        _sign(r"\b(?:code review|pull request|review (?:this|my|the|these|it)|pr #?\d*|merge request)\b"),
    ),
    (
        Task.REVIEW,
        2.0,
        _sign(
            r"\b(?:review|critique|feedback on|nitpicks?|code smells?|approve|any (?:issues|problems|concerns) with)\b"
        ),
    ),
    (
        Task.REVIEW,
        1.0,
        _sign(r"\b(?:improve(?:ments)?|readab\w+|vulnerabilit\w+|best practices?|clean(?:er)?|audit)\b"),
    ),
    (
        Task.PLANNING,
        3.0,
        _sign(r"\b(?:roadmap|project plan|migration plan|milestones?|architecture for|design (?:a|an|the) \w*)\b"),
    ),
    (
        Task.PLANNING,
        2.0,
        _sign(
            r"\b(?:plan(?:ning|s)?|strategy|outline (?:a|the|how)|phases?|break (?:it|this|that) down|schedule"
            r"|backlog)\b"
        ),
    ),
    (
        Task.PLANNING,
        1.0,
        _sign(r"\b(?:architect(?:ure)?|approach|steps? (?:to|for)|prioriti[sz]e|scope|estimate|sprint)\b"),
    ),
    (
        Task.DOCUMENTATION,
        3.0,
        _sign(r"\b(?:docstrings?|readme|changelog|release notes|api docs?|documentation|jsdoc|man page|user guide)\b"),
    ),
    (Task.DOCUMENTATION, 2.0, _sign(r"\b(?:document (?:this|the|these|how)|tutorial|write up|docs|how-to)\b")),
    (Task.DOCUMENTATION, 1.0, _sign(r"\b(?:comments?|summar(?:y|ise|ize)|explain in (?:plain|simple))\b")),
    (
        Task.ANALYSIS,
        2.0,
        _sign(
            r"\b(?:analy[sz](?:e|is|ing)|compare|comparison|trade-?offs?|pros and cons|correlation|trends?|data ?set"
            r"|evaluate|what does (?:this|the) data|statistic(?:s|al)?|interpret|difference between|versus|vs\.?)\b"
        ),
    ),
    (
        Task.ANALYSIS,
        1.2,
        _sign(r"\b(?:why|explain|data|metrics|insights?|causes?|impact|figures|survey|revenue|churn)\b"),
    ),
    (
        Task.CODING,
        2.0,
        _sign(
            r"\b(?:implement|refactor|(?:write|create|build|make|generate|add|code) (?:me )?"
            r"(?:a |an |the |some |unit )*"
            r"(?:\w+ ){0,3}(?:function|class|script|program|method|endpoint|component|api|module|test|tests|query|regex"
            r"|parser|app|cli|hook|decorator|middleware|server|client|feature|button|form|page|loop|algorithm|schema))\b"
        ),
    ),
    (
        Task.CODING,
        1.0,
        _sign(
            r"\b(?:python|typescript|javascript|rust|golang|java|kotlin|swift|sql|react|django|fastapi|bash|c\+\+|html|css"
            r"|port (?:this|it) to|convert (?:this|it|the)|write|function|code|rename|type hints?)\b"
        ),
    ),
)
_SHAPES: Final = (
    (
        Task.DEBUGGING,
        4.0,
        _shape(r"^Traceback \(most recent|^\s+at [\w.$<>]+ ?\(|^panicked at|^\s*File \".+\", line \d+"),
    ),
    (Task.CODING, 1.0, _shape(r"^```")),
)
_DIFF: Final = _shape(r"^(?:diff --git |@@ -\d|\+\+\+ b/)")
_EDITING: Final = re.compile(r"edit|bash|grep|write|patch|shell|glob|read_?file|terminal", re.IGNORECASE)


def task_of(brief: Brief) -> Task:
    """Return the task of a request; `Task.DEFAULT` where the signs are too few."""
    if brief.hint is not None and brief.hint.strip().lower() in HINTS:
        return HINTS[brief.hint.strip().lower()]
    points = _points(brief)
    best = max(points, key=lambda task: points[task])
    return best if points[best] >= CONFIDENT else Task.DEFAULT


def _points(brief: Brief) -> dict[Task, float]:
    points: dict[Task, float] = {task: 0.0 for task in Task if task is not Task.DEFAULT}
    gist = brief.last if len(brief.last) <= GIST else f"{brief.last[:HEAD]}\n{brief.last[HEAD - GIST :]}"
    opening, text, system = gist[:OPENING].lower(), gist[OPENING:].lower(), brief.system[:HEAD].lower()
    for task, weight, sign in _WORDS:
        points[task] += weight * LEAD * _times(sign, opening)
        if text:  # short requests have no more than an opening
            points[task] += weight * _times(sign, text) / 2
        if system:
            points[task] += weight * SYSTEM_SHARE * min(1, _times(sign, system))
    for task, weight, sign in _SHAPES:
        points[task] += weight * min(1, _times(sign, gist))
    if _DIFF.search(gist):
        points[Task.REVIEW] += 3.0 if points[Task.REVIEW] > 0 else 1.0
        points[Task.CODING] += 1.0
    if any(_EDITING.search(name) for name in brief.tools):
        points[Task.CODING] += 1.0
    return points


def _times(sign: re.Pattern[str], text: str) -> int:
    found = 0
    for _ in sign.finditer(text):
        found += 1
        if found == MOST:
            break
    return found
