"""``troyproxy providers``: what is configured, and whether it answers."""

from __future__ import annotations

from pathlib import Path

import typer

from troyproxy.catalog.providers import Provider
from troyproxy.cli.commands import CONFIG, JSON, group
from troyproxy.cli.output import print_json, print_table
from troyproxy.cli.probe import Probe, probe, probe_key, report
from troyproxy.cli.session import Session, run_with
from troyproxy.errors import ConfigError, NotFound
from troyproxy.settings.show import without_password

app = group("Providers: what is configured, and whether it answers.")
_SHOWN = 3


@app.command("list")
def list_providers(config: Path | None = CONFIG, as_json: bool = JSON) -> None:
    """List the providers with their accounts and models. Keys are not shown.

    \b
    Example:
      troyproxy providers list --json
    """
    providers = run_with(config, _all)
    if as_json:
        print_json([_row(provider) for provider in providers])
        return
    columns = ("provider", "origin", "accounts", "models", "where")
    print_table(columns, (_cells(provider) for provider in providers))


async def _all(found: Session) -> list[Provider]:
    return list(found.snapshot.providers.values())


def _row(provider: Provider) -> dict[str, object]:
    return {
        "id": provider.id,
        "aliases": list(provider.aliases),
        "origin": provider.origin.value,
        "where": _where(provider),
        "keyless": provider.keyless,
        "default_model": provider.first_model(),
        "accounts": [{"name": a.name, "origin": a.origin.value, "active": a.active} for a in provider.accounts],
        "models": list(provider.models),
    }


def _cells(provider: Provider) -> tuple[object, ...]:
    accounts = ", ".join(account.name for account in provider.accounts) or (
        "no key needed" if provider.keyless else "none"
    )
    models = ", ".join(list(provider.models)[:_SHOWN])
    more = len(provider.models) - _SHOWN
    return (
        provider.id,
        provider.origin.value,
        accounts,
        models + (f" and {more} more" if more > 0 else ""),
        _where(provider),
    )


def _where(provider: Provider) -> str:
    return without_password(provider.base_url) if provider.app is None else f"app:{provider.app}"


@app.command("test")
def ask_provider(
    name: str = typer.Argument(..., metavar="NAME", help="The provider's id or alias."),
    model: str | None = typer.Option(None, "--model", "-m", help="The model to ask; else the provider's default."),
    config: Path | None = CONFIG,
    as_json: bool = JSON,
) -> None:
    """Send one tiny chat request to a provider and print what came of it. It may cost a few tokens.

    \b
    Example:
      troyproxy providers test groq --model llama-3.3-70b-versatile
    """
    secret, key = probe_key()
    report(run_with(config, lambda found: _test(found, secret, name, model), keys=(key,)), as_json=as_json)


async def _test(found: Session, secret: str, name: str, model: str | None) -> Probe:
    provider = found.snapshot.provider(name)
    if provider is None:
        known = ", ".join(found.snapshot.providers)
        raise NotFound(f"there is no provider {name}; configured: {known}")
    chosen = model or provider.first_model()
    if chosen is None:
        raise ConfigError(f"no model of {provider.id} is known: name one with --model")
    return await probe(found, secret, f"{provider.id}/{chosen}")
