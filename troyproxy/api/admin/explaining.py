"""What ``/api/explain`` and ``/api/combos/{id}/explain`` have in common: the request, its key, the answer."""

from __future__ import annotations

import secrets
from typing import Final

from troyproxy.api.admin.in_force import file_of
from troyproxy.api.admin.parameters import Parameter, text
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.services import Services
from troyproxy.errors import InvalidEffort, ModelNotAllowed, ModelNotFound, NotFound, StoreUnavailable, UnknownVariant
from troyproxy.proxy.explain import draft_call, explain
from troyproxy.proxy.key_book import KeyBook

KEY: Final[Parameter[str | None]] = text(
    "key", "A client key by id or name: explain what it would get, with what it may use and what is remembered for it."
).optional()
FAILS: Final = (UnknownVariant, InvalidEffort, ModelNotFound, ModelNotAllowed, NotFound, StoreUnavailable)


async def explained(services: Services, request: AdminRequest, body: bytes) -> Answer:
    """Explain the chat request *body* with the headers of *request*. Raises one of `FAILS`, and InvalidRequest."""
    snapshots, name = services.snapshots, request.value(KEY)
    book = KeyBook(services.store, lambda: snapshots.current, services.clock, file=file_of(services))
    call = draft_call(
        body,
        snapshots.current,
        at=services.clock.now(),
        seed=secrets.randbits(64),
        headers=request.headers,
        key=None if name is None else await book.find(name),
    )
    return Answer(explain(services.planner, call, services.learned))
