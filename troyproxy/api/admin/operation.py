"""An operation: one method on one path, with all that is to be known of it. Routes and the OpenAPI document read it.

    class Things:
        def operations(self) -> list[Operation]:
            return [
                Operation("GET", "/api/things", self.list, "things", "List the things.", {200: page_schema(THING)},
                          query=(LIMIT, CURSOR, SINCE), fails=(StoreUnavailable,)),
                Operation("PUT", "/api/things/{id:path}", self.replace, "things", "Replace a thing.", {200: THING},
                          takes=body_of(SHAPE), versioned=True, fails=(Conflict, StoreUnavailable)),
            ]

A handler gets its query by ``request.value(LIMIT)``, typed, after everything declared was checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from troyproxy.api.admin.parameters import Parameter
from troyproxy.api.admin.resource import Handler
from troyproxy.api.admin.schemas import Schema
from troyproxy.errors import (
    BodyTooLarge,
    InvalidAPIKey,
    InvalidJSON,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    RateLimited,
    TroyError,
    UnsupportedEncoding,
    UnsupportedMediaType,
    ValidationFailed,
)

JSON: Final = "application/json"
ALWAYS: Final[tuple[type[TroyError], ...]] = (InvalidAPIKey, ValidationFailed, RateLimited, TroyError)
"""Whatever is asked: the guard, a query that is not declared, a bug of ours."""
OF_BODIES: Final[tuple[type[TroyError], ...]] = (
    InvalidJSON,
    InvalidRequest,
    BodyTooLarge,
    UnsupportedMediaType,
    UnsupportedEncoding,
)


@dataclass(frozen=True, slots=True)
class Operation:
    """One method on one path."""

    method: str
    path: str
    """May hold ``{id}``, or ``{id:path}`` as its end for ids with slashes."""
    handle: Handler
    tag: str
    summary: str
    """One sentence, for people."""
    answers: Mapping[int, Schema]
    """Every status of success, and the schema of its body."""
    takes: Schema | None = None
    """The schema of the JSON body; None: no body is read."""
    query: tuple[Parameter[Any], ...] = ()
    fails: tuple[type[TroyError], ...] = ()
    """What else it may answer, beside the errors that come with the guard, the query, the body, ``{id}``, versions."""
    versioned: bool = False
    """A write that heeds ``If-Match``."""
    headers: Mapping[str, str] | None = None
    """Request headers that it reads, each with one sentence."""
    description: str = ""
    media: str = JSON
    """The content type of success."""

    def errors(self) -> tuple[type[TroyError], ...]:
        """Return every error class that it may answer with."""
        bodies = OF_BODIES if self.takes is not None else ()
        versions = (PreconditionFailed,) if self.versioned else ()
        missing = (NotFound,) if "{" in self.path else ()
        return tuple(dict.fromkeys((*ALWAYS, *bodies, *versions, *missing, *self.fails)))


class Resource(Protocol):
    """What the handlers of one resource are kept in."""

    def operations(self) -> Sequence[Operation]:
        """Return what can be done with it."""
        ...
