"""Accounts of providers from the file and from the environment. No I/O: the environment is an argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from troyproxy.catalog.providers import Account, Origin
from troyproxy.catalog.secret import Secret
from troyproxy.settings.document import AccountEntry, Credential
from troyproxy.settings.report import Report, below


def account_id(provider: str, name: str) -> str:
    """Return the id of an account, unique over all providers."""
    return f"{provider}#{name}"


def from_environment(provider: str, variables: tuple[str, ...], env: Mapping[str, str]) -> tuple[Account, ...]:
    """Return an account for the first of *variables* that is set, and for each of its ``_2``, ``_3``, … in a row."""
    variable = next((v for v in variables if usable(env.get(v)) or usable(env.get(f"{v}_2"))), None)
    if variable is None:
        return ()
    return tuple(
        Account(
            id=account_id(provider, name),
            provider=provider,
            name=name,
            api_key=Secret(key),
            priority=0,
            origin=Origin.ENVIRONMENT,
        )
        for name, key in _keys(variable, env)
    )


def _keys(variable: str, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if usable(first := env.get(variable)):
        yield "env", (first or "").strip()
    number = 2
    while usable(key := env.get(f"{variable}_{number}")):
        yield f"env-{number}", (key or "").strip()
        number += 1


def usable(key: str | None) -> bool:
    """Tell whether the text can be sent as a credential: something, printable ASCII."""
    return bool(key and key.strip() and key.isascii() and key.strip().isprintable())


def from_file(
    provider: str, entries: tuple[AccountEntry, ...], env: Mapping[str, str], report: Report
) -> tuple[Account, ...]:
    """Return the accounts that the file lists; one whose variable is not set is left out with a warning."""
    found: list[Account] = []
    for i, entry in enumerate(entries):
        secret = reveal(entry.api_key, env)
        if entry.api_key is not None and secret is None:
            place = f"{below('providers', provider)}.accounts[{i}].api_key"
            report.warn(
                place, f"the variable {entry.api_key.env} holds no usable key; the account {entry.name} is left out"
            )
            continue
        found.append(_account(provider, entry, secret))
    return tuple(found)


def reveal(credential: Credential | None, env: Mapping[str, str]) -> Secret | None:
    """Return the secret of a credential, None when its variable is not set or cannot be sent."""
    if credential is None or credential.literal is not None:
        return credential.literal if credential is not None else None
    key = env.get(credential.env or "")
    return Secret((key or "").strip()) if usable(key) else None


def _account(provider: str, entry: AccountEntry, secret: Secret | None) -> Account:
    return Account(
        id=account_id(provider, entry.name),
        provider=provider,
        name=entry.name,
        api_key=secret,
        models=entry.models,
        default_model=entry.default_model,
        tier=entry.tier,
        priority=entry.priority,
        quota=entry.quota,
        quota_reset_interval_s=entry.quota_reset_interval_s,
        max_inflight=entry.max_inflight,
        token_expires_at=entry.token_expires_at,
        active=entry.active,
        origin=Origin.FILE,
    )
