"""``/api/combos``: list, create, read, replace, change, remove. What a combo may be is `proxy.combo_book`'s."""

from __future__ import annotations

from typing import Final

from troyproxy.api.admin.in_force import InForce, file_of
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
from troyproxy.api.admin.stored import Stored
from troyproxy.api.services import Services
from troyproxy.catalog.combos import STRATEGY_NAMES, Combo
from troyproxy.catalog.providers import Origin
from troyproxy.errors import Conflict, InvalidRequest, StoreUnavailable
from troyproxy.proxy.combo_book import READ_ONLY, ComboBook, as_written, combo_shape

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


class Combos(Stored[Combo]):
    """The handlers."""

    path = PATH

    def __init__(self, services: Services) -> None:
        self._book = ComboBook(services.store, lambda: services.snapshots.current, file=file_of(services))
        super().__init__(self._book, InForce(services))

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

    async def remove(self, request: AdminRequest) -> Answer:
        """``DELETE /api/combos/{id}``."""
        combo = await self._book.remove(request.id, await self.expected(request))
        _, warnings = await self.written((combo, []))
        return Answer({"id": combo.id, "deleted": True, "warnings": warnings})

    def id_of(self, entry: Combo) -> str:
        return entry.id

    def told(self, entry: Combo) -> dict[str, object]:
        return as_written(entry)
