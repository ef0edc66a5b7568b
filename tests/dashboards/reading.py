"""What dashboards ask, for the tests that hold it against the metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.dashboards.board import Board


@dataclass(frozen=True, slots=True)
class Asked:
    """One query of a panel. *instant*: it asks for now, not for a range."""

    where: str
    text: str
    instant: bool


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the panels that show something."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def asked(board: Board) -> Iterator[Asked]:
    """Yield every query of *board*."""
    for panel in panels(json.loads(board.json())):
        for target in panel["targets"]:
            yield Asked(f"{board.name}: {panel['title']}", target["expr"], bool(target["instant"]))
