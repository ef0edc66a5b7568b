"""Reading what a command is given: a file, or standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from troyproxy.errors import ConfigError


def read_input(path: Path) -> bytes:
    """Return what is in the file at *path*, or in standard input for ``-``. Raises ConfigError."""
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
