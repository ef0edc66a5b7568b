"""What every layer does alone: its one route, the body read once, lengths, disconnects, other traffic untouched."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

import troyproxy
from tests.asgi import DISCONNECT, App, Message, Receive, Scope, Send, drive, http_scope, post, request_body
from tests.middleware.apps import DONE, LEAK, STOP, TOOLS, USAGE, RawApp, ask, contents, delta, stream_app
from troyproxy import AuthGuard, EffortResolver, Preflight, ToolLeakGuard, UsageInjector
from troyproxy.middleware import layer as layer_module
from troyproxy.middleware.layer import Layer
from troyproxy.proxy.call import Call
from troyproxy.proxy.intake import decode_object

pytestmark = pytest.mark.anyio

SECRET = "a-secret-of-enough-bytes"
AUTHORIZED = {"authorization": f"Bearer {SECRET}"}


def guard(app: App) -> AuthGuard:
    return AuthGuard(app, keys={"ci": SECRET})


def stacked(app: App) -> App:
    inner: App = UsageInjector(app)
    for layer in (ToolLeakGuard, Preflight, EffortResolver):
        inner = layer(inner)
    return guard(inner)


LAYERS: list[Callable[[App], App]] = [guard, EffortResolver, Preflight, ToolLeakGuard, UsageInjector, stacked]
BODY_LAYERS = LAYERS[1:]

each_layer = pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__)
each_body_layer = pytest.mark.parametrize("layer", BODY_LAYERS, ids=lambda layer: layer.__name__)


@each_layer
async def test_an_answer_that_needs_no_change_passes_byte_for_byte(layer: Callable[[App], App]) -> None:
    app = RawApp(chunks=[b'{ "choices": [', b'], "x": 1.0e5 }'])
    exchange = await post(layer(app), ask(), **AUTHORIZED)
    assert (exchange.status, exchange.body) == (200, b'{ "choices": [], "x": 1.0e5 }')


@each_layer
async def test_a_request_that_needs_no_change_reaches_the_app_byte_for_byte(layer: Callable[[App], App]) -> None:
    body = b' {"temperature": 1.00, "messages" : [{"role":"user","content":"\\ud83d"}], "model":"m1", "x": NaN}'
    app = RawApp()
    await post(layer(app), body, **AUTHORIZED)
    assert app.bodies == [body]


@each_layer
async def test_the_length_that_the_app_is_told_is_the_length_of_the_body(layer: Callable[[App], App]) -> None:
    app = RawApp()
    body = json.dumps(ask(model="é", stream=True)).encode()
    await post(layer(app), body, content_length=str(len(body)), **AUTHORIZED)
    assert app.header(b"content-length") == str(len(app.bodies[0])).encode()


@each_body_layer
async def test_a_compressed_request_reaches_the_app_decompressed(layer: Callable[[App], App]) -> None:
    app, body = RawApp(), json.dumps(ask()).encode()
    scope = http_scope(headers={"content-encoding": "gzip", "transfer-encoding": "chunked", **AUTHORIZED})
    await drive(layer(app), scope, request_body(gzip.compress(body)))
    assert app.bodies == [body]
    framing = (app.header(b"content-encoding"), app.header(b"transfer-encoding"), app.header(b"content-length"))
    assert framing == (None, None, str(len(body)).encode())


@each_body_layer
async def test_a_body_in_pieces_reaches_the_app_whole(layer: Callable[[App], App]) -> None:
    app, body = RawApp(), json.dumps(ask()).encode()
    await drive(layer(app), http_scope(headers=AUTHORIZED), request_body(body, cuts=range(1, len(body))))
    assert [message["body"] for message in app.messages] == [body]


async def listener(scope: Scope, receive: Receive, send: Send) -> None:
    """Stream for ever, until the client has gone."""
    del scope
    assert (await receive())["type"] == "http.request"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x", "more_body": True})
    assert (await receive())["type"] == "http.disconnect"
    await send({"type": "http.response.body", "body": b"heard", "more_body": False})


@each_layer
async def test_the_app_hears_the_disconnect_after_the_body(layer: Callable[[App], App]) -> None:
    script = [*request_body(ask()), DISCONNECT]
    assert (await drive(layer(listener), http_scope(headers=AUTHORIZED), script)).chunks == [b"x", b"heard"]


@each_body_layer
async def test_a_client_that_leaves_while_sending_never_reaches_the_app(layer: Callable[[App], App]) -> None:
    app = RawApp()
    pieces = request_body(ask(), cuts=[5])[:1]
    exchange = await drive(layer(app), http_scope(headers=AUTHORIZED), [*pieces, DISCONNECT])
    assert (exchange.sent, app.scopes) == ([], [])


FOREIGN = [
    http_scope("/v1/models", method="GET"),
    http_scope("/v1/chat/completions", method="GET"),
    http_scope("/v1/chat/completions", method="OPTIONS"),
    http_scope("/v1/chat/completions/"),
    http_scope("/v1/embeddings"),
    http_scope("/"),
]


@each_layer
@pytest.mark.parametrize("scope", FOREIGN, ids=lambda scope: f"{scope['method']} {scope['path']}")
async def test_other_requests_reach_the_app_with_the_very_same_objects(
    layer: Callable[[App], App], scope: Scope
) -> None:
    seen: list[object] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend((scope, receive, send))

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        raise AssertionError(message)

    await layer(app)(scope, receive, send)
    assert [given is got for given, got in zip((scope, receive, send), seen, strict=True)] == [True] * 3


@each_layer
@pytest.mark.parametrize("kind", ["websocket", "lifespan", "something.new"])
async def test_other_scopes_reach_the_app_with_the_very_same_objects(layer: Callable[[App], App], kind: str) -> None:
    scope: Scope = {"type": kind, "path": "/v1/chat/completions"}
    seen: list[object] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend((scope, receive, send))

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        raise AssertionError(message)

    await layer(app)(scope, receive, send)
    assert [given is got for given, got in zip((scope, receive, send), seen, strict=True)] == [True] * 3


@each_body_layer
async def test_a_layer_under_a_mount_knows_its_path(layer: Callable[[App], App]) -> None:
    app = RawApp()
    scope = {**http_scope("/llm/v1/chat/completions", headers=AUTHORIZED), "root_path": "/llm"}
    exchange = await drive(layer(app), scope, request_body(b"[]"))
    assert (exchange.status, app.scopes) == (400, [])


@each_body_layer
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "invalid_json"),
        (b"{", 400, "invalid_json"),
        (b"[1]", 400, "invalid_request"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, 400, "invalid_json"),
    ],
)
async def test_a_body_that_is_no_object_is_refused_in_the_envelope(
    layer: Callable[[App], App], body: bytes, status: int, code: str
) -> None:
    app = RawApp()
    exchange = await post(layer(app), body, **AUTHORIZED)
    assert (exchange.status, exchange.json()["error"]["code"], app.scopes) == (status, code, [])


@each_body_layer
async def test_a_media_type_that_is_not_json_is_refused(layer: Callable[[App], App]) -> None:
    exchange = await drive(layer(RawApp()), http_scope(headers={"content-type": "text/plain", **AUTHORIZED}))
    assert (exchange.status, exchange.json()["error"]["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("layer", [EffortResolver, Preflight, ToolLeakGuard, UsageInjector])
async def test_a_body_over_the_bound_is_refused(layer: Callable[..., App]) -> None:
    exchange = await post(layer(RawApp(), max_body=10), ask())
    assert (exchange.status, exchange.json()["error"]["code"]) == (413, "body_too_large")


async def test_five_layers_together_read_the_body_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []

    def counting(body: bytes) -> dict[str, object]:
        decoded.append(body)
        return decode_object(body)

    monkeypatch.setattr(layer_module, "decode_object", counting)
    app = RawApp()
    await post(stacked(app), ask(), **AUTHORIZED)
    assert (len(decoded), len(app.bodies)) == (1, 1)


async def test_five_layers_together_do_what_each_does_alone() -> None:
    heard: list[int] = []
    app = stream_app(delta(LEAK), STOP, USAGE, DONE)
    inner: App = UsageInjector(app, on_usage=lambda usage: heard.append(usage.total))
    inner = Preflight(ToolLeakGuard(inner, "suppress"), models={"m1": {"tools": True, "reasoning": True}})
    inner = EffortResolver(inner, models={"m1": {"reasoning": True}})
    exchange = await post(guard(inner), ask(model="m1-high", stream=True, tools=TOOLS), **AUTHORIZED)
    assert (app.got["model"], app.got["reasoning_effort"]) == ("m1", "high")
    assert app.got["stream_options"] == {"include_usage": True}
    assert (contents(exchange.body), heard) == ("", [5])
    assert exchange.body == STOP + DONE


async def test_a_refusal_inside_a_stack_ends_the_request() -> None:
    app = RawApp()
    exchange = await post(UsageInjector(guard(app)), ask())
    assert (exchange.status, app.scopes) == (401, [])


async def test_a_layer_needs_a_decision() -> None:
    with pytest.raises(NotImplementedError):
        Layer(RawApp()).decide(Call(request_id="r", at=0, started=0, route="/"))


@pytest.mark.parametrize("name", ["AuthGuard", "EffortResolver", "Preflight", "ToolLeakGuard", "UsageInjector"])
def test_each_layer_is_exported(name: str) -> None:
    exported: Any = getattr(troyproxy, name)
    assert exported.__name__ == name


@each_layer
async def test_requests_at_the_same_time_do_not_meet(layer: Callable[[App], App]) -> None:
    async def echo(scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        body = (await receive())["body"]
        await asyncio.sleep(0)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    app = layer(echo)
    answers = await asyncio.gather(*(post(app, ask(model=f"m{n}"), **AUTHORIZED) for n in range(5)))
    assert [answer.json()["model"] for answer in answers] == [f"m{n}" for n in range(5)]
