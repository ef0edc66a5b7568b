"""``troyproxy keys``: client keys. The rules are those of the admin API: one book for both.

A secret is printed once, when it is made; its SHA-256 is all that is kept.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import typer

from troyproxy.catalog import naming
from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import Origin
from troyproxy.cli.commands import CONFIG, JSON, group
from troyproxy.cli.moments import expiry, seconds, shown
from troyproxy.cli.output import print_json, print_table, warn
from troyproxy.cli.session import Session, run_with
from troyproxy.proxy.key_book import WrittenKey

app = group("Client keys: who may call the gateway. A running gateway follows within a second.")
KNOWN = typer.Argument(..., metavar="NAME", help="The key's name or id.")


def _name(text: str) -> str:
    try:
        return naming.key_name(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


@app.command()
def create(  # noqa: PLR0913 -- one for each option of the command
    name: str = typer.Argument(..., metavar="NAME", help="What the key is called.", callback=_name),
    *,
    models: list[str] = typer.Option([], "--models", help="A glob of models it may use; repeat it. Default: all."),
    provider: str | None = typer.Option(None, help="The provider it prefers."),
    requests: float | None = typer.Option(None, "--requests-per-minute", help="Requests a minute, at most."),
    tokens: float | None = typer.Option(None, "--tokens-per-minute", help="Tokens a minute, at most."),
    day: float | None = typer.Option(None, "--budget-day", help="USD a day (UTC), at most."),
    month: float | None = typer.Option(None, "--budget-month", help="USD a month (UTC), at most."),
    expires: str | None = typer.Option(None, help="When it ends: 90d, 12h, or a date."),
    config: Path | None = CONFIG,
    as_json: bool = JSON,
) -> None:
    """Make a client key and print it once, to standard output.

    \b
    Example:
      troyproxy keys create ci --models 'daily' --models 'groq/*' --requests-per-minute 60 --budget-day 5 --expires 90d
    """
    limits = {
        "requests_per_minute": requests,
        "tokens_per_minute": tokens,
        "budget_usd_per_day": day,
        "budget_usd_per_month": month,
    }
    raw = {
        "name": name,
        "models": models,
        "provider": provider,
        "limits": {limit: value for limit, value in limits.items() if value is not None},
        "expires_at": None if expires is None else expiry(expires, time.time()),
    }
    _print_secret(run_with(config, lambda found: _create(found, raw)), "was made", as_json=as_json)


async def _create(found: Session, raw: Mapping[str, object]) -> WrittenKey:
    return await found.keys.create(raw)


def _print_secret(written: WrittenKey, done: str, *, as_json: bool) -> None:
    """Print the secret alone to standard output; all else to standard error."""
    for warning in written.warnings:
        warn(warning)
    secret = written.secret.reveal() if written.secret is not None else ""
    if as_json:
        print_json({**_row(written.key), "key": secret})
    else:
        typer.echo(secret)
        warn(f"the key {written.key.name} {done}; it is not shown again")


@app.command("list")
def list_keys(config: Path | None = CONFIG, as_json: bool = JSON) -> None:
    """List the client keys of the config file and the database; never their secrets.

    \b
    Example:
      troyproxy keys list
    """
    rows = [_row(key) for key in run_with(config, lambda found: found.keys.entries())]
    if as_json:
        print_json(rows)
    else:
        columns = ("name", "id", "state", "models", "provider", "limits", "expires", "origin")
        print_table(columns, ([_cell(row[column]) for column in columns] for row in rows))


@app.command()
def revoke(name: str = KNOWN, config: Path | None = CONFIG, as_json: bool = JSON) -> None:
    """End a key, for good. A running gateway refuses it within a second.

    \b
    Example:
      troyproxy keys revoke ci
    """
    key = run_with(config, lambda found: found.keys.revoke(name)).key
    if as_json:
        print_json(_row(key))
    else:
        typer.echo(f"the key {key.name} is revoked")


@app.command()
def rotate(
    name: str = KNOWN,
    grace: str | None = typer.Option(None, help="How long the old secret still works: 10m, 12h. Default: not at all."),
    config: Path | None = CONFIG,
    as_json: bool = JSON,
) -> None:
    """Give a key another secret and print it once. Name, id, limits and spending stay.

    \b
    Example:
      troyproxy keys rotate ci --grace 1h
    """
    raw = {} if grace is None else {"grace_s": seconds(grace)}
    written = run_with(config, lambda found: found.keys.rotate(name, raw))
    _print_secret(written, "has a new secret", as_json=as_json)


@app.command()
def delete(name: str = KNOWN, config: Path | None = CONFIG, as_json: bool = JSON) -> None:
    """Remove a key from the database, which ends it and frees its name. Its usage stays.

    \b
    Example:
      troyproxy keys delete ci
    """
    key = run_with(config, lambda found: found.keys.remove(name))
    if as_json:
        print_json({"id": key.id, "deleted": True})
    else:
        typer.echo(f"the key {key.name} is gone")


def _row(key: Key) -> dict[str, object]:
    now = time.time()
    old_works = len(key.digests(now)) > 1
    return {
        "name": key.name,
        "id": key.id,
        "state": key.state(now).value,
        "models": list(key.models),
        "provider": key.provider,
        "limits": dict(key.limits),
        "expires": shown(key.expires_at),
        "old_secret_until": shown(key.previous_until) if old_works else None,
        "created": shown(key.created_at) if key.origin is Origin.DATABASE else None,
        "origin": key.origin.value,
    }


def _cell(value: object) -> object:
    if isinstance(value, dict):
        return ",".join(f"{limit}={number:g}" for limit, number in value.items())
    return ",".join(map(str, value)) or "all" if isinstance(value, list) else value
