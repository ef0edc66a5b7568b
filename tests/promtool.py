"""Prometheus's own checker, as a function."""

from __future__ import annotations

import shutil
import subprocess

import pytest


def complaint(*arguments: str) -> str:
    """Run promtool and return what it says against its arguments, "" when it has nothing to say.

    Skips the test when it is not installed.
    """
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("needs promtool (Debian package prometheus)")
    done = subprocess.run([program, *arguments], check=False, capture_output=True, text=True, timeout=30)
    return done.stdout + done.stderr if done.returncode else ""
