"""``troyproxy quota``: the quota board of the running gateway, or of its database when it does not run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import typer

from troyproxy.accounting.quota_board import State
from troyproxy.cli.asking import URL, NoToken, NotReached, asking
from troyproxy.cli.commands import CONFIG, JSON
from troyproxy.cli.moments import shown
from troyproxy.cli.output import on_terminal, print_json, print_table, warn
from troyproxy.cli.session import Session, run_with

UNKNOWN: Final = "unknown"
NUMBERS: Final = (("requests_per_day", "/day"), ("requests_per_minute", "/min"), ("tokens_per_minute", " tokens/min"))
COLUMNS: Final = ("account", "state", "used today", "said by the upstream", "barred")


def quota_command(
    everything: bool = typer.Option(False, "--all", help="The ceilings of providers that are not configured, too."),
    url: str | None = URL,
    config: Path | None = CONFIG,
    as_json: bool = JSON,
) -> None:
    """Show what is known of quotas: documented ceilings, usage of the UTC day, what upstreams said last.

    Usage is a lower bound; what nobody knows is "unknown". A table on a terminal, JSON elsewhere. Without a running
    gateway it is made from the database, without what that process heard. No upstream is called.

    \b
    Example:
      troyproxy quota
    """
    found = _board(url, config)
    if not everything:
        found["providers"] = [each for each in found["providers"] if each["state"] != State.NOT_CONFIGURED]
    if as_json or not on_terminal():
        print_json(found)
    else:
        show(found)


def _board(url: str | None, config: Path | None) -> dict[str, Any]:
    try:
        return asking(config, url).get("/api/admin/ai/quota")
    except (NotReached, NoToken) as error:
        if url is not None:
            raise
        warn(f"{error}. From the database: without what upstreams said lately")
        return run_with(config, _built)


async def _built(found: Session) -> dict[str, Any]:
    return await found.services.quota.page()


def show(found: dict[str, Any]) -> None:
    """Print the board as tables."""
    print_table(COLUMNS, [row for each in found["providers"] for row in _rows(each, known=found["usage_known"])])
    plans = [_ceiling(each["provider"], plan) for each in found["providers"] for plan in each["ceilings"]]
    if plans:
        print_table(("provider", "plan", "models", "documented", "per", "confidence", "verified"), plans)


def _rows(provider: dict[str, Any], *, known: bool) -> Iterator[Sequence[object]]:
    name, whole = provider["provider"], [*provider.get("cooldowns", ()), *provider.get("circuits", ())]
    for account in provider["accounts"]:
        barred = _barred([*account.get("cooldowns", ()), *whole])
        yield f"{name}#{account['account']}", provider["state"], _used(account, known=known), _said(account), barred
    if not provider["accounts"]:
        yield name, provider["state"], None, None, _barred(whole)


def _used(account: dict[str, Any], *, known: bool) -> str:
    """Return the usage of the day in words; what cannot be read is unknown, and so are tokens nobody told."""
    usage = account.get("usage")
    if usage is None:
        return "no traffic" if known else UNKNOWN
    tokens = f"at least {usage['tokens']} tokens" if "tokens" in usage else "tokens unknown"
    requests = f"at least {usage['requests']} requests ({usage['embeddings']} embeddings)"
    return f"{requests}, {tokens}, {usage['rate_limited']} refused with 429"


def _said(account: dict[str, Any]) -> str:
    said = [_signal(each) for each in account.get("signals", ())]
    own = [
        f"own {each['bucket']}: {each['remaining_ratio']:.0%} of {each['limit']:g} left"
        for each in account.get("quotas", ())
    ]
    return "; ".join([*said, *own]) or UNKNOWN


def _signal(each: dict[str, Any]) -> str:
    number = f"{each['remaining']:g} of {each['limit']:g}" if {"remaining", "limit"} <= each.keys() else None
    left = number or f"{each['remaining_ratio']:.0%}"
    return f"{each['bucket']}: {left} left, {each['age_s']:.0f} s ago{'' if each['current'] else ', over'}"


def _barred(listed: Sequence[dict[str, Any]]) -> str | None:
    said = (f"{each.get('class') or 'circuit ' + each['state']} {each['model']} {_until(each)}" for each in listed)
    return ", ".join(said) or None


def _until(each: dict[str, Any]) -> str:
    return f"until {shown(each['until'])}" if "until" in each else "now"


def _ceiling(provider: str, plan: dict[str, Any]) -> Sequence[object]:
    numbers = ", ".join(f"{plan[name]:,}{unit}" for name, unit in NUMBERS if name in plan)
    verified = f"{plan['verified_on']}{' (stale)' if plan['stale'] else ''}"
    return provider, plan["plan"], plan["models"], numbers, plan["per"], plan["confidence"], verified
