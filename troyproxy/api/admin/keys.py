"""``/api/keys``: client keys. What a key may be is `proxy.key_book`'s; here it gets its paths, versions and schemas.

A secret is in the answer that made it and nowhere else.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from troyproxy.api.admin.in_force import file_of
from troyproxy.api.admin.key_schemas import GONE, KEY, KEY_CHANGE, KEY_LISTED, KEY_NEW, KEY_WITH_SECRET, ROTATION_IN
from troyproxy.api.admin.operation import Operation
from troyproxy.api.admin.paging import CURSOR, cut, limit, page_schema
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.admin.versions import etag, expected_version
from troyproxy.api.services import Services
from troyproxy.errors import Conflict, StoreUnavailable
from troyproxy.proxy.intake import decode_object
from troyproxy.proxy.key_book import KeyBook, WrittenKey
from troyproxy.proxy.key_words import as_written

PATH: Final = "/api/keys"
ONE: Final = f"{PATH}/{{id}}"
TAG: Final = "keys"
LIMIT: Final = limit()
WRITES: Final = (Conflict, StoreUnavailable)


class Keys:
    """The handlers. A write is in force in this process when it is answered; others follow within a second."""

    def __init__(self, services: Services) -> None:
        snapshots, clock = services.snapshots, services.clock
        self._book = KeyBook(services.store, lambda: snapshots.current, clock, file=file_of(services))
        self._clock, self._forget = clock, services.forget_keys

    def operations(self) -> list[Operation]:
        """Return what there is to do with client keys."""
        lists, key, secret, down = {200: page_schema(KEY_LISTED)}, {200: KEY}, KEY_WITH_SECRET, (StoreUnavailable,)
        return [
            Operation("GET", PATH, self.list, TAG, "List the client keys.", lists, query=(LIMIT, CURSOR), fails=down),
            Operation("POST", PATH, self.create, TAG, "Make a key; the answer has its secret, once.", {201: secret},
                      takes=KEY_NEW, fails=WRITES),
            Operation("GET", ONE, self.read, TAG, "Read a key.", {200: KEY_LISTED}, fails=down),
            Operation("PUT", ONE, self.replace, TAG, "Write the settings of a key anew.", key,
                      takes=KEY_CHANGE, versioned=True, fails=WRITES),
            Operation("PATCH", ONE, self.change, TAG, "Change settings of a key.", key,
                      takes=KEY_CHANGE, versioned=True, fails=WRITES),
            Operation("DELETE", ONE, self.remove, TAG, "Remove a key, which ends it.", {200: GONE},
                      versioned=True, fails=WRITES),
            Operation("POST", f"{ONE}/revoke", self.revoke, TAG, "End a key for good.", key,
                      versioned=True, fails=WRITES),
            Operation("POST", f"{ONE}/rotate", self.rotate, TAG, "Give a key another secret, told once.",
                      {200: secret}, takes=ROTATION_IN, versioned=True, fails=WRITES),
        ]  # fmt: skip

    async def list(self, request: AdminRequest) -> Answer:
        """``GET /api/keys?limit=&cursor=``: by id."""
        now = self._clock.now()
        entries = await self._book.entries()
        after, most = request.value(CURSOR), request.value(LIMIT)
        return Answer(cut(entries, lambda key: key.id, lambda key: as_written(key, now), after, most))

    async def create(self, request: AdminRequest) -> Answer:
        """``POST /api/keys``: 201 with its place and the secret."""
        written = await self._book.create(await request.payload())
        place = f"{request.root}{PATH}/{quote(written.key.id, safe='')}"
        return self._answer(written, status=201, location=place)

    async def read(self, request: AdminRequest) -> Answer:
        """``GET /api/keys/{id}``."""
        key = await self._book.find(request.id)
        return Answer(as_written(key, self._clock.now()), headers={"etag": etag(key.version)})

    async def replace(self, request: AdminRequest) -> Answer:
        """``PUT /api/keys/{id}``: all settings anew."""
        raw = await request.payload()
        return self._answer(await self._book.replace(request.id, raw, await self._expected(request)))

    async def change(self, request: AdminRequest) -> Answer:
        """``PATCH /api/keys/{id}``: the given settings anew."""
        raw = await request.payload()
        return self._answer(await self._book.change(request.id, raw, await self._expected(request)))

    async def remove(self, request: AdminRequest) -> Answer:
        """``DELETE /api/keys/{id}``."""
        key = await self._book.remove(request.id, await self._expected(request))
        self._forget()
        return Answer({"id": key.id, "deleted": True})

    async def revoke(self, request: AdminRequest) -> Answer:
        """``POST /api/keys/{id}/revoke``."""
        return self._answer(await self._book.revoke(request.id, await self._expected(request)))

    async def rotate(self, request: AdminRequest) -> Answer:
        """``POST /api/keys/{id}/rotate``; the body may be left out."""
        body = await request.body()
        raw = decode_object(body) if body.strip() else {}
        return self._answer(await self._book.rotate(request.id, raw, await self._expected(request)))

    async def _expected(self, request: AdminRequest) -> int | None:
        return expected_version(request, (await self._book.find(request.id)).version)

    def _answer(self, written: WrittenKey, *, status: int = 200, location: str | None = None) -> Answer:
        """Answer a write, which is in force from now on: what is cached of keys goes by it no more."""
        self._forget()
        key, secret = written.key, {} if written.secret is None else {"key": written.secret.reveal()}
        headers = {"etag": etag(key.version), **({"location": location} if location is not None else {})}
        value = {**as_written(key, self._clock.now()), **secret, "warnings": written.warnings}
        return Answer(value, status, headers)
