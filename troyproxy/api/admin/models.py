"""``/api/models``: overrides of the model catalogue. What one may be is `proxy.model_book`'s."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from troyproxy.api.admin.in_force import InForce, file_of
from troyproxy.api.admin.model_schemas import GONE, MODEL_ANSWER, MODEL_CHANGE, MODEL_LISTED, MODEL_NEW
from troyproxy.api.admin.operation import Operation
from troyproxy.api.admin.paging import CURSOR, cut, limit, page_schema
from troyproxy.api.admin.parameters import one_of
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.admin.versions import etag, expected_version
from troyproxy.api.services import Services
from troyproxy.errors import Conflict, PreconditionFailed, StoreUnavailable
from troyproxy.proxy.model_book import Known, ModelBook, WrittenOverride, as_written

PATH: Final = "/api/models"
ONE: Final = f"{PATH}/{{id:path}}"
TAG: Final = "models"
LIMIT: Final = limit()
EVERY: Final = one_of("all", "`true`: the other models of connected providers too.", ("true", "false")).otherwise(
    "false"
)
WRITES: Final = (Conflict, StoreUnavailable)


class Models:
    """The handlers. A write is in force in this process when it is answered; others follow within a second."""

    def __init__(self, services: Services) -> None:
        self._snapshots, self._in_force = services.snapshots, InForce(services)
        self._book = ModelBook(services.store, lambda: services.snapshots.current, file=file_of(services))

    def operations(self) -> list[Operation]:
        """Return what there is to do with overrides."""
        lists, answer, down = {200: page_schema(MODEL_LISTED)}, {200: MODEL_ANSWER}, (StoreUnavailable,)
        return [
            Operation("GET", PATH, self.list, TAG, "List the overrides of the model catalogue.", lists,
                      query=(EVERY, LIMIT, CURSOR), fails=down),
            Operation("POST", PATH, self.create, TAG, "Override what is known of a model.", {201: MODEL_ANSWER},
                      takes=MODEL_NEW, fails=WRITES),
            Operation("GET", ONE, self.read, TAG, "Read what is known of a model.", {200: MODEL_LISTED}, fails=down),
            Operation("PUT", ONE, self.replace, TAG, "Write an override, whether there is one or not.",
                      {**answer, 201: MODEL_ANSWER}, takes=MODEL_CHANGE, versioned=True, fails=WRITES),
            Operation("PATCH", ONE, self.change, TAG, "Change fields of an override.", answer,
                      takes=MODEL_CHANGE, versioned=True, fails=WRITES),
            Operation("DELETE", ONE, self.remove, TAG, "Remove an override.", {200: GONE},
                      versioned=True, fails=WRITES),
        ]  # fmt: skip

    async def list(self, request: AdminRequest) -> Answer:
        """``GET /api/models?all=&limit=&cursor=``: by spec."""
        snapshot = self._snapshots.current
        entries = await self._book.entries(every=request.value(EVERY) == "true")
        after, most = request.value(CURSOR), request.value(LIMIT)
        return Answer(cut(entries, lambda known: known.spec, lambda known: as_written(known, snapshot), after, most))

    async def create(self, request: AdminRequest) -> Answer:
        """``POST /api/models``: 201 with its place."""
        return await self._answer(request, await self._book.create(await request.payload()), created=True)

    async def read(self, request: AdminRequest) -> Answer:
        """``GET /api/models/{id}``."""
        known = await self._book.find(request.id)
        return Answer(as_written(known, self._snapshots.current), headers={"etag": etag(known.version)})

    async def replace(self, request: AdminRequest) -> Answer:
        """``PUT /api/models/{id}``: 201 when there was none."""
        raw, current = await request.payload(), await self._book.version(request.id)
        if current is None and request.header(b"if-match") is not None:
            raise PreconditionFailed("there is no override yet that If-Match could name")
        version = None if current is None else expected_version(request, current)
        written = await self._book.replace(request.id, raw, version)
        return await self._answer(request, written, created=current is None)

    async def change(self, request: AdminRequest) -> Answer:
        """``PATCH /api/models/{id}``: the given fields anew."""
        raw = await request.payload()
        return await self._answer(
            request, await self._book.change(request.id, raw, await self._expected(request)), created=False
        )

    async def remove(self, request: AdminRequest) -> Answer:
        """``DELETE /api/models/{id}``."""
        known = await self._book.remove(request.id, await self._expected(request))
        return Answer({"id": known.spec, "deleted": True, "warnings": await self._in_force.bring()})

    async def _expected(self, request: AdminRequest) -> int | None:
        current = await self._book.version(request.id)
        return None if current is None else expected_version(request, current)

    async def _answer(self, request: AdminRequest, written: WrittenOverride, *, created: bool) -> Answer:
        """Bring a write into force and tell what the gateway goes by from now on."""
        known, warnings = written
        late = await self._in_force.bring()
        headers = {"etag": etag(known.version), **(_place(request, known) if created else {})}
        value = {**as_written(known, self._snapshots.current), "warnings": [*warnings, *late]}
        return Answer(value, 201 if created else 200, headers)


def _place(request: AdminRequest, known: Known) -> dict[str, str]:
    return {"location": f"{request.root}{PATH}/{quote(known.spec)}"}
