"""A command line in a fresh folder, in this process."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from troyproxy.cli import explain, output, quota, simulate, status, tail
from troyproxy.cli.main import app


@dataclass(frozen=True, slots=True)
class Result:
    """What a command did."""

    status: int
    out: str
    err: str

    def json(self) -> Any:  # noqa: ANN401 - JSON is what the test expects it to be
        assert self.status == 0, self.err
        return json.loads(self.out)


class Shell:
    """Runs commands in *folder*, its working folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: str, stdin: str | None = None) -> Result:
        done = CliRunner().invoke(app, words, input=stdin, prog_name="troyproxy")
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return Result(done.exit_code, done.stdout, done.stderr)

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        (self.folder / name).write_text(text, encoding="utf-8")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Standard output counts as a terminal."""
    for module in (output, explain, simulate, quota, status, tail):
        monkeypatch.setattr(module, "on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    return iter(())


@pytest.fixture
def uvicorn_heard(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what uvicorn's logger says come to `caplog`, whoever configured logging in this process before."""
    for name in ("uvicorn", "uvicorn.error"):
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
        monkeypatch.setattr(logging.getLogger(name), "disabled", False)
        caplog.set_level(logging.INFO, logger=name)
