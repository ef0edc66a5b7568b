"""The words that tell what a request is about, and how often each group of them stands in a text.

A text is read once, word by word. A group's pattern is tried only at words that begin as one of its phrases does, so
most words cost one look into a dictionary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from troyproxy.auto.fitness import Task

MOST: Final = 3
"""How often one sign counts, at most."""
HEAD: Final = 3
"""Letters of a phrase by which it is looked for; none of its first ones may be optional."""
_BEGINNING: Final = re.compile(r"[a-z]{1,3}")
_WORD: Final = re.compile(r"(\w{1,3})\w*")
_FAILURE: Final = re.compile(r"\b\w*(?:error|exception)\b")
"""The only phrases that are known by their end."""


@dataclass(frozen=True, slots=True)
class Sign:
    """Phrases that lean to a *task* by so many points. Each is a pattern for lower case that begins with letters."""

    task: Task
    weight: float
    phrases: tuple[str, ...]
    failures: bool = False
    """Words that end as the names of errors do count too."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """All of the phrases, as whole words."""
        return re.compile(rf"\b(?:{'|'.join(self.phrases)})\b")


_THROWN: Final = r" (?:an? )?\w*(?:error|exception)"
_MADE: Final = (
    r" (?:me )?(?:a |an |the |some |unit )*(?:\w+ ){0,3}(?:function|class|script|program|method|endpoint|component|api"
    r"|module|test|tests|query|regex|parser|app|cli|hook|decorator|middleware|server|client|feature|button|form|page|loop"
    r"|algorithm|schema)"
)
SIGNS: Final = (
    Sign(Task.DEBUGGING, 3.0, ("debug(?:ging)?", "traceback", "stack ?trace", "segfault", "core dump")),
    Sign(
        Task.DEBUGGING,
        2.0,
        (
            *("fix(?:es|ed)?", "broken", "crash(?:es|ed|ing)?", "fail(?:s|ed|ing)", "hangs?", "freez(?:es|ing)"),
            *("bugs?", "deadlocks?", "doesn'?t work", "does not work", "not working"),
            *(f"{verb}{_THROWN}" for verb in ("throws?", "raises?", "raised", "get(?:ting)?")),
        ),
    ),
    Sign(Task.DEBUGGING, 1.0, ("undefined", "nan", "exit code", "root cause"), failures=True),
    Sign(
        Task.REVIEW,
        3.0,
        ("code review", "pull request", "review (?:this|my|the|these|it)", r"pr #?\d*", "merge request"),
    ),
    Sign(
        Task.REVIEW,
        2.0,
        (
            *("review", "critique", "feedback on", "nitpicks?", "code smells?", "approve"),
            "any (?:issues|problems|concerns) with",
        ),
    ),
    Sign(
        Task.REVIEW,
        1.0,
        ("improve(?:ments)?", r"readab\w+", r"vulnerabilit\w+", "best practices?", "clean(?:er)?", "audit"),
    ),
    Sign(
        Task.PLANNING,
        3.0,
        (
            *("roadmap", "project plan", "migration plan", "milestones?", "architecture for"),
            r"design (?:a|an|the) \w*",
        ),
    ),
    Sign(
        Task.PLANNING,
        2.0,
        (
            *("plan(?:ning|s)?", "strategy", "outline (?:a|the|how)", "phases?", "break (?:it|this|that) down"),
            *("schedule", "backlog"),
        ),
    ),
    Sign(
        Task.PLANNING,
        1.0,
        (
            *("architect(?:ure)?", "approach", "steps? (?:to|for)", "prioriti[sz]e", "scope", "estimate"),
            "sprint",
        ),
    ),
    Sign(
        Task.DOCUMENTATION,
        3.0,
        (
            *("docstrings?", "readme", "changelog", "release notes", "api docs?", "documentation", "jsdoc", "man page"),
            "user guide",
        ),
    ),
    Sign(Task.DOCUMENTATION, 2.0, ("document (?:this|the|these|how)", "tutorial", "write up", "docs", "how-to")),
    Sign(Task.DOCUMENTATION, 1.0, ("comments?", "summar(?:y|ise|ize)", "explain in (?:plain|simple)")),
    Sign(
        Task.ANALYSIS,
        2.0,
        (
            *("analy[sz](?:e|is|ing)", "compare", "comparison", "trade-?offs?", "pros and cons", "correlation"),
            *("trends?", "data ?set", "evaluate", "what does (?:this|the) data", "statistic(?:s|al)?", "interpret"),
            *("difference between", "versus", r"vs\.?"),
        ),
    ),
    Sign(
        Task.ANALYSIS,
        1.2,
        (
            "why",
            "explain",
            "data",
            "metrics",
            "insights?",
            "causes?",
            "impact",
            "figures",
            "survey",
            "revenue",
            "churn",
        ),
    ),
    Sign(
        Task.CODING,
        2.0,
        (
            *("implement", "refactor"),
            *(f"{verb}{_MADE}" for verb in ("write", "create", "build", "make", "generate", "add", "code")),
        ),
    ),
    Sign(
        Task.CODING,
        1.0,
        (
            *(
                "python",
                "typescript",
                "javascript",
                "rust",
                "golang",
                "java",
                "kotlin",
                "swift",
                "sql",
                "react",
                "django",
            ),
            *("fastapi", "bash", r"c\+\+", "html", "css", "port (?:this|it) to", "convert (?:this|it|the)", "write"),
            *("function", "code", "rename", "type hints?"),
        ),
    ),
)
_PATTERNS: Final = tuple(sign.pattern for sign in SIGNS)


def _index(signs: Iterable[Sign]) -> Mapping[str, tuple[int, ...]]:
    found: dict[str, dict[int, None]] = {}
    for at, sign in enumerate(signs):
        for phrase in sign.phrases:
            beginning = _BEGINNING.match(phrase)
            found.setdefault(beginning.group() if beginning is not None else "", {})[at] = None
    return MappingProxyType({beginning: tuple(places) for beginning, places in found.items()})


_BY_HEAD: Final = _index(SIGNS)
_NOTHING: Final = (0,) * len(SIGNS)


def counted(text: str) -> Sequence[int]:
    """Return how often each of `SIGNS` stands in *text*, which is in lower case; at most `MOST` for each."""
    if not text:  # most requests have no system prompt, and fit the opening
        return _NOTHING
    counts, ends = [0] * len(SIGNS), [0] * len(SIGNS)
    for word in _WORD.finditer(text):
        for at in _BY_HEAD.get(word[1], ()):
            begin = word.start()
            if begin < ends[at] or counts[at] == MOST:
                continue
            found = _PATTERNS[at].match(text, begin)
            if found is not None:
                counts[at] += 1
                ends[at] = found.end()
    if "error" in text or "exception" in text:
        thrown = sum(1 for _ in _FAILURE.finditer(text))
        counts = [min(MOST, n + thrown) if sign.failures else n for n, sign in zip(counts, SIGNS, strict=True)]
    return counts
