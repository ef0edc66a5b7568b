"""The command line as one tree."""

from __future__ import annotations

import typer

from troyproxy.cli import combos, configuration, database, keys, providers, requests
from troyproxy.cli.commands import JSON, Commands
from troyproxy.cli.doctor import doctor
from troyproxy.cli.explain import explain_command
from troyproxy.cli.output import print_json
from troyproxy.cli.quota import quota_command
from troyproxy.cli.serve import serve
from troyproxy.cli.simulate import simulate_command
from troyproxy.cli.status import status_command
from troyproxy.version import VERSION

app = typer.Typer(
    cls=Commands,
    help="An LLM gateway: one model string in, a healthy upstream out.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
app.command()(serve)
app.add_typer(database.app, name="db")
app.add_typer(keys.app, name="keys")
app.add_typer(providers.app, name="providers")
app.add_typer(combos.app, name="combos")
app.command("explain")(explain_command)
app.command("status")(status_command)
app.command("quota")(quota_command)
app.add_typer(requests.app, name="requests")
app.command("simulate")(simulate_command)
app.add_typer(configuration.app, name="config")
app.command()(doctor)


@app.command()
def version(as_json: bool = JSON) -> None:
    """Print the version.

    \b
    Example:
      troyproxy version
    """
    if as_json:
        print_json({"version": VERSION})
    else:
        typer.echo(VERSION)
