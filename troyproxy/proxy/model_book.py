"""Overrides of the model catalogue as an operator writes them: read, checked, and stored, one per ``provider/model``.

Those of the config file are shown and refused. What is not written shows what the catalogue knows. Knows neither HTTP
nor who asks, and reloads nothing: the caller does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from troyproxy.catalog.models import UNKNOWN, Model, Override
from troyproxy.catalog.providers import Origin
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import Conflict, NotFound, PreconditionFailed, ValidationFailed
from troyproxy.ports import Store
from troyproxy.proxy.model_words import read_model, read_spec, written
from troyproxy.proxy.rewriting import rewritten
from troyproxy.routing.lookup import shown
from troyproxy.routing.resolvers import connected

CATALOGUE: Final = "catalogue"
"""The origin of a model that nobody wrote anything of."""


@dataclass(frozen=True, slots=True)
class Known:
    """A model, what was written of it and where; no origin: nothing was."""

    spec: str
    written: Model = UNKNOWN
    origin: Origin | None = None
    version: int = 0


WrittenOverride = tuple[Known, list[str]]
"""The override as stored, and what is odd about it, one sentence each."""


class ModelBook:
    """The overrides of *store* and of the file behind *snapshot*; *file* is what errors call that.

    A model goes by its spec, in which the provider may stand by an alias, and the model too. Writes of one process take
    turns. Every method raises StoreUnavailable, and ConfigError for a row that is no model.
    """

    def __init__(self, store: Store, snapshot: Callable[[], Snapshot], *, file: str = "the config file") -> None:
        self._models, self._snapshot, self._file = store.models, snapshot, file
        self._turn = asyncio.Lock()

    async def entries(self, *, every: bool = False) -> list[Known]:
        """Return every override by spec; with *every* the other models of connected providers too."""
        found = await self._overrides()
        if every:
            for spec in self._listed():
                found.setdefault(spec, Known(spec))
        return sorted(found.values(), key=lambda known: known.spec)

    async def find(self, name: str) -> Known:
        """Return the model: its override, or that there is none. Raises NotFound for a model that nobody knows."""
        spec, found = self._spec(name), await self._overrides()
        if spec not in found and effective(spec, self._snapshot()) is None:
            raise NotFound(f"there is no model '{shown(name)}'")
        return found.get(spec, Known(spec))

    async def version(self, name: str) -> int | None:
        """Return the version of the override, None when there is none."""
        known = (await self._overrides()).get(self._spec(name))
        return None if known is None else known.version

    async def create(self, raw: Mapping[str, object]) -> WrittenOverride:
        """Store the override of the spec ``id``. Raises ValidationFailed, Conflict when there is one."""
        spec = read_spec(raw.get("id"), self._snapshot())
        model = read_model(raw, spec)
        async with self._turn:
            before = (await self._overrides()).get(spec)
            if before is not None:
                raise self._taken(before)
            return self._told(await self._models.add(Override(spec, model)))

    async def replace(
        self, name: str, raw: Mapping[str, object], expected_version: int | None = None
    ) -> WrittenOverride:
        """Store the override of *name* whether there is one or not.

        Raises ValidationFailed, PreconditionFailed when the stored version is not *expected_version*, Conflict for one
        of the file.
        """
        spec = read_spec(name, self._snapshot())
        self._refuse_other_id(raw, spec)
        model = read_model(raw, spec)
        async with self._turn:
            if spec not in await self._overrides():
                return self._told(await self._models.add(Override(spec, model)))
            before = await self._ours(spec)
            stored = await self._models.replace(Override(before.spec, model), expected_version=expected_version)
            return self._told(stored)

    async def change(
        self, name: str, raw: Mapping[str, object], expected_version: int | None = None
    ) -> WrittenOverride:
        """Store the override with the fields of *raw* changed. Raises NotFound when there is none, and as `replace`."""

        async def change() -> WrittenOverride:
            before = await self._ours(name)
            self._refuse_other_id(raw, before.spec)
            model = read_model({**written(before.written), **raw}, before.spec)
            version = before.version if expected_version is None else expected_version
            return self._told(await self._models.replace(Override(before.spec, model), expected_version=version))

        async with self._turn:
            return await rewritten(change, expected_version)

    async def remove(self, name: str, expected_version: int | None = None) -> Known:
        """Remove the override and return what it was. Raises NotFound, PreconditionFailed, Conflict."""
        async with self._turn:
            before = await self._ours(name)
            if expected_version not in {None, before.version}:
                raise PreconditionFailed(f"the override is at version {before.version}, not {expected_version}")
            await self._models.remove(before.spec)
            return before

    async def _overrides(self) -> dict[str, Known]:
        """Return what is written, by spec; what is stored lies over the file's."""
        snapshot = self._snapshot()
        found = {}
        for spec, model in snapshot.file_models.items():
            if "/" in spec:
                found[_canonical(spec, snapshot)] = Known(_canonical(spec, snapshot), model, Origin.FILE)
        for stored in await self._models.entries():
            known = Known(stored.spec, stored.model, Origin.DATABASE, stored.version)
            found[_canonical(stored.spec, snapshot)] = known
        return found

    def _listed(self) -> list[str]:
        providers = (provider for provider in self._snapshot().providers.values() if connected(provider))
        return [f"{provider.id}/{model}" for provider in providers for model in provider.models]

    def _spec(self, name: str) -> str:
        return _canonical(name, self._snapshot())

    async def _ours(self, name: str) -> Known:
        known = (await self._overrides()).get(self._spec(name))
        if known is None:
            raise NotFound(f"there is no override of '{shown(name)}'")
        if known.origin is not Origin.DATABASE:
            raise self._taken(known)
        return known

    def _refuse_other_id(self, raw: Mapping[str, object], spec: str) -> None:
        given = raw.get("id")
        if given is not None and (not isinstance(given, str) or self._spec(given) != self._spec(spec)):
            raise ValidationFailed("the id stays", details=[{"field": "id", "message": "cannot be changed"}])

    def _taken(self, known: Known) -> Conflict:
        if known.origin is Origin.FILE:
            return Conflict(f"the override of {known.spec!r} belongs to {self._file}; change it there", param="id")
        return Conflict(f"there is an override of {known.spec!r}", param="id")

    def _told(self, stored: Override) -> WrittenOverride:
        known = Known(stored.spec, stored.model, Origin.DATABASE, stored.version)
        head = stored.spec.partition("/")[0]
        if self._snapshot().provider(head) is None:
            return known, [f"{head} is no configured provider: the override has no effect until it is one"]
        return known, []


