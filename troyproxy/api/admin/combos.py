"""``/api/combos``: list, create, read, replace, change, remove. What a combo may be is `proxy.combo_book`'s."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from troyproxy.api.admin.operation import Operation
from troyproxy.api.admin.paging import CURSOR, cut, limit, page_schema
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.admin.schemas import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    body_of,
    exactly,
    listing,
    mapping,
    nullable,
    one_of,
    some,
    titled,
    with_warnings,
)
from troyproxy.api.admin.versions import etag, expected_version
from troyproxy.api.services import Services
from troyproxy.catalog.combos import STRATEGY_NAMES, Combo
from troyproxy.catalog.providers import Origin
from troyproxy.errors import ConfigError, Conflict, InvalidRequest, StoreUnavailable
from troyproxy.proxy.combo_book import READ_ONLY, ComboBook, Written, as_written, combo_shape

PATH: Final = "/api/combos"
TAG: Final = "combos"
LIMIT: Final = limit()
MEMBER: Final = some({"model": TEXT, "combo": TEXT, "account": TEXT, "weight": NUMBER}, required=["weight"])
FIELDS: Final = exactly(
    id=TEXT,
    name=TEXT,
    strategy=one_of(*STRATEGY_NAMES),
    members=listing(MEMBER),
    config=mapping({}),
    origin=one_of(*Origin),
    version=COUNT,
    created_at=nullable(NUMBER),
    effective_weights=nullable({"type": "object", "additionalProperties": NUMBER}),
)
COMBO: Final = titled("Combo", FIELDS)
WRITTEN: Final = titled("WrittenCombo", with_warnings(FIELDS))
GONE: Final = titled("Removed", exactly(id=TEXT, deleted=FLAG, warnings=listing(TEXT)))


class Combos:
    """The handlers. A write is in force in this process when it is answered; others follow within a second."""

    def __init__(self, services: Services) -> None:
        path = services.configuration.path
        file = f"the config file {path.name}" if path is not None else "the configuration"
        self._book = ComboBook(services.store, lambda: services.snapshots.current, file=file)
        self._store, self._snapshots = services.store, services.snapshots

    def operations(self) -> list[Operation]:
        """Return what can be done with combos."""
        one, down = f"{PATH}/{{id:path}}", StoreUnavailable
        writes = (InvalidRequest, Conflict, down)
        new = body_of(combo_shape(), ignored=READ_ONLY)
        again = body_of(combo_shape(), ignored=READ_ONLY, partial=True)  # its name stays when none is given
        return [
            Operation("GET", PATH, self.list, TAG, "List the combos by id.", {200: page_schema(COMBO)},
                      query=(LIMIT, CURSOR), fails=(down,)),
            Operation("POST", PATH, self.create, TAG, "Create a combo.", {201: WRITTEN}, takes=new, fails=writes),
            Operation("GET", one, self.read, TAG, "Read a combo, by id or name.", {200: WRITTEN}, fails=(down,)),
            Operation("PUT", one, self.replace, TAG, "Replace a combo.", {200: WRITTEN},
                      takes=again, versioned=True, fails=writes),
            Operation("PATCH", one, self.change, TAG, "Change fields of a combo.", {200: WRITTEN},
                      takes=again, versioned=True, fails=writes),
            Operation("DELETE", one, self.remove, TAG, "Remove a combo.", {200: GONE},
                      versioned=True, fails=(Conflict, down)),
        ]  # fmt: skip

    async def list(self, request: AdminRequest) -> Answer:
        """List by id."""
        entries, after = await self._book.entries(), request.value(CURSOR)
        return Answer(cut(entries, lambda combo: combo.id, as_written, after, request.value(LIMIT)))

    async def create(self, request: AdminRequest) -> Answer:
        """``POST /api/combos``: 201 with its place."""
        combo, warnings = await self._written(await self._book.create(await request.payload()))
        return _answer(combo, warnings, status=201, location=f"{request.root}{PATH}/{quote(combo.id, safe='')}")

    async def read(self, request: AdminRequest) -> Answer:
        """``GET /api/combos/{id}``."""
        return _answer(await self._book.find(request.id))

    async def replace(self, request: AdminRequest) -> Answer:
        """``PUT /api/combos/{id}``: the whole combo anew."""
        raw, version = await request.payload(), await self._expected(request)
        return _answer(*await self._written(await self._book.replace(request.id, raw, version)))

    async def change(self, request: AdminRequest) -> Answer:
        """``PATCH /api/combos/{id}``: the given fields anew."""
        raw, version = await request.payload(), await self._expected(request)
        return _answer(*await self._written(await self._book.change(request.id, raw, version)))

    async def remove(self, request: AdminRequest) -> Answer:
        """``DELETE /api/combos/{id}``."""
        combo = await self._book.remove(request.id, await self._expected(request))
        _, warnings = await self._written((combo, []))
        return Answer({"id": combo.id, "deleted": True, "warnings": warnings})

    async def _expected(self, request: AdminRequest) -> int | None:
        return expected_version(request, (await self._book.find(request.id)).version)

    async def _written(self, written: Written) -> Written:
        """Bring a write into force here before it is answered. It is stored, whatever the config file says by now."""
        combo, warnings = written
        try:
            await self._snapshots.reload(await self._store.control.revision())
        except (ConfigError, StoreUnavailable) as exc:
            return combo, [*warnings, f"stored, but not in force yet: {exc}"]
        return combo, warnings


def _answer(combo: Combo, warnings: object = (), *, status: int = 200, location: str | None = None) -> Answer:
    headers = {"etag": etag(combo.version), **({"location": location} if location is not None else {})}
    return Answer({**as_written(combo), "warnings": warnings}, status, headers)
