"""Below a prefix, with a proxy that takes it off and with one that does not."""

from __future__ import annotations

import pytest

from tests.asgi import Message
from troyproxy.cli.prefix import Prefixed
from troyproxy.proxy.answers import Receive, Send
from troyproxy.proxy.call import Scope, local_path

pytestmark = pytest.mark.anyio


async def seen(scope: Scope) -> Scope:
    """Return the scope that the app behind the prefix sees."""
    found: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del receive, send
        found.append(scope)

    async def receive() -> Message:
        return {}

    async def send(message: Message) -> None:
        del message

    await Prefixed(app, "/llm")(scope, receive, send)
    return found[0]


@pytest.mark.parametrize(
    ("path", "local"),
    [
        ("/llm/v1/models", "/v1/models"),
        ("/v1/models", "/v1/models"),
        ("/healthz", "/healthz"),
        ("/llm", ""),
        ("/llm/", "/"),
        ("/llmv1/models", "/llmv1/models"),
        ("/", "/"),
    ],
)
async def test_a_path_is_the_same_with_and_without_the_prefix(path: str, local: str) -> None:
    scope = await seen({"type": "http", "path": path})
    assert (scope["root_path"], local_path(scope)) == ("/llm", local)


async def test_what_has_no_path_passes_untouched() -> None:
    scope: Scope = {"type": "lifespan"}
    assert await seen(scope) is scope
