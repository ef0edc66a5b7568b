"""``troyproxy keys``: client keys. A secret is printed once, when it is made; its SHA-256 is all that is kept."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from pathlib import Path

import typer

from troyproxy.catalog import naming
from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import Origin
from troyproxy.cli.commands import CONFIG, JSON, group
from troyproxy.cli.demo_mode import digest_of, generate_key
from troyproxy.cli.moments import expiry, shown
from troyproxy.cli.output import print_json, print_table, warn
from troyproxy.cli.session import Session, run_with
from troyproxy.errors import Conflict, NotFound

app = group("Client keys: who may call the gateway. A running gateway follows within a second.")


def _name(text: str) -> str:
    try:
        return naming.account_name(text)
    except ValueError as error:
        raise typer.BadParameter(str(error).replace("an account name", "a key's name")) from None


def _expires(text: str | None) -> float | None:
    return None if text is None else expiry(text, time.time())


@app.command()
def create(
    name: str = typer.Argument(..., metavar="NAME", help="What the key is called.", callback=_name),
    models: list[str] = typer.Option([], "--models", help="A glob of models it may use; repeat it. Default: all."),
    provider: str | None = typer.Option(None, help="The provider it prefers."),
    expires: str | None = typer.Option(None, help="When it ends: 90d, 12h, or a date."),
    config: Path | None = CONFIG,
    as_json: bool = JSON,
) -> None:
    """Make a client key and print it once, to standard output.

    \b
    Example:
      troyproxy keys create ci --models 'daily' --models 'groq/*' --expires 90d
    """
    secret = generate_key()
    key = Key(
        id=f"key_{secrets.token_hex(8)}",
        name=name,
        digest=digest_of(secret),
        models=tuple(models),
        provider=provider,
        expires_at=_expires(expires),
    )
    stored = run_with(config, lambda found: _add(found, key))
    if as_json:
        print_json({**_row(stored), "key": secret})
    else:
        typer.echo(secret)
        warn(f"the key {name} was made; it is not shown again")


async def _add(found: Session, key: Key) -> Key:
    if any(naming.same_name(other.name) == naming.same_name(key.name) for other in found.snapshot.keys.values()):
        raise Conflict(f"a key {key.name} stands in the config file")
    if key.provider is not None and found.snapshot.provider(key.provider) is None:
        warn(f"{key.provider} is no configured provider")
    return await found.services.store.keys.add(key)


@app.command("list")
def list_keys(config: Path | None = CONFIG, as_json: bool = JSON) -> None:
    """List the client keys of the config file and the database; never their secrets.

    \b
    Example:
      troyproxy keys list
    """
    rows = [_row(key) for key in run_with(config, _all)]
    if as_json:
        print_json(rows)
    else:
        columns = ("name", "id", "state", "models", "provider", "expires", "origin")
        print_table(columns, ([_cell(row[column]) for column in columns] for row in rows))


async def _all(found: Session) -> list[Key]:
    return [*found.snapshot.keys.values(), *await found.services.store.keys.list()]


@app.command()
def revoke(
    name: str = typer.Argument(..., metavar="NAME", help="The key's name or id."),
    config: Path | None = CONFIG,
    as_json: bool = JSON,
) -> None:
    """End a key, for good. A running gateway refuses it within a second.

    \b
    Example:
      troyproxy keys revoke ci
    """
    key = run_with(config, lambda found: _revoke(found, name))
    if as_json:
        print_json(_row(key))
    else:
        typer.echo(f"the key {key.name} is revoked")


async def _revoke(found: Session, name: str) -> Key:
    stored = await found.services.store.keys.list()
    if key := _called(name, stored):
        return await found.services.store.keys.revoke(key.id, at=found.services.clock.now())
    if key := _called(name, found.snapshot.keys.values()):
        raise Conflict(f"the key {key.name} stands in the config file: take it out there and reload")
    raise NotFound(f"there is no key {name}: see `troyproxy keys list`")


def _called(name: str, keys: Iterable[Key]) -> Key | None:
    wanted = naming.same_name(name)
    return next((key for key in keys if key.id == name or naming.same_name(key.name) == wanted), None)


def _row(key: Key) -> dict[str, object]:
    ended = "revoked" if key.revoked_at is not None else "expired"
    return {
        "name": key.name,
        "id": key.id,
        "state": "valid" if key.valid(time.time()) else ended,
        "models": list(key.models),
        "provider": key.provider,
        "limits": dict(key.limits),
        "expires": shown(key.expires_at),
        "created": shown(key.created_at) if key.origin is Origin.DATABASE else None,
        "origin": key.origin.value,
    }


def _cell(value: object) -> object:
    return ",".join(map(str, value)) or "all" if isinstance(value, list) else value
