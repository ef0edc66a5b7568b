"""What must differ from the client's body for one member. A value: applying it to bytes is `wire`'s work."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct


class Changes(Struct, frozen=True):
    """Top-level members to set and to drop. A key is never in both."""

    set: Mapping[str, object] = MappingProxyType({})
    drop: frozenset[str] = frozenset()
    adapted: tuple[str, ...] = ()
    """One compact string per change that a caller should know of: ``reasoning_effort=high``, ``-stream_options``."""

    def then(self, later: Changes) -> Changes:
        """Return both; where they touch the same key, *later* wins."""
        if not (later.set or later.drop or later.adapted):
            return self
        if not (self.set or self.drop or self.adapted):
            return later
        dropped = (self.drop - later.set.keys()) | later.drop
        merged = {key: value for key, value in {**self.set, **later.set}.items() if key not in later.drop}
        return Changes(MappingProxyType(merged), frozenset(dropped), self.adapted + later.adapted)

    def applied(self, payload: Mapping[str, object]) -> dict[str, object]:
        """Return the changed *payload*, keys in their place and new ones behind."""
        return {key: value for key, value in payload.items() if key not in self.drop} | dict(self.set)


UNCHANGED: Final = Changes()
"""Nothing must differ."""


def dropping(payload: Mapping[str, object], *keys: str) -> Changes:
    """Return the changes that remove those of *keys* that *payload* has."""
    present = [key for key in keys if key in payload]
    if not present:
        return UNCHANGED
    return Changes(drop=frozenset(present), adapted=tuple([f"-{key}" for key in present]))


def setting(payload: Mapping[str, object], key: str, value: object, note: str) -> Changes:
    """Return the change of *key* to *value*, listed as *note*; none when the payload has exactly that."""
    if key in payload and payload[key] == value:
        return UNCHANGED
    return Changes(MappingProxyType({key: value}), adapted=(note,))
