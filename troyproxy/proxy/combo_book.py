"""Combos as an operator writes them: read, checked against everything that exists, and stored.

The admin API and the command line both write through here. The rules are those of the config file; entries that do not
live in the database are shown and refused. Knows neither HTTP nor who asks, and reloads nothing: the caller does.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from troyproxy.auto.config import BadAuto, read_auto
from troyproxy.auto.weights import DEFAULT
from troyproxy.catalog import naming
from troyproxy.catalog.combos import STRATEGY_NAMES, Combo, Member
from troyproxy.catalog.providers import Origin
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import Conflict, InvalidRequest, NotFound, PreconditionFailed, ValidationFailed
from troyproxy.ports import Store
from troyproxy.proxy.rewriting import rewritten
from troyproxy.routing.lookup import exact_combo, shown
from troyproxy.routing.members import AUTO, cycle, warnings_of
from troyproxy.settings import leaves
from troyproxy.settings.report import Report, Wrong
from troyproxy.settings.sections import MEMBER, check_config
from troyproxy.settings.shapes import Shape, leaf, listing, record

READ_ONLY: Final = frozenset({"effective_weights", "origin", "version", "created_at", "warnings"})
"""Fields of an answer that may come back in a request, and are ignored there."""
MAX_MEMBERS: Final = 1000
MAX_CONFIG_DEPTH: Final = 20

Written = tuple[Combo, list[str]]
"""The combo as stored, and what is odd about it, one sentence each."""


class ComboBook:
    """The combos of *store*, beside those that *snapshot* holds from elsewhere; *file* is what errors call the file.

    A combo goes by its id or its name. Writes of one process take turns, so that two edits cannot close a ring between
    them; a ring that two processes close is found when the snapshot is built, and walks end all the same. Every method
    raises StoreUnavailable too.
    """

    def __init__(self, store: Store, snapshot: Callable[[], Snapshot], *, file: str = "the config file") -> None:
        self._combos, self._snapshot, self._file = store.combos, snapshot, file
        self._turn = asyncio.Lock()

    async def entries(self) -> list[Combo]:
        """Return every combo that counts, by id; one of the database that another entry hides is left out."""
        return sorted((await self._picture()).combos.values(), key=lambda combo: combo.id)

    async def find(self, name: str) -> Combo:
        """Return the combo. Raises NotFound."""
        return _found(name, await self._picture())

    async def create(self, raw: Mapping[str, object]) -> Written:
        """Store a new combo. Raises ValidationFailed, InvalidRequest (a ring), Conflict."""
        async with self._turn:
            picture = await self._picture()
            combo = read_combo(raw, picture)
            self._check(combo, picture.combos.values(), picture)
            return await self._combos.add(combo), warnings_of(combo, picture)

    async def replace(self, name: str, raw: Mapping[str, object], expected_version: int | None = None) -> Written:
        """Store *raw* in place of the combo; a name that is not given stays.

        Raises NotFound, PreconditionFailed when the stored version is not *expected_version*, and as `create`.
        """
        async with self._turn:
            picture = await self._picture()
            return await self._put(self._ours(name, picture), raw, expected_version, picture)

    async def change(self, name: str, raw: Mapping[str, object], expected_version: int | None = None) -> Written:
        """Store the combo with the fields of *raw* changed. Raises as `replace`."""

        async def change() -> Written:
            picture = await self._picture()
            before = self._ours(name, picture)
            kept = as_written(before)
            if "models" in raw:
                del kept["members"]
            version = before.version if expected_version is None else expected_version
            return await self._put(before, {**kept, **raw}, version, picture)

        async with self._turn:
            return await rewritten(change, expected_version)

    async def remove(self, name: str, expected_version: int | None = None) -> Combo:
        """Remove the combo and return what it was. Raises NotFound, PreconditionFailed, Conflict."""
        async with self._turn:
            combo = self._ours(name, await self._picture())
            if expected_version not in {None, combo.version}:
                raise PreconditionFailed(f"the combo is at version {combo.version}, not {expected_version}")
            await self._combos.remove(combo.id)
            return combo

    async def _picture(self) -> Snapshot:
        """Return the snapshot with the combos that are stored now: another process may just have written one."""
        snapshot = self._snapshot()
        fixed = [combo for combo in snapshot.combos.values() if combo.origin is not Origin.DATABASE]
        taken = frozenset[str]().union(*map(_forms, fixed))
        stored = [combo for combo in await self._combos.list() if not _forms(combo) & taken]
        combos = {combo.name: combo for combo in (*fixed, *stored)}
        ids = {combo.id: combo.name for combo in combos.values()}
        return replace(snapshot, combos=MappingProxyType(combos), combo_ids=MappingProxyType(ids))

    async def _put(
        self, before: Combo, raw: Mapping[str, object], expected_version: int | None, picture: Snapshot
    ) -> Written:
        combo = read_combo({"id": before.id, "name": before.name, **raw}, picture)
        if combo.id != before.id:
            raise ValidationFailed("the id of a combo stays", details=[{"field": "id", "message": "cannot be changed"}])
        others = [other for other in picture.combos.values() if other.id != before.id]
        self._check(combo, others, picture)
        return await self._combos.replace(combo, expected_version=expected_version), warnings_of(combo, picture)

    def _check(self, combo: Combo, others: Iterable[Combo], picture: Snapshot) -> None:
        for other in others:
            if _forms(other) & _forms(combo):
                raise self._taken(other)
        ring = cycle(combo, picture)
        if ring is not None:
            raise InvalidRequest(f"the combos would form a ring: {' → '.join(ring)}", param="members")

    def _ours(self, name: str, picture: Snapshot) -> Combo:
        combo = _found(name, picture)
        if combo.origin is not Origin.DATABASE:
            raise self._taken(combo)
        return combo

    def _taken(self, combo: Combo) -> Conflict:
        if combo.origin is Origin.DATABASE:
            return Conflict(f"a combo {combo.name!r} with the id {combo.id!r} exists", param="name")
        if combo.origin is Origin.FILE:
            return Conflict(f"the combo {combo.name!r} belongs to {self._file}; change it there", param="name")
        return Conflict(f"the combo {combo.name!r} is built in and cannot be changed", param="name")


def read_combo(raw: Mapping[str, object], snapshot: Snapshot) -> Combo:
    """Return the combo that *raw* describes: ``{id, name, strategy, members (or models), config}``.

    Raises ValidationFailed with every problem in its details. Nothing is looked up but the names of providers.
    """
    report = Report()
    given = {key: value for key, value in raw.items() if key not in READ_ONLY}
    combo = combo_shape(frozenset(snapshot.provider_names)).read(given, "", report)
    if combo is not None:
        return combo
    problems = [{"field": place, "message": message} for place, message in report.problems]
    told = "; ".join(f"{place}: {message}" for place, message in report.problems[:5])
    raise ValidationFailed(f"the combo is not valid: {told}", details=problems)


def as_written(combo: Combo) -> dict[str, object]:
    """Return *combo* in the form that `read_combo` takes, with what only answers tell (`READ_ONLY`)."""
    return {
        "id": combo.id,
        "name": combo.name,
        "strategy": combo.strategy,
        "members": [_member(member) for member in combo.members],
        "config": dict(combo.config),
        "effective_weights": effective_weights(combo),
        "origin": combo.origin.value,
        "version": combo.version,
        "created_at": combo.created_at,
    }


def effective_weights(combo: Combo) -> dict[str, float] | None:
    """Return the weights by which a combo of strategy ``auto`` scores; None for any other."""
    if combo.strategy != AUTO:
        return None
    try:
        return dict(read_auto(combo.config.get("auto")).weights)
    except BadAuto:
        return dict(DEFAULT)


def _member(member: Member) -> dict[str, object]:
    named = {"model": member.model, "combo": member.combo, "account": member.account}
    return {**{key: value for key, value in named.items() if value is not None}, "weight": member.weight}


def _found(name: str, picture: Snapshot) -> Combo:
    combo = exact_combo(name, picture)
    if combo is None:
        raise NotFound(f"there is no combo '{shown(name)}'")
    return combo


def _forms(combo: Combo) -> frozenset[str]:
    """Return what nothing else may be called: names and ids share one namespace, in any case."""
    return frozenset({naming.same_name(combo.name), naming.same_name(combo.id)})


def combo_shape(heads: frozenset[str] = frozenset()) -> Shape[Combo]:
    """Return what a combo may be written as; *heads* are providers, whose models a combo must not be named like."""
    return record(
        {
            "id": leaves.named(naming.slug),
            "name": leaves.named(lambda text: naming.combo_name(text, providers=heads)),
            "strategy": leaf(_strategy, ", ".join(STRATEGY_NAMES), {"enum": list(STRATEGY_NAMES)}),
            "members": listing(MEMBER),
            "models": listing(MEMBER),
            "config": leaf(_config, f"an object, at most {MAX_CONFIG_DEPTH} deep", {"type": "object"}),
        },
        _built,
        required=("name",),
    )


def _strategy(value: object) -> str:
    if not isinstance(value, str) or value not in STRATEGY_NAMES:
        raise ValueError
    return value


def _config(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError
    level: list[object] = [value]
    for _ in range(MAX_CONFIG_DEPTH):
        level = [inner for node in level for inner in _inside(node)]
    if level:
        raise ValueError
    return MappingProxyType(value)


def _inside(node: object) -> Iterable[object]:
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def _check_storable(config: Mapping[str, object]) -> None:
    """Refuse what no database keeps. Raises Wrong with the place of each."""
    problems = list(_unstorable(config, "config"))
    if problems:
        raise Wrong(*problems[0], problems[1:])


def _unstorable(node: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield place and trouble of everything in *node* that no database keeps; it is not deep (`_config`)."""
    if isinstance(node, Mapping):
        for key, inner in node.items():
            if _text_is_whole(key):
                yield from _unstorable(inner, f"{path}.{key}")
            else:
                yield path, "a name in it holds a NUL or half a character, which no database keeps"
    elif isinstance(node, list):
        for at, inner in enumerate(node):
            yield from _unstorable(inner, f"{path}[{at}]")
    elif isinstance(node, float) and not math.isfinite(node):
        yield path, "must be a finite number"
    elif isinstance(node, str) and not _text_is_whole(node):
        yield path, "holds a NUL or half a character, which no database keeps"


def _text_is_whole(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _built(
    *,
    name: str,
    id: str | None = None,  # noqa: A002 -- the field's name
    strategy: str = "fallback",
    members: tuple[Member, ...] = (),
    models: tuple[Member, ...] = (),
    config: Mapping[str, object] = MappingProxyType({}),
) -> Combo:
    if members and models:
        raise Wrong("models", "is another name for members; give one of them")
    chain = members or models
    if not chain and strategy != AUTO:
        raise Wrong("members", f"allowed: 1 to {MAX_MEMBERS} members; only strategy auto may do without")
    if len(chain) > MAX_MEMBERS:
        raise Wrong("members", f"allowed: at most {MAX_MEMBERS} members")
    _check_storable(config)
    check_config(config)
    return Combo(
        id=id or naming.combo_id(name),
        name=name,
        strategy=strategy,
        members=chain,
        config=config,
        origin=Origin.DATABASE,
    )
