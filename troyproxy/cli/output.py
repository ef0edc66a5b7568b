"""Printing: tables for people, JSON for programs. On a pipe a table is plain columns, never cut to a width."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence

import typer

from troyproxy.telemetry.clean import one_line

WIDE = 10_000
"""Columns of a pipe."""


def on_terminal() -> bool:
    """Whether somebody looks at standard output."""
    return sys.stdout.isatty()


def print_json(value: object) -> None:
    """Print *value* as JSON, in ASCII, so that every pipe can take it."""
    typer.echo(json.dumps(value, indent=2))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, as_written: bool = False) -> None:
    """Print *rows*; None is an empty cell. Nothing in a cell is taken for markup or for a terminal control.

    Heads are in capitals, unless they are to be *as_written*: names of files are.
    """
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 -- `serve` prints no table, and would pay for it
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    tty = on_terminal()
    table = Table(box=SIMPLE_HEAD if tty else None, pad_edge=False)
    for column in columns:
        head = one_line(column if as_written else column.upper())
        table.add_column(Text(head), overflow="fold", no_wrap=not tty)
    for row in rows:
        table.add_row(*(Text("" if cell is None else one_line(str(cell))) for cell in row))
    console = Console(width=None if tty else WIDE, highlight=False)
    if tty:
        console.print(table)
        return
    with console.capture() as printed:
        console.print(table)
    typer.echo("\n".join(line.rstrip() for line in printed.get().split("\n")), nl=False)


def warn(text: str) -> None:
    """Print one line to standard error."""
    typer.echo(f"troyproxy: {text}", err=True)
