"""The OpenAPI 3.1 document of the admin API, made of its operations: what is served is what is described.

Schemas with a ``title`` become components. The document depends on the operations alone, so two processes of one
version give the same bytes. It describes the admin API only: what a chat request may hold is the upstream's to say.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from troyproxy.api.admin.operation import JSON, Operation
from troyproxy.api.admin.parameters import Parameter
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.admin.schemas import TEXT, Schema, exactly, listing, nullable, some, titled
from troyproxy.errors import InvalidAPIKey, RateLimited, TroyError, ValidationFailed, type_of
from troyproxy.version import VERSION

PATH: Final = "/api/openapi.json"
TOKEN: Final = "adminToken"  # noqa: S105 -- the name of a scheme
NO_STORE: Final = {"schema": {"type": "string", "const": "no-store"}}
REQUEST_ID: Final = {"description": "Names this request in logs.", "schema": TEXT}
PROSE: Final = (
    "Every call needs the admin token as a bearer token. No answer may be cached. Query parameters that are not "
    "listed are refused. `HEAD` works wherever `GET` does; any other method is 405 and `Allow` names those that work."
)
DETAILS: Final = listing(
    exactly(field={**TEXT, "description": "The path of the field, or of the parameter."}, message=TEXT)
)


class Description:
    """The handler that gives the document of *operations* and of itself."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        said = "This document."
        mine = Operation("GET", PATH, self.read, "description", said, {200: {"type": "object"}})
        self.operations = (*operations, mine)

    async def read(self, request: AdminRequest) -> Answer:
        """``GET /api/openapi.json``."""
        return Answer(document(self.operations, request.root))


def document(operations: Iterable[Operation], server: str = "") -> dict[str, object]:
    """Return the document; *server* is what stands before ``/api``."""
    components = _Components()
    paths: defaultdict[str, dict[str, object]] = defaultdict(dict)
    ordered = sorted(operations, key=lambda each: (public(each.path), each.method))
    for operation in ordered:
        found = _operation(operation, components)
        paths[public(operation.path)][operation.method.lower()] = found
        if 201 in operation.answers:
            found["responses"]["201"]["links"] = _links(operation, ordered)
    return {
        "openapi": "3.1.0",
        "info": {"title": "troyproxy admin API", "version": VERSION, "description": PROSE},
        "servers": [{"url": server or "/"}],
        "security": [{TOKEN: []}],
        "paths": dict(paths),
        "components": {
            "schemas": dict(sorted(components.schemas.items())),
            "securitySchemes": {TOKEN: {"type": "http", "scheme": "bearer", "description": "`TROY_ADMIN_TOKEN`."}},
        },
    }


def public(path: str) -> str:
    """Return *path* as the document has it: ``{id:path}`` is ours, ``{id}`` the standard's."""
    return path.replace(":path}", "}")


class _Components:
    """Collects titled schemas. Raises ValueError when two different ones have the same title."""

    def __init__(self) -> None:
        self.schemas: dict[str, object] = {}

    def refer(self, value: object) -> Any:  # noqa: ANN401 -- JSON in, JSON out
        """Return *value* with every titled schema in it replaced by a reference."""
        if isinstance(value, list | tuple):
            return [self.refer(each) for each in value]
        if not isinstance(value, Mapping):
            return value
        found = {key: self.refer(each) for key, each in value.items()}
        title = found.get("title")
        if not isinstance(title, str):
            return found
        if self.schemas.setdefault(title, found) != found:
            raise ValueError(f"two schemas are titled {title}")
        return {"$ref": f"#/components/schemas/{title}"}


def _links(creates: Operation, operations: Iterable[Operation]) -> dict[str, object]:
    """Return what can be done with what was created, by its id."""
    given = {"id": "$response.body#/id"}
    return {
        name: {"operationId": name, "parameters": given}
        for name, path in ((operation_id(each), public(each.path)) for each in operations)
        if path.startswith(f"{creates.path}/{{id}}")
    }


