"""Fetches the model catalogue: at the start, every day, when an operator or another process says so. Fails open.

Whatever goes wrong, the last good one stays. A fetch is bounded in bytes (as they come, and decompressed), in time,
and to the one address: redirects are not followed. Only a catalogue that is good as a whole is taken, and swapped in
by a new snapshot; the user's overrides lie over it there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Final
from urllib.parse import urlsplit

import msgspec

from troyproxy.catalog.providers import NO_AUTH, Provider
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import (
    ConfigError,
    StoreUnavailable,
    TroyError,
    UpstreamInvalid,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from troyproxy.ports import Clock, Headers, Upstream, UpstreamFailed, UpstreamRequest, UpstreamResponse
from troyproxy.proxy.catalogue_shelf import CatalogueShelf
from troyproxy.proxy.orders import Orders
from troyproxy.proxy.snapshots import SnapshotKeeper
from troyproxy.settings.catalogue_file import KeptCatalogue, pack
from troyproxy.settings.fetched_catalogue import MAX_BYTES, CatalogueRefused, FetchedCatalogue

EVERY_S: Final = 86_400.0
AGAIN_S: Final = 900.0
"""After a fetch that failed."""
DEADLINE_S: Final = 30.0
LOOK_S: Final = 1.0
"""How often it is looked whether a fetch is due."""
MAX_ETAG: Final = 512
SOURCE: Final = "(model catalogue)"
"""No provider can have this id, so the connections are nobody else's."""
LOGGER: Final = logging.getLogger("troyproxy.catalog")


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a fetch brought. *changed*: models that are new, or of which other facts are in force now."""

    models: int
    providers: int
    changed: int
    warnings: tuple[str, ...]


class CatalogueRefresh:
    """Keeps the shelf fresh from *url*."""

    def __init__(  # noqa: PLR0913 -- what is fetched, with what, and who hears of it, by keyword
        self,
        url: str,
        shelf: CatalogueShelf,
        *,
        upstream: Upstream,
        snapshots: SnapshotKeeper,
        orders: Orders,
        clock: Clock,
        rng: Random,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._request, self._shelf, self._upstream = request_for(url), shelf, upstream
        self._snapshots, self._orders, self._clock = snapshots, orders, clock
        self._deadline_s = deadline_s
        self._turn = asyncio.Lock()
        self._name = f"{rng.getrandbits(64):016x}"
        self._due = 0.0
        self.error: str | None = None
        """Why the last fetch failed; None after a good one."""
        orders.obey("catalogue", self._ordered)

    def page(self) -> dict[str, object]:
        """Return what ``/api/status`` says of it; `fetched_at` is None while the package's catalogue serves alone."""
        kept, now = self._shelf.kept, self._clock.now()
        return {
            "fetched_at": kept.at if kept is not None else None,
            "age_s": round(max(0.0, now - kept.at), 3) if kept is not None else None,
            "models": self._shelf.content.size,
            "error": self.error,
        }

    async def follow(self) -> None:
        """Fetch at once and whenever it is due, until cancelled."""
        while True:
            if self._clock.now() >= self._due:
                try:
                    await self.refresh()
                except TroyError as exc:
                    LOGGER.warning("%s; what was known before stays", exc)
            await self._clock.sleep(LOOK_S)

    def _ordered(self, payload: Mapping[str, object]) -> None:
        if payload.get("by") != self._name:
            self._due = 0.0

    async def order(self) -> bool:
        """Tell the other processes to fetch, too; False when they cannot be told now."""
        try:
            await self._orders.give("catalogue", {"by": self._name})
        except StoreUnavailable:
            return False
        return True

    async def refresh(self) -> Refreshed:
        """Fetch now and bring it into force here. Raises UpstreamUnreachable, UpstreamInvalid, UpstreamTimeout."""
        async with self._turn:
            self._due = self._clock.now() + AGAIN_S
            try:
                async with asyncio.timeout(self._deadline_s):
                    fetched = await self._fetch()
            except TimeoutError as exc:
                self.error = f"the model catalogue did not come within {self._deadline_s:g} s"
                raise UpstreamTimeout(self.error) from exc
            except TroyError as exc:
                self.error = str(exc)
                raise
            self.error = None
            self._due = self._clock.now() + EVERY_S
            return await self._take(*fetched)

    async def _fetch(self) -> tuple[KeptCatalogue, FetchedCatalogue]:
        self._shelf.models()  # so that what is on the disk is known, and its tag with it
        kept = self._shelf.kept
        tag = () if kept is None or kept.etag is None else ((b"if-none-match", kept.etag.encode("latin-1")),)
        request = msgspec.structs.replace(self._request, headers=(*self._request.headers, *tag))
        try:
            response = await self._upstream.send(request)
            try:
                if response.status == 304 and kept is not None and tag:
                    return replace(kept, at=self._clock.now()), self._shelf.content
                raw = await body_of(response)
            finally:
                await response.aclose()
        except UpstreamFailed as exc:
            raise UpstreamUnreachable(f"the model catalogue cannot be fetched: {exc}") from exc
        return await asyncio.to_thread(self._read, raw, etag_of(response.headers))

    def _read(self, raw: bytes, etag: str | None) -> tuple[KeptCatalogue, FetchedCatalogue]:
        try:
            content = self._shelf.read(raw)
        except CatalogueRefused as exc:
            raise UpstreamInvalid(f"the fetched model catalogue is refused: {exc}") from exc
        return KeptCatalogue(self._clock.now(), etag, pack(raw)), content

    async def _take(self, kept: KeptCatalogue, content: FetchedCatalogue) -> Refreshed:
        moved = self._shelf.kept is None or kept.packed != self._shelf.kept.packed
        await self._shelf.put(kept, content)
        before, warnings = self._snapshots.current, content.warnings
        if moved:
            warnings = (*warnings, *await self._swapped())
        changed = differing(before, self._snapshots.current)
        LOGGER.info("the model catalogue is fetched: %d models, %d changed", content.size, changed)
        return Refreshed(content.size, sum(map(bool, content.models.values())), changed, warnings)

    async def _swapped(self) -> tuple[str, ...]:
        """Bring it into force by a new snapshot; what hinders that now, the next reload does without."""
        try:
            await self._snapshots.reload()
        except (ConfigError, StoreUnavailable) as exc:
            return (f"kept, but not in force before the next reload: {exc}",)
        return ()


