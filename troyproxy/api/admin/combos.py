"""``/api/combos``: list, create, read, replace, change, remove. What a combo may be is `proxy.combo_book`'s."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.services import Services
from troyproxy.catalog.combos import Combo
from troyproxy.errors import ConfigError, PreconditionFailed, StoreUnavailable
from troyproxy.proxy.combo_book import ComboBook, Written, as_written

PATH: Final = "/api/combos"


class Combos:
    """The handlers. A write is in force in this process when it is answered; others follow within a second."""

    def __init__(self, services: Services) -> None:
        path = services.configuration.path
        file = f"the config file {path.name}" if path is not None else "the configuration"
        self._book = ComboBook(services.store, lambda: services.snapshots.current, file=file)
        self._store, self._snapshots = services.store, services.snapshots

    async def list(self, request: AdminRequest) -> Answer:
        """``GET /api/combos?limit=&cursor=``: by id; the cursor is the last id of the page before."""
        limit = request.limit(default=100, most=500)
        after = request.query.get("cursor", [""])[-1]
        rest = [combo for combo in await self._book.entries() if combo.id > after]
        more = len(rest) > limit
        page = rest[:limit]
        return Answer({"data": [as_written(combo) for combo in page], "next_cursor": page[-1].id if more else None})

    async def create(self, request: AdminRequest) -> Answer:
        """``POST /api/combos``: 201 with its place."""
        combo, warnings = await self._written(await self._book.create(await request.payload()))
        return _answer(combo, warnings, status=201, location=f"{request.root}{PATH}/{quote(combo.id, safe='')}")

    async def read(self, request: AdminRequest) -> Answer:
        """``GET /api/combos/{id}``."""
        return _answer(await self._book.find(request.id))

    async def replace(self, request: AdminRequest) -> Answer:
        """``PUT /api/combos/{id}``: the whole combo anew."""
        raw, version = await request.payload(), expected_version(request)
        return _answer(*await self._written(await self._book.replace(request.id, raw, version)))

    async def change(self, request: AdminRequest) -> Answer:
        """``PATCH /api/combos/{id}``: the given fields anew."""
        raw, version = await request.payload(), expected_version(request)
        return _answer(*await self._written(await self._book.change(request.id, raw, version)))

    async def remove(self, request: AdminRequest) -> Answer:
        """``DELETE /api/combos/{id}``."""
        combo = await self._book.remove(request.id, expected_version(request))
        _, warnings = await self._written((combo, []))
        return Answer({"id": combo.id, "deleted": True, "warnings": warnings})

    async def _written(self, written: Written) -> Written:
        """Bring a write into force here before it is answered. It is stored, whatever the config file says by now."""
        combo, warnings = written
        try:
            await self._snapshots.reload(await self._store.control.revision())
        except (ConfigError, StoreUnavailable) as exc:
            return combo, [*warnings, f"stored, but not in force yet: {exc}"]
        return combo, warnings


def expected_version(request: AdminRequest) -> int | None:
    """Return the version that ``If-Match`` asks for; None without it, or for ``*``. Raises PreconditionFailed."""
    tag = request.header(b"if-match")
    if tag in {None, "*"}:
        return None
    digits = (tag or "").removeprefix("W/").strip('"')
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        raise PreconditionFailed("If-Match names no version of this combo")
    return int(digits)


def _answer(combo: Combo, warnings: object = (), *, status: int = 200, location: str | None = None) -> Answer:
    headers = {"etag": f'"{combo.version}"', **({"location": location} if location is not None else {})}
    return Answer({**as_written(combo), "warnings": warnings}, status, headers)