def _operation(operation: Operation, components: _Components) -> dict[str, Any]:
    described = {"description": operation.description} if operation.description else {}
    body = {} if operation.takes is None else {"requestBody": _body(operation.takes, components)}
    return {
        "operationId": operation_id(operation),
        "tags": [operation.tag],
        "summary": operation.summary,
        **described,
        "parameters": [*_in_path(operation), *map(_in_query, operation.query), *_in_head(operation)],
        **body,
        "responses": _responses(operation, components),
    }


def operation_id(operation: Operation) -> str:
    """Return the name of an operation, such as ``patch_combos_id``."""
    words = re.findall(r"[A-Za-z0-9]+", public(operation.path).removeprefix("/api"))
    return "_".join([operation.method.lower(), *words])


def _body(schema: Schema, components: _Components) -> dict[str, object]:
    return {"required": True, "content": {JSON: {"schema": components.refer(schema)}}}


def _in_path(operation: Operation) -> list[dict[str, object]]:
    names = re.findall(r"\{(\w+)", operation.path)
    said = "Slashes are written as `%2F` or as they are." if ":path}" in operation.path else ""
    schema = {"type": "string", "minLength": 1}
    return [
        {"name": name, "in": "path", "required": True, "schema": schema, **({"description": said} if said else {})}
        for name in names
    ]


def _in_query(parameter: Parameter[Any]) -> dict[str, object]:
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.doc,
        "schema": dict(parameter.schema),
    }


def _in_head(operation: Operation) -> list[dict[str, object]]:
    given = dict(operation.headers or {})
    if operation.versioned:
        given["if-match"] = "The ETag that was read, or several, or `*`: the write is refused when somebody was faster."
    return [
        {"name": name, "in": "header", "required": False, "description": said, "schema": TEXT}
        for name, said in given.items()
    ]


def _responses(operation: Operation, components: _Components) -> dict[str, object]:
    by_status: defaultdict[int, list[type[TroyError]]] = defaultdict(list)
    for error in operation.errors():
        by_status[error.status].append(error)
    good = {str(status): _success(operation, status, components) for status in operation.answers}
    bad = {str(status): _failure(status, errors, components) for status, errors in by_status.items()}
    return dict(sorted({**good, **bad}.items()))


def _success(operation: Operation, status: int, components: _Components) -> dict[str, object]:
    headers: dict[str, object] = {}
    if status == 201 or (operation.versioned and operation.method != "DELETE"):
        headers["etag"] = {"description": "The version, for `If-Match`.", "schema": TEXT}
    if status == 201:
        headers["location"] = {"description": "Where it is now.", "schema": TEXT}
    content = {operation.media: {"schema": components.refer(operation.answers[status])}}
    return _response(HTTPStatus(status).phrase, headers, content)


def _failure(status: int, errors: Iterable[type[TroyError]], components: _Components) -> dict[str, object]:
    headers: dict[str, object] = {}
    if status == RateLimited.status:
        headers["retry-after"] = {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}}
    if status == InvalidAPIKey.status:
        headers["www-authenticate"] = {"schema": {"type": "string", "const": "Bearer"}}
    codes = sorted({error.code for error in errors})
    said = f"{HTTPStatus(status).phrase}: {', '.join(f'`{code}`' for code in codes)}."
    return _response(said, headers, {JSON: {"schema": components.refer(envelope(status, codes))}})


def _response(said: str, headers: Mapping[str, object], content: Mapping[str, object]) -> dict[str, object]:
    always = {"cache-control": NO_STORE, "x-troy-request-id": REQUEST_ID}
    return {"description": said, "headers": {**always, **headers}, "content": content}


def envelope(status: int, codes: Iterable[str]) -> dict[str, object]:
    """Return the schema of the error envelope with these codes."""
    codes = list(codes)
    title = "Or".join("".join(word.capitalize() for word in code.split("_")) for code in codes)
    properties: dict[str, Schema] = {
        "message": TEXT,
        "type": {"const": type_of(status)},
        "param": nullable(TEXT),
        "code": {"enum": codes},
    }
    if status == ValidationFailed.status:
        return titled(title, exactly(error=exactly(**properties, details=DETAILS)))
    return titled(title, exactly(error=some({**properties, "details": {}}, required=properties)))
