"""``troyproxy db``: the migrations. A SQLite file is migrated by `serve` too; other databases only here."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Final

import typer

from troyproxy.cli.commands import CONFIG, JSON, group
from troyproxy.cli.configured import configured
from troyproxy.cli.output import print_json
from troyproxy.cli.session import run
from troyproxy.errors import ConfigError
from troyproxy.settings.show import without_password
from troyproxy.store import migrations

SHOWN: Final = 160
"""Characters of one difference that `check` prints; ``--json`` has them whole."""

app = group("The database: bring it to this version, or see where it is.")


def _url(config: Path | None) -> str:
    return configured(config).settings.database_url


@app.command()
def upgrade(
    revision: str = typer.Argument("head", metavar="[REVISION]", help="The revision to go to."),
    config: Path | None = CONFIG,
) -> None:
    """Bring the database to this version.

    \b
    Example:
      TROY_DATABASE_URL=postgresql://troy@db/troy troyproxy db upgrade
    """
    typer.echo(run(migrations.upgrade(_url(config), revision)) or "none")


@app.command()
def downgrade(
    revision: str = typer.Argument(
        "-1", metavar="[REVISION]", help="The revision to go back to; 'base' removes every table."
    ),
    config: Path | None = CONFIG,
) -> None:
    """Go back one revision, or to REVISION. What that revision does not know is lost.

    \b
    Example:
      troyproxy db downgrade
    """
    typer.echo(run(migrations.downgrade(_url(config), revision)) or "none")


@app.command()
def current(config: Path | None = CONFIG, as_json: bool = JSON) -> None:
    """Print the revision of the database, and whether it is this version's.

    \b
    Example:
      troyproxy db current
    """
    found, newest = run(migrations.current(_url(config))), migrations.head()
    if as_json:
        print_json({"current": found, "head": newest})
    else:
        typer.echo(f"{found or 'none'}{' (head)' if found == newest else f', not {newest}'}")


@app.command()
def check(config: Path | None = CONFIG, as_json: bool = JSON) -> None:
    """Compare the tables with those of this version. Status 1 when they differ.

    \b
    Example:
      troyproxy db check
    """
    url = _url(config)
    state = run(migrations.check(url))
    if as_json:
        print_json({"ok": state.ok, **asdict(state)})
    elif state.ok:
        typer.echo(f"{without_password(url)} fits this version: {state.head}")
    if not state.ok:
        migrations.require_head(state.current)
        told = "; ".join(difference[:SHOWN] for difference in state.differences[:3])
        raise ConfigError(f"the tables are not those of revision {state.head}, which something else changed: {told}")
