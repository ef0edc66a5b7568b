"""What `doctor` looks at: configuration, database, migrations, clock, providers. It changes nothing, asks no model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final

from troyproxy.app import sql_store
from troyproxy.catalog.providers import Provider
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.cli.configured import configured
from troyproxy.cli.session import SOURCE
from troyproxy.errors import ConfigError, StoreUnavailable, TroyError
from troyproxy.ports import Headers, Upstream, UpstreamFailed, UpstreamRequest
from troyproxy.proxy.clock import SystemClock
from troyproxy.proxy.policy import journal_keep_s
from troyproxy.settings.assemble import Stored, assemble
from troyproxy.settings.load import Configuration
from troyproxy.settings.show import without_password
from troyproxy.store import migrations
from troyproxy.store.database import is_sqlite, parse_url
from troyproxy.store.redis_door import state_mirror
from troyproxy.upstream.network import network

PROVIDER_S: Final = 10.0
SKEW_S: Final = 60.0
"""A clock further off than this spoils retry hints and the expiry of keys."""
SHOWN: Final = 160
"""Characters of one difference between tables and program that are told."""
BUILT_AT: Final = 1_767_225_600.0
"""2026-01-01: a clock before it is wrong, whatever else is known."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. *remedy* is for what is not *ok*."""

    what: str
    ok: bool
    found: str
    remedy: str = ""


async def examine(config: Path | None) -> list[Finding]:
    """Return what is found, in the order in which it matters."""
    try:
        configuration = configured(config)
        snapshot = assemble(configuration, now=time.time())
    except ConfigError as error:
        return [Finding("configuration", False, str(error), "mend it, then: troyproxy config check")]
    where = configuration.path.name if configuration.path is not None else "the environment"
    findings = [Finding("configuration", True, f"{where} is valid"), *await _database(configuration)]
    if findings[-1].what == "migrations" and findings[-1].ok:
        snapshot = await _with_stored(configuration, snapshot, findings)
    findings.extend(await _shared_state(configuration))
    upstream = network(configuration.settings.transport)
    try:
        reached = await asyncio.gather(*(_reach(provider, upstream) for provider in snapshot.providers.values()))
    finally:
        await upstream.aclose()
    offsets = [offset for _, offset in reached if offset is not None]
    return [*findings, clock_finding(time.time(), offsets), *(finding for finding, _ in reached)]


async def _database(configuration: Configuration) -> list[Finding]:
    shown = without_password(configuration.settings.database_url)
    try:
        if _is_missing(configuration.settings.database_url):
            return [Finding("database", True, f"{shown} is not there yet; `troyproxy serve` makes it")]
        state = await migrations.check(configuration.settings.database_url)
    except (ConfigError, StoreUnavailable) as error:
        return [Finding("database", False, f"{shown}: {error}", "see that it runs and TROY_DATABASE_URL is right")]
    told = f"at {state.current or 'none'}" if state.ok else f"at {state.current or 'none'}, not {state.head}"
    if state.current == state.head:  # else they are many, and all of one cause
        told += "".join(f"; {difference[:SHOWN]}" for difference in state.differences[:3])
    remedy = "" if state.ok else "troyproxy db upgrade"
    return [Finding("database", True, f"{shown} answers"), Finding("migrations", state.ok, told, remedy)]


async def _shared_state(configuration: Configuration) -> list[Finding]:
    """Ask the Redis of ``TROY_REDIS_URL`` as the gateway would; without one there is nothing to find."""
    url = configuration.settings.redis_url
    if url is None:
        return []
    shown = without_password(url)
    remedy = "see that it runs and TROY_REDIS_URL is right; until then instances share nothing"
    try:
        mirror = state_mirror(url, keep_s=journal_keep_s(configuration.settings))
        if mirror is None:  # pragma: no cover -- there is one where there is a URL
            return []
        try:
            await mirror.open()
            await mirror.read(time.time())
        finally:
            await mirror.close()
    except (ConfigError, StoreUnavailable) as error:
        return [Finding("redis", False, f"{shown}: {error}", remedy)]
    return [Finding("redis", True, f"{shown} answers")]


def _is_missing(database_url: str) -> bool:
    url = parse_url(database_url)
    return is_sqlite(url) and not Path(url.database or "").exists()


async def _with_stored(configuration: Configuration, snapshot: Snapshot, findings: list[Finding]) -> Snapshot:
    """Return *snapshot* with the connections of the database; what hinders that is added to *findings*."""
    try:
        store = sql_store(configuration.settings, SystemClock(), source=SOURCE)
        try:
            stored = Stored(accounts=await store.connections.list())
            return assemble(configuration, stored, now=time.time())
        finally:
            await store.stop()
    except TroyError as error:
        findings.append(Finding("connections", False, str(error), "set the TROY_SECRET_KEY that encrypted them"))
        return snapshot


async def _reach(provider: Provider, upstream: Upstream) -> tuple[Finding, float | None]:
    """Ask *provider* for its models, without a key: any answer will do. Return how far its clock is ahead, too."""
    what = f"provider {provider.id}"
    if provider.app is not None:
        return Finding(what, True, f"app {provider.app} in this process"), None
    where = without_password(provider.base_url)
    request = UpstreamRequest(provider, "GET", "/models", headers=((b"accept", b"application/json"),))
    try:
        async with asyncio.timeout(PROVIDER_S):
            response = await upstream.send(request)
            await response.aclose()
    except (UpstreamFailed, TimeoutError) as error:
        reason = error if isinstance(error, UpstreamFailed) else f"no answer within {PROVIDER_S:g} s"
        return Finding(what, False, f"{where}: {reason}", "check the address, DNS, and proxy variables"), None
    if not provider.accounts and not provider.keyless:
        return Finding(what, False, f"{where} answers, but there is no key", "set its key, or add an account"), None
    return Finding(what, True, f"{where} answers (HTTP {response.status})"), ahead(response.headers, time.time())


def ahead(headers: Headers, now: float) -> float | None:
    """Return by how many seconds the ``Date`` of a response is ahead of *now* (unix seconds); None without one."""
    text = next((value.decode("latin-1") for name, value in headers if name == b"date"), "")
    try:
        return parsedate_to_datetime(text).timestamp() - now
    except ValueError:
        return None


def clock_finding(now: float, offsets: Iterable[float]) -> Finding:
    """Judge the clock by what the providers say; by the calendar alone when none says anything."""
    known = sorted(offsets)
    remedy = "set the clock, by NTP"
    if now < BUILT_AT:
        return Finding("clock", False, "is before 2026", remedy)
    if not known:
        return Finding("clock", True, "is plausible; no provider to compare it with")
    off = known[len(known) // 2]
    if abs(off) > SKEW_S:
        return Finding(
            "clock", False, f"is {abs(off):.0f} s {'behind' if off > 0 else 'ahead of'} the providers", remedy
        )
    return Finding("clock", True, "agrees with the providers")
