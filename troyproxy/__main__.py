"""``python -m troyproxy`` and the console script ``troyproxy``."""

from __future__ import annotations

import io
import sys

from troyproxy.cli.main import app


def main() -> None:
    """Run the command line. What the terminal's encoding lacks is escaped, not fatal."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="troyproxy")


if __name__ == "__main__":
    main()
