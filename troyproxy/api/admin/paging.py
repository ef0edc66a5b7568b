"""Lists in pages: ``?limit=`` and ``?cursor=`` in, ``{data, next_cursor}`` out.

A cursor is opaque to clients: base64url of the key after which the next page starts. It holds no secret and grants
nothing, so it is not signed; a made-up one starts somewhere else in the same list.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from troyproxy.api.admin.parameters import Parameter, whole
from troyproxy.api.admin.schemas import exactly, listing, nullable

T = TypeVar("T")

LONGEST_CURSOR: Final = 2000


def _decoded(cursor: str) -> str:
    padding = "=" * (-len(cursor) % 4)
    try:
        key = base64.b64decode(cursor + padding, altchars=b"-_", validate=True).decode("utf-8")
    except (binascii.Error, ValueError) as error:
        raise ValueError("is no cursor of this list") from error
    if len(cursor) > LONGEST_CURSOR or "\0" in key:  # PostgreSQL takes no NUL in a text
        raise ValueError("is no cursor of this list")
    return key


def cursor_for(key: str) -> str:
    """Return the cursor of the page that starts after *key*."""
    return base64.urlsafe_b64encode(key.encode("utf-8")).decode("ascii").rstrip("=")


CURSOR: Final[Parameter[str | None]] = Parameter(
    "cursor",
    "Where to go on: the `next_cursor` of the page before.",
    _decoded,
    {"type": "string", "maxLength": LONGEST_CURSOR},
).optional()
"""Its value is the decoded key, None for the first page."""


def limit(default: int = 100, most: int = 500) -> Parameter[int]:
    """Return the parameter ``limit``: entries on a page."""
    return whole("limit", "How many entries a page has at most.", 1, most).otherwise(default)


def page(data: Sequence[object], after: str | None) -> dict[str, object]:
    """Return one page; *after* is the key of its last entry, None when it is the last page."""
    return {"data": list(data), "next_cursor": None if after is None else cursor_for(after)}


def cut(
    entries: Iterable[T], key: Callable[[T], str], shown: Callable[[T], object], after: str | None, most: int
) -> dict[str, object]:
    """Return the page of *most* entries after the key *after*, of a list that is in memory and sorted by *key*."""
    rest = [entry for entry in entries if after is None or key(entry) > after]
    found = rest[:most]
    return page([shown(entry) for entry in found], key(found[-1]) if len(rest) > most else None)


def page_schema(entry: Mapping[str, object]) -> dict[str, object]:
    """Return the schema of one page of *entry*."""
    return exactly(data=listing(entry), next_cursor=nullable({"type": "string"}))
