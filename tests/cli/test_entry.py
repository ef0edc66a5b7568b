from __future__ import annotations

from pathlib import Path

from tests.cli.running import once
from troyproxy.version import VERSION


def test_the_module_runs_the_command_line(tmp_path: Path) -> None:
    done = once(tmp_path, "version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{VERSION}\n", "")


def test_a_terminal_without_unicode_gets_escapes(tmp_path: Path) -> None:
    name = "日本"
    assert once(tmp_path, "combos", "create", name, "-m", "demo/ok").returncode == 0
    done = once(tmp_path, "combos", "list", PYTHONIOENCODING="latin-1")
    assert done.returncode == 0
    assert "\\u65e5\\u672c" in done.stdout
