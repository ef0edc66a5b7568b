"""Path and method to app."""

from __future__ import annotations

import pytest

from tests.asgi import Exchange, drive, http_scope
from troyproxy.api.routing_table import Route, RoutingTable
from troyproxy.proxy.answers import Receive, Send, send_json
from troyproxy.proxy.call import Scope

pytestmark = pytest.mark.anyio


class Said:
    """An app that says its name and the parameters it was given."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        await send_json(send, 200, [self.name, scope.get("path_params")])


TABLE = RoutingTable(
    [
        Route("GET", "/v1/models", Said("list")),
        Route("GET", "/v1/models/{id:path}", Said("one")),
        Route("POST", "/v1/models/{id}/test", Said("test")),
        Route("POST", "/b/{id:path}/test", Said("tested")),
        Route("POST", "/v1/chat", Said("chat")),
        Route("GET", "/a/{x}/b/{y}", Said("two")),
        Route("DELETE", "/a/{x}/b/{y}", Said("gone")),
    ]
)


async def ask(method: str, path: str, **more: object) -> Exchange:
    """Ask the table."""
    return await drive(TABLE, {**http_scope(path, method=method), **more})


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        ("GET", "/v1/models", ["list", None]),
        ("GET", "/v1/models/a", ["one", {"id": "a"}]),
        ("GET", "/v1/models/a/b c/d", ["one", {"id": "a/b c/d"}]),
        ("GET", "/v1/models/a/test", ["one", {"id": "a/test"}]),
        ("POST", "/v1/models/a/test", ["test", {"id": "a"}]),
        ("HEAD", "/v1/models", ["list", None]),
        ("GET", "/a/1/b/2", ["two", {"x": "1", "y": "2"}]),
        ("DELETE", "/a/1/b/2", ["gone", {"x": "1", "y": "2"}]),
    ],
)
async def test_a_path_finds_its_app(method: str, path: str, said: object) -> None:
    assert (await ask(method, path)).json() == said


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/models/", "/a//b/2", "/a/1/b", "/a/1/b/2/3", "/a/1/c/2", "/v1/chat/"]
)
async def test_an_unknown_path_is_404_in_the_envelope(path: str) -> None:
    answer = await ask("GET", path)
    assert (answer.status, answer.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/v1/chat", "POST"),
        ("HEAD", "/v1/chat", "POST"),
        ("PUT", "/a/1/b/2", "DELETE, GET, HEAD"),
        ("PUT", "/v1/models/a/test", "GET, HEAD, POST"),
    ],
)
async def test_a_wrong_method_is_405_and_says_what_is_allowed(method: str, path: str, allow: str) -> None:
    answer = await ask(method, path)
    assert (answer.status, answer.header("allow")) == (405, allow)


@pytest.mark.parametrize(("method", "path"), [("GET", "/nothing"), ("GET", "/v1/chat")])
async def test_every_refusal_has_a_request_id(method: str, path: str) -> None:
    assert (await ask(method, path)).header("x-troy-request-id") is not None


async def test_the_path_counts_from_the_mount_point() -> None:
    answer = await ask("GET", "/llm/v1/models", root_path="/llm")
    assert answer.json() == ["list", None]


async def test_a_long_path_is_not_repeated_whole() -> None:
    assert len((await ask("GET", "/" + "x" * 5000)).body) < 500


@pytest.mark.parametrize(
    ("path", "ident"),
    [("/b/x/test", "x"), ("/b/x/y/test", "x/y"), ("/b/test/test", "test"), ("/b/test", None), ("/b/x", None)],
)
async def test_a_fixed_end_may_follow_an_id_with_slashes(path: str, ident: str | None) -> None:
    found, params, _ = TABLE.find("POST", path)
    assert (found is not None, params.get("id")) == (ident is not None, ident)
