"""``GET /v1/models``: combos as pseudo-models, the ``auto`` ids, and the models of connected providers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from troyproxy.accounting.limits import Standing
from troyproxy.catalog.keys import Key
from troyproxy.catalog.models import Capabilities
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import ModelNotFound, TroyError
from troyproxy.proxy.answers import Receive, Send, send_error, send_json
from troyproxy.proxy.authenticator import Authenticate
from troyproxy.proxy.call import Scope
from troyproxy.proxy.report import rate_headers
from troyproxy.routing.advertise import Advert, advertise, advertise_auto
from troyproxy.routing.globs import allowed
from troyproxy.routing.lookup import AUTO_IDS, shown, spec_provider
from troyproxy.routing.names import resolve
from troyproxy.routing.pool import auto_pool
from troyproxy.routing.resolvers import connected

OWNER: Final = "troy"

Entry = dict[str, object]


class ModelList:
    """The list, and one entry of it; a key sees only what it may use."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        authenticate: Authenticate,
        standing: Callable[[Key], tuple[Standing, ...]] | None = None,
    ) -> None:
        """*standing*: where a limited key stands, which all of its answers tell; None tells nobody."""
        self._snapshot, self._authenticate, self._standing = snapshot, authenticate, standing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        rates: Mapping[str, str] = {}
        try:
            key = await self._authenticate(scope)
            rates = self._rates(key)
            wanted = scope.get("path_params", {}).get("id")
            snapshot = self._snapshot()
            entries = visible(snapshot, key)
            value = {"object": "list", "data": list(entries)} if wanted is None else _one(entries, wanted, snapshot)
        except TroyError as error:
            await send_error(send, error, rates)
        else:
            await send_json(send, 200, value, rates)

    def _rates(self, key: Key | None) -> dict[str, str]:
        """Return the headers of a limited key; to look at the list costs it nothing."""
        if key is None or not key.limits or self._standing is None:
            return {}
        return {name.decode(): value.decode() for name, value in rate_headers(self._standing(key))}


def visible(snapshot: Snapshot, key: Key | None) -> Iterator[Entry]:
    """Yield what *key* may use (None = everything): combos first, then ``auto``, then specs in file order."""
    globs = key.models if key is not None else ()
    return (entry for entry in entries_of(snapshot) if allowed(globs, str(entry["id"])))


def entries_of(snapshot: Snapshot) -> Iterator[Entry]:
    """Yield every entry of the list, no id twice: where a combo's name reads as a spec, the spec has it."""
    for combo in snapshot.combos.values():
        head, slash, _ = combo.name.partition("/")
        if slash and spec_provider(head, snapshot) is not None:
            continue
        yield _entry(combo.name, OWNER, combo.created_at, advertise(combo, snapshot))
    if any(connected(provider) for provider in snapshot.providers.values()):
        advert, pool = advertise_auto(snapshot), list(dict.fromkeys(c.spec for c in auto_pool(snapshot) if c.model))
        yield from ({**_entry(name, OWNER, 0.0, advert), "pool": pool} for name in AUTO_IDS)
    for provider in snapshot.providers.values():
        if connected(provider):
            for model in provider.models.values():
                advert = Advert(model.capabilities, model.limits)
                yield _entry(f"{provider.id}/{model.id}", provider.id, 0.0, advert)


def _entry(name: str, owner: str, created: float, advert: Advert) -> Entry:
    return {
        "id": name,
        "object": "model",
        "created": int(created),
        "owned_by": owner,
        "context_length": advert.limits.context,
        "max_output_tokens": advert.limits.output,
        "capabilities": _flags(advert.capabilities),
    }


def _meant(wanted: str, snapshot: Snapshot) -> str:
    """Return the canonical name; "" for a name that means nothing."""
    try:
        return resolve(wanted, snapshot).canonical
    except TroyError:
        return ""


def _flags(capabilities: Capabilities) -> dict[str, bool | None]:
    return {name: getattr(capabilities, name) for name in ("tools", "vision", "reasoning", "json", "audio")}


def _one(entries: Iterator[Entry], wanted: str, snapshot: Snapshot) -> Entry:
    """Return the entry of the id *wanted*, or of what a request for *wanted* would mean (aliases, ids of combos)."""
    found = {entry["id"]: entry for entry in entries}
    entry = found.get(wanted) or found.get(_meant(wanted, snapshot))
    if entry is not None:
        return entry
    raise ModelNotFound(f"there is no model '{shown(wanted)}' for this key", param="model")
