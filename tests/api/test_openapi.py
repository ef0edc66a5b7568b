"""``/api/openapi.json``: as many operations as there are routes, and all that can be said of each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from tests.api.house import House
from troyproxy.api.admin.openapi import document, envelope, operation_id
from troyproxy.api.admin.operation import Operation
from troyproxy.api.admin.parameters import whole
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.admin.schemas import TEXT, Schema, exactly, titled
from troyproxy.errors import Conflict, NotFound

PAGE = Path(__file__).parents[2] / "docs" / "admin.md"
THING = titled("Thing", exactly(id=TEXT))


async def nothing(request: AdminRequest) -> Answer:
    return Answer({"id": request.id})


def op(method: str = "GET", path: str = "/api/things", schema: Schema = THING, **more: Any) -> Operation:  # noqa: ANN401
    return Operation(method, path, nothing, "things", "Do it.", {more.pop("status", 200): schema}, **more)


def described(*operations: Operation) -> Any:  # noqa: ANN401 -- JSON
    return document(operations)


def only(*operations: Operation) -> Any:  # noqa: ANN401 -- JSON
    """Return what the document says of the only operation."""
    [path] = described(*operations)["paths"].values()
    [found] = path.values()
    return found


@pytest.mark.anyio
async def test_the_document_has_every_route_and_no_other(house: House) -> None:
    paths = (await house.get("/api/openapi.json"))["paths"]
    told = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    routes = {(r.method, r.path.replace(":path}", "}")) for r in house.gateway.table.routes if "/api/" in r.path}
    assert told == routes


@pytest.mark.anyio
async def test_the_table_of_the_docs_has_every_operation_and_no_other(house: House) -> None:
    paths = (await house.get("/api/openapi.json"))["paths"]
    told = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    table = re.findall(r"^\| ([A-Z, ]+) (`/api[^|]*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    rows = {
        (method, path.partition("?")[0])
        for methods, cell in table
        for method in methods.split(", ")
        for path in re.findall(r"`([^`]*)`", cell)
    }
    assert rows == told


@pytest.mark.anyio
async def test_the_document_is_openapi_3_1(house: House) -> None:
    OPENAPI_31_VALIDATOR.validate(found := await house.get("/api/openapi.json"))
    assert found["openapi"].startswith("3.1.")


@pytest.mark.anyio
async def test_every_schema_in_it_is_one(house: House) -> None:
    schemas = (await house.get("/api/openapi.json"))["components"]["schemas"]
    assert [name for name, schema in schemas.items() if not jsonschema_rs.meta.is_valid(schema)] == []


@pytest.mark.anyio
async def test_two_readings_give_the_same_bytes(house: House) -> None:
    first, second = [await house.ask("GET", "/api/openapi.json") for _ in range(2)]
    assert first.body == second.body


@pytest.mark.anyio
async def test_no_two_operations_have_one_name(house: House) -> None:
    paths = (await house.get("/api/openapi.json"))["paths"]
    names = [each["operationId"] for methods in paths.values() for each in methods.values()]
    assert len(set(names)) == len(names)


@pytest.mark.anyio
async def test_every_operation_has_a_sentence_and_the_errors_of_the_guard(house: House) -> None:
    paths = (await house.get("/api/openapi.json"))["paths"]
    operations = [each for methods in paths.values() for each in methods.values()]
    poor = [each for each in operations if not each["summary"].endswith(".")]
    assert (poor, [o for o in operations if not {"401", "422", "429", "500"} <= o["responses"].keys()]) == ([], [])


@pytest.mark.anyio
async def test_it_needs_the_token(house: House) -> None:
    assert (await house.ask("GET", "/api/openapi.json", authorization="Bearer x")).status == 401


@pytest.mark.anyio
async def test_it_says_where_it_was_asked(house: House) -> None:
    assert (await house.get("/api/openapi.json"))["servers"] == [{"url": "/"}]
    assert document([], "/troy")["servers"] == [{"url": "/troy"}]


def test_an_operation_is_named_by_method_and_path() -> None:
    assert operation_id(op("PATCH", "/api/things/{id:path}/do-it")) == "patch_things_id_do_it"


def test_what_is_titled_is_said_once() -> None:
    found = described(op(), op("PUT"))
    assert found["components"]["schemas"]["Thing"] == THING
    assert found["paths"]["/api/things"]["put"]["responses"]["200"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Thing"
    }


def test_two_schemas_of_one_title_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="two schemas are titled Thing"):
        described(op(), op("PUT", schema=titled("Thing", TEXT)))


def test_a_body_brings_its_errors() -> None:
    found = only(op("POST", takes=TEXT))
    assert {"400", "413", "415"} <= found["responses"].keys()
    assert found["requestBody"] == {"required": True, "content": {"application/json": {"schema": TEXT}}}


def test_an_id_brings_a_parameter_and_404() -> None:
    found = only(op(path="/api/things/{id:path}"))
    assert [(p["name"], p["in"], p["required"]) for p in found["parameters"]] == [("id", "path", True)]
    assert "not_found" in found["responses"]["404"]["description"]


def test_versions_bring_if_match_and_412() -> None:
    found = only(op("PUT", versioned=True))
    assert ([p["name"] for p in found["parameters"]], "412" in found["responses"]) == (["if-match"], True)


def test_a_query_parameter_is_told_with_its_range_and_default() -> None:
    [limit] = only(op(query=(whole("limit", "How many.", 1, 5).otherwise(3),)))["parameters"]
    assert limit == {
        "name": "limit",
        "in": "query",
        "required": False,
        "description": "How many.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 5, "default": 3},
    }


def test_headers_that_are_read_are_told() -> None:
    [header] = only(op(headers={"x-one": "One."}))["parameters"]
    assert (header["name"], header["in"], header["required"]) == ("x-one", "header", False)


def test_what_was_created_is_linked_to_what_can_be_done_with_it() -> None:
    found = described(op("POST", status=201), op("PUT", "/api/things/{id}"), op("GET", "/api/other/{id}"))
    links = found["paths"]["/api/things"]["post"]["responses"]["201"]["links"]
    assert links == {"put_things_id": {"operationId": "put_things_id", "parameters": {"id": "$response.body#/id"}}}


def test_a_creation_tells_of_its_location() -> None:
    assert "location" in only(op("POST", status=201))["responses"]["201"]["headers"]


def test_errors_of_one_status_are_one_answer() -> None:
    found = only(op(path="/api/things/{id}", fails=(Conflict, NotFound)))
    assert found["responses"]["409"]["description"] == "Conflict: `conflict`."


def test_the_envelope_names_type_and_codes() -> None:
    schema = envelope(404, ["model_not_found", "not_found"])
    inner: Any = schema["properties"]
    assert (schema["title"], inner["error"]["properties"]["type"], inner["error"]["properties"]["code"]) == (
        "ModelNotFoundOrNotFound",
        {"const": "invalid_request_error"},
        {"enum": ["model_not_found", "not_found"]},
    )


def test_a_422_always_names_its_fields() -> None:
    inner: Any = envelope(422, ["validation_failed"])["properties"]
    assert "details" in inner["error"]["required"]


def test_a_prose_description_is_kept() -> None:
    assert only(op(description="More."))["description"] == "More."
