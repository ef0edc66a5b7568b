"""What every resource has in common whose entries live in a book: one is made, read, replaced, changed and versioned.

A subclass says what its entries are called and how they are told; lists, removals and paths of its own are its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar
from urllib.parse import quote

from troyproxy.api.admin.in_force import InForce
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.admin.versions import etag, expected_version


class Versioned(Protocol):
    """An entry whose writes are guarded by a version."""

    @property
    def version(self) -> int: ...


E = TypeVar("E", bound=Versioned)
E_co = TypeVar("E_co", covariant=True)


class Book(Protocol[E_co]):
    """The rules of one kind of entry; what is written comes back with what is odd about it."""

    async def find(self, name: str, /) -> E_co: ...

    async def create(self, raw: Mapping[str, object], /) -> tuple[E_co, list[str]]: ...

    async def replace(
        self, name: str, raw: Mapping[str, object], expected: int | None, /
    ) -> tuple[E_co, list[str]]: ...

    async def change(self, name: str, raw: Mapping[str, object], expected: int | None, /) -> tuple[E_co, list[str]]: ...


class Stored(Generic[E]):
    """The handlers. A write is in force in this process when it is answered; others follow within a second."""

    path: str
    """Of the resource: ``/api/…``."""

    def __init__(self, book: Book[E], in_force: InForce) -> None:
        self._entries, self._in_force = book, in_force

    def id_of(self, entry: E) -> str:
        """Return the id of *entry*, as it stands in its place."""
        raise NotImplementedError

    def told(self, entry: E) -> dict[str, object]:
        """Return *entry*, JSON-ready."""
        raise NotImplementedError

    async def create(self, request: AdminRequest) -> Answer:
        """``POST``: 201 with its place."""
        entry, warnings = await self.written(await self._entries.create(await request.payload()))
        place = f"{request.root}{self.path}/{quote(self.id_of(entry), safe='')}"
        return self._answer(entry, warnings, status=201, location=place)

    async def read(self, request: AdminRequest) -> Answer:
        """``GET`` of one."""
        return self._answer(await self._entries.find(request.id))

    async def replace(self, request: AdminRequest) -> Answer:
        """``PUT``: the whole entry anew."""
        raw, version = await request.payload(), await self.expected(request)
        return self._answer(*await self.written(await self._entries.replace(request.id, raw, version)))

    async def change(self, request: AdminRequest) -> Answer:
        """``PATCH``: the given fields anew."""
        raw, version = await request.payload(), await self.expected(request)
        return self._answer(*await self.written(await self._entries.change(request.id, raw, version)))

    async def expected(self, request: AdminRequest) -> int | None:
        """Return the version that the write must find; None: any. Raises PreconditionFailed."""
        return expected_version(request, (await self._entries.find(request.id)).version)

    async def written(self, written: tuple[E, list[str]]) -> tuple[E, list[str]]:
        """Bring a write into force, and return it with what there is to warn of."""
        entry, warnings = written
        return entry, [*warnings, *await self._in_force.bring()]

    def _answer(self, entry: E, warnings: object = (), *, status: int = 200, location: str | None = None) -> Answer:
        headers = {"etag": etag(entry.version), **({"location": location} if location is not None else {})}
        return Answer({**self.told(entry), "warnings": warnings}, status, headers)
