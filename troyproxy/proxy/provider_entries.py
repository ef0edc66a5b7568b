"""A configured provider as the admin API tells it: what was written, what is in force, and nothing secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from troyproxy.catalog.providers import BEARER, NO_AUTH, X_API_KEY, Account, Auth, Origin, Provider, StoredProvider
from troyproxy.proxy.provider_picture import Picture
from troyproxy.routing.resolvers import connected
from troyproxy.settings import leak_shapes
from troyproxy.settings.show import MASK, without_password

READ_ONLY: Final = frozenset(
    {"effective", "origin", "read_only", "connected", "account_count", "connection_count", "model_count"}
    | {"version", "created_at", "warnings"}
)
"""Fields of an answer that may come back in a request, and are ignored there."""
_WORDS: Final[Mapping[Auth, str]] = {BEARER: "bearer", X_API_KEY: "x-api-key", NO_AUTH: "none"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A provider, its row if it has one, and what belongs to it."""

    provider: Provider
    row: StoredProvider | None
    connections: tuple[Account, ...]
    models: int

    @property
    def version(self) -> int:
        """The version of its row; 0 without one."""
        return 0 if self.row is None else self.row.version


def entry_of(provider_id: str, picture: Picture) -> Entry | None:
    """Return what *picture* shows of a provider, also of one whose row cannot be used; None when there is neither."""
    row, provider = picture.rows.get(provider_id), picture.providers.get(provider_id)
    if provider is None and row is None:
        return None
    live = picture.snapshot.providers.get(provider_id)
    return Entry(
        provider or Provider(provider_id, origin=Origin.DATABASE),
        row,
        tuple(picture.connections_of(provider_id)),
        0 if live is None else len(live.models),
    )


def entries_of(picture: Picture) -> Iterator[Entry]:
    """Yield every provider that *picture* shows, by id."""
    found = (entry_of(name, picture) for name in sorted(picture.providers.keys() | picture.rows.keys()))
    return (entry for entry in found if entry is not None)


def as_written(entry: Entry) -> dict[str, object]:
    """Return *entry* as an answer tells it: the fields as they were written, and beside them what only answers tell."""
    provider = entry.provider
    return {
        "id": provider.id,
        **(entry.row.config if entry.row is not None else {}),
        "effective": effective(provider),
        "origin": provider.origin.value,
        "read_only": provider.origin is not Origin.DATABASE,
        "connected": bool(provider.base_url or provider.app) and connected(provider),
        "account_count": len(provider.accounts),
        "connection_count": len(entry.connections),
        "model_count": entry.models,
        "version": entry.version,
        "created_at": entry.row.created_at if entry.row is not None else 0.0,
    }


def effective(provider: Provider) -> dict[str, object]:
    """Return what is in force of *provider*. Fixed values of the file may be secrets: only their names are told."""
    shown = provider.origin is Origin.DATABASE
    return {
        "base_url": without_password(provider.base_url),
        "app": provider.app,
        "aliases": list(provider.aliases),
        "auth": _WORDS.get(provider.auth) or {"header": provider.auth.header},
        "headers": {name: value if shown else MASK for name, value in provider.headers},
        "query": {name: value if shown else MASK for name, value in provider.query},
        "default_model": provider.default_model,
        "accepts": {"stream_options": provider.accepts.stream_options, "effort": provider.accepts.effort.value},
        "ca_file": provider.ca_file,
        "proxy": None if provider.proxy is None else without_password(provider.proxy),
        "timeouts": asdict(provider.timeouts),
        "max_inflight": provider.max_inflight,
        "leak": leak_shapes.as_written(provider.leak),
    }
