"""What the auto engine takes from a request: enough to decide by again, and nothing that was written in it."""

from __future__ import annotations

from dataclasses import dataclass

from troyproxy.auto.brief import Brief
from troyproxy.auto.fitness import Task
from troyproxy.auto.specificity import specificity
from troyproxy.auto.task import task_of


@dataclass(frozen=True, slots=True)
class Gist:
    """The task, how specific the request is (0 to 100), and whether it offers tools."""

    task: Task
    specificity: float
    tools: bool


def gist_of(brief: Brief) -> Gist:
    """Return the gist of a request."""
    return Gist(task_of(brief), specificity(brief), brief.tool_count > 0)
