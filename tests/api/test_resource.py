"""What every admin handler is given."""

from __future__ import annotations

import pytest

from tests.asgi import http_scope
from troyproxy.api.admin.parameters import whole
from troyproxy.api.admin.resource import LONGEST_ID, AdminRequest, invalid
from troyproxy.errors import NotFound, ValidationFailed
from troyproxy.proxy.answers import Message

LIMIT = whole("limit", "How many.", 1, 9).otherwise(4)


async def silence() -> Message:
    return {"type": "http.disconnect"}


def asked(ident: str = "x", query: bytes = b"", **headers: str) -> AdminRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    scope = {**http_scope("/api/things/x", query=query, headers=named), "path_params": {"id": ident}}
    return AdminRequest(scope, silence, (LIMIT,))


def test_the_id_is_that_of_the_path() -> None:
    assert asked("a/b c").id == "a/b c"


@pytest.mark.parametrize("ident", ["a\0", "a\n", "\x7f", "\ud800", "x" * (LONGEST_ID + 1)])
def test_an_id_that_nothing_can_have_is_not_found(ident: str) -> None:
    with pytest.raises(NotFound):
        asked(ident)


def test_a_declared_parameter_has_its_type() -> None:
    assert (asked(query=b"limit=3").value(LIMIT), asked().value(LIMIT)) == (3, 4)


def test_another_parameter_is_refused() -> None:
    with pytest.raises(ValidationFailed):
        asked(query=b"other=3")


def test_a_header_is_read_without_its_blanks() -> None:
    assert (asked(x_one=" a ").header(b"x-one"), asked().header(b"x-one")) == ("a", None)


def test_a_header_that_is_a_list_is_joined() -> None:
    scope = http_scope("/api/things", headers=[(b"if-match", b'"1"'), (b"if-match", b'"2"')])
    assert (AdminRequest(scope, silence).joined(b"if-match"), asked().joined(b"if-match")) == ('"1", "2"', None)


def test_an_error_of_one_field_names_it() -> None:
    error = invalid("a.b", "is wrong")
    assert (str(error), error.details) == ("a.b: is wrong", [{"field": "a.b", "message": "is wrong"}])