def effective(spec: str, snapshot: Snapshot) -> Model | None:
    """Return what the gateway goes by for the model, None when its provider is not configured or does not list it."""
    head, _, name = spec.partition("/")
    provider = snapshot.provider(head)
    listed = provider.canonical_model(name) if provider is not None else None
    return provider.models[listed] if provider is not None and listed is not None else None


def as_written(known: Known, snapshot: Snapshot) -> dict[str, object]:
    """Return *known*, JSON-ready: what was written, and what the gateway goes by."""
    head, _, name = known.spec.partition("/")
    model = effective(known.spec, snapshot)
    return {
        "id": known.spec,
        "provider": head,
        "model": name,
        **written(known.written),
        "effective": None if model is None else written(model),
        "overridden": known.origin is not None,
        "origin": _origin(known, snapshot),
        "read_only": known.origin is Origin.FILE,
        "version": known.version,
    }


def _origin(known: Known, snapshot: Snapshot) -> str:
    """Return where the override is written; without one, where the list comes from that has the model."""
    head, _, name = known.spec.partition("/")
    provider = snapshot.provider(head)
    if known.origin is not None:
        return known.origin.value
    if provider is None or name in snapshot.catalog.get(provider.id, {}):
        return CATALOGUE
    return provider.origin.value


def _canonical(name: str, snapshot: Snapshot) -> str:
    """Return *name* with the ids of provider and model where they are known, for comparing."""
    try:
        return read_spec(name, snapshot)
    except ValidationFailed:
        return name
