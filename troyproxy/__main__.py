"""``python -m troyproxy`` and the console script ``troyproxy``."""

from __future__ import annotations

import gc
import io
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


def main() -> None:
    """Run the command line. What the terminal's encoding lacks is escaped, not fatal."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    _loaded()(prog_name="troyproxy")


def _loaded() -> typer.Typer:
    """Load the program. What it is made of stays, so to look for garbage in it would only take an eighth of a start."""
    gc.disable()
    from troyproxy.cli.main import app  # noqa: PLC0415 -- see above

    gc.freeze()
    gc.enable()
    return app


if __name__ == "__main__":
    main()
