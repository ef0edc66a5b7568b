"""Programs in JavaScript: the packages of ``javascript/package-lock.json``, installed once, and Node to run them.

Where Node or npm is missing, or the packages cannot be had, the test is skipped; `.ci/run` makes that a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(__file__).parent / "javascript"
INSTALLED: Final = FOLDER / "node_modules" / ".package-lock.json"
"""npm's own note of what it has installed."""
INSTALL_S: Final = 240.0
RUN_S: Final = 90.0


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name} (Debian package {'nodejs' if name == 'node' else name})")
    return found


def install() -> None:
    """Install what is locked, unless it is there. Skips the test when it cannot be had."""
    lock = FOLDER / "package-lock.json"
    if INSTALLED.exists() and INSTALLED.stat().st_mtime >= lock.stat().st_mtime:
        return
    command = [_program("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    if done.returncode != 0:
        pytest.skip(f"needs the packages of {FOLDER.name}/, which npm (Debian package npm) did not get: {done.stderr}")


def run_javascript(program: Path, env: Mapping[str, str], code: str | None = None) -> str:
    """Run a module, written first when *code* is given, with *env* added to the environment; return what it printed.

    It must stand in `FOLDER`, or below, to find the packages. Raises AssertionError when it fails.
    """
    command = [_program("node"), str(program)]
    install()
    if code is not None:
        program.write_text(code, encoding="utf-8")
    done = subprocess.run(
        command, env={**os.environ, **env}, cwd=FOLDER, capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