def request_for(url: str) -> UpstreamRequest:
    """Return the request for the catalogue at *url*."""
    parts = urlsplit(url)
    path = parts._replace(scheme="", netloc="", fragment="", path=parts.path or "/").geturl()
    provider = Provider(id=SOURCE, base_url=f"{parts.scheme}://{parts.netloc}", auth=NO_AUTH)
    headers = ((b"accept", b"application/json"), (b"accept-encoding", b"gzip"))
    return UpstreamRequest(provider, "GET", path, headers)


async def body_of(response: UpstreamResponse) -> bytes:
    """Return the body of a 200, decompressed, up to the bound. Raises UpstreamInvalid, UpstreamFailed."""
    if response.status != 200:
        moved = " (redirects are not followed)" if 300 <= response.status < 400 else ""
        raise UpstreamInvalid(f"the model catalogue's server answered HTTP {response.status}{moved}")
    if any(name == b"content-encoding" and value.strip().lower() != b"identity" for name, value in response.headers):
        raise UpstreamInvalid("the model catalogue came in a content-encoding that nobody asked for")
    declared = next((value for name, value in response.headers if name == b"content-length"), b"0")
    body = bytearray()
    if declared.isdigit() and len(declared) < 20 and int(declared) <= MAX_BYTES:
        async for chunk in response.chunks():
            body += chunk
            if len(body) > MAX_BYTES:
                break
        else:
            return bytes(body)
    raise UpstreamInvalid(f"the model catalogue is larger than {MAX_BYTES >> 20} MiB")


def etag_of(headers: Headers) -> str | None:
    """Return the entity tag of a response as it stands, None without one that may be sent back."""
    tag = next((value.decode("latin-1").strip() for name, value in headers if name == b"etag"), "")
    return tag if tag and len(tag) <= MAX_ETAG and tag.isascii() and tag.isprintable() else None


def differing(before: Snapshot, after: Snapshot) -> int:
    """Return of how many models the catalogue says something else than before."""
    return sum(
        before.catalog.get(provider, {}).get(name) != model
        for provider, models in after.catalog.items()
        for name, model in models.items()
    )
