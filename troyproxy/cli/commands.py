"""What every group of commands has in common: an error is a line on standard error, never a traceback."""

from __future__ import annotations

from typing import Any, Final

import typer
from typer.core import TyperGroup

from troyproxy.cli.output import warn
from troyproxy.errors import TroyError

CONFIG: Final = typer.Option(None, "--config", "-c", help="The config file; else TROY_CONFIG, else ./troyproxy.yaml.")
JSON: Final = typer.Option(False, "--json", help="Print JSON.")


class Commands(TyperGroup):
    """The outermost group: our own errors end the program with status 1."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 -- typer's context has no public type
        """Run the command."""
        try:
            return super().invoke(ctx)
        except TroyError as error:
            warn(str(error))
            raise typer.Exit(1) from None


def group(text: str) -> typer.Typer:
    """Return a group of commands that *text* describes."""
    return typer.Typer(help=text, no_args_is_help=True, add_completion=False, rich_markup_mode=None)
