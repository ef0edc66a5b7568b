"""``python -m tests.dashboards`` writes ``grafana/dashboards/``; a test says when a file differs."""

from __future__ import annotations

from tests.dashboards.boards import BOARDS, FOLDER

if __name__ == "__main__":
    for board in BOARDS:
        (FOLDER / f"{board.name}.json").write_text(board.json(), encoding="utf-8")
