"""If-Match."""

from __future__ import annotations

import pytest

from tests.asgi import http_scope
from troyproxy.api.admin.resource import AdminRequest
from troyproxy.api.admin.versions import etag, expected_version
from troyproxy.errors import PreconditionFailed
from troyproxy.proxy.answers import Message


async def silence() -> Message:
    return {"type": "http.disconnect"}


def asked(*tags: str) -> AdminRequest:
    headers = [(b"if-match", tag.encode("latin-1")) for tag in tags]
    return AdminRequest(http_scope("/api/things/1", headers=headers), silence)


@pytest.mark.parametrize("tags", [(), ("*",), (" * ",)])
def test_who_names_no_version_takes_any(tags: tuple[str, ...]) -> None:
    assert expected_version(asked(*tags), 3) is None


@pytest.mark.parametrize(
    "tags", [('"3"',), ('W/"3"',), ('"1", "3"',), ('"1"', 'W/"3"'), ('"a,b","3"',), ("3",), (' "3" ,',)]
)
def test_who_names_the_stored_version_writes_over_it(tags: tuple[str, ...]) -> None:
    assert expected_version(asked(*tags), 3) == 3


@pytest.mark.parametrize(
    "tags", [('"2"',), ("",), ('"33"',), ('"1","2"',), ('"x"',), ('"é"',), ('"*"',), ("9" * 5000,)]
)
def test_who_names_other_versions_only_is_refused(tags: tuple[str, ...]) -> None:
    with pytest.raises(PreconditionFailed, match="does not name version 3"):
        expected_version(asked(*tags), 3)


def test_the_tag_of_an_answer_is_one_of_a_request() -> None:
    assert expected_version(asked(etag(7)), 7) == 7
