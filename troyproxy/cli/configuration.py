"""``troyproxy config``: what is set, whether it is valid, and the schema for editors."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from troyproxy.cli.commands import CONFIG, JSON, group
from troyproxy.cli.configured import configured
from troyproxy.cli.output import print_json, print_table, warn
from troyproxy.settings import show as shown
from troyproxy.settings.assemble import assemble
from troyproxy.settings.schema import json_schema
from troyproxy.store.secrets import SecretBox

app = group("The configuration: what is set, whether it is valid, and a schema for editors.")


@app.command()
def show(config: Path | None = CONFIG, as_json: bool = JSON) -> None:
    """Show every setting, its value, and where it came from. Secrets are masked.

    \b
    Example:
      troyproxy config show
    """
    rows = shown.rows(configured(config))
    if as_json:
        print_json([{"setting": name, "value": value, "origin": origin} for name, value, origin in rows])
    else:
        print_table(("setting", "value", "origin"), rows)


@app.command()
def check(config: Path | None = CONFIG, as_json: bool = JSON) -> None:
    """Validate the configuration without starting. Warnings go to standard error; status 1 when it is not valid.

    \b
    Example:
      troyproxy config check --config troyproxy.yaml
    """
    found = configured(config)
    if found.settings.secret_key is not None:
        SecretBox(found.settings.secret_key)
    snapshot = assemble(found, now=time.time())
    where = str(found.path) if found.path is not None else None
    for warning in () if as_json else snapshot.warnings:
        warn(warning)
    if as_json:
        print_json({"ok": True, "file": where, "warnings": list(snapshot.warnings)})
    else:
        counts = f"{len(snapshot.providers)} providers, {len(snapshot.combos)} combos, {len(snapshot.keys)} keys"
        typer.echo(f"{where or 'the configuration'} is valid: {counts}")


@app.command()
def schema() -> None:
    """Print the JSON Schema of the config file.

    \b
    Example:
      troyproxy config schema > troyproxy.schema.json
    """
    print_json(json_schema())
