"""The layers inside the gateway, where the call is there already and the endpoint sends whole frames."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.asgi import App, Exchange, Receive, Scope, Send, drive, http_scope, request_body
from tests.middleware.apps import DONE, LEAK, SSE, STOP, TOOLS, USAGE, ask, contents, delta
from troyproxy.accounting.records import AttemptRecord
from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import NO_AUTH, Provider
from troyproxy.catalog.snapshot import build
from troyproxy.errors import ConfigError, RateLimited
from troyproxy.leaks.gate import GateVerdict
from troyproxy.leaks.policy import Leak
from troyproxy.middleware.auth_guard import AuthGuard
from troyproxy.middleware.effort_resolver import EffortResolver
from troyproxy.middleware.preflight import Preflight
from troyproxy.middleware.tool_leak_guard import ToolLeakGuard
from troyproxy.middleware.usage_injector import UsageInjector
from troyproxy.proxy.call import Call, put_call
from troyproxy.proxy.client import Client
from troyproxy.wire import json
from troyproxy.wire.sse import Frame, FrameDecoder

pytestmark = pytest.mark.anyio

Act = Callable[[Call, Client], Awaitable[None]]


def providers() -> list[Provider]:
    ids: dict[str, str | None] = {"alpha": None, "loose": "off", "strict": "suppress"}
    return [Provider(id=name, auth=NO_AUTH, app="inner", leak=mode) for name, mode in ids.items()]


def new_call(**fields: object) -> Call:
    payload = ask(**fields)
    call = Call(request_id="req_1", at=0, started=0, route="/v1/chat/completions", snapshot=build(providers()))
    call.body = json.encode(payload)
    call.take(payload)
    return call


@dataclass(slots=True)
class Endpoint:
    """Stands where the walk does: *act* answers through a real `Client`."""

    call: Call
    act: Act
    calls: list[Call] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        self.calls.append(self.call)
        self.call.framed = self.call.stream
        await self.act(self.call, Client(self.call, send, stall_s=5))


async def run(app: App, call: Call) -> Exchange:
    return await drive(app, put_call(http_scope(), call), request_body(call.body))


def attempt(call: Call, provider: str) -> None:
    call.ledger.attempts.append(AttemptRecord(provider, "m", "A", "ok", 200, 0.0, 0.0))


def frames_of(*raw: bytes) -> list[Frame]:
    return FrameDecoder().feed(b"".join(raw), last=True)


def streaming(provider: str, *raw: bytes) -> Act:
    async def act(call: Call, client: Client) -> None:
        attempt(call, provider)
        frames = frames_of(*raw)
        for gate in call.gates:
            gate.reset()
            for frame in frames:
                if frame.data is not None and not frame.is_done:
                    gate.feed(json.decode(frame.data), False)
        call.ledger.serve(provider, "m", "A")
        await client.open(200, (SSE,))
        for frame in frames[:-1]:
            await client.frames([frame], more=True)
        await client.frames(frames[-1:], more=False)

    return act


@pytest.mark.parametrize(
    ("setting", "provider", "left"),
    [
        ("suppress", "alpha", ""),
        ("suppress", "loose", LEAK),
        ("off", "alpha", LEAK),
        ("off", "strict", ""),
    ],
)
async def test_the_serving_providers_mode_decides_about_a_stream(setting: str, provider: str, left: str) -> None:
    call = new_call(stream=True, tools=TOOLS)
    guarded = ToolLeakGuard(Endpoint(call, streaming(provider, delta(LEAK), STOP, DONE)), setting)
    assert contents((await run(guarded, call)).body) == left


def answering(provider: str, body: bytes) -> Act:
    async def act(call: Call, client: Client) -> None:
        attempt(call, provider)
        assert [gate.judge(json.decode(body), False) for gate in call.gates] in ([], [GateVerdict.PASS])
        call.ledger.serve(provider, "m", "A")
        await client.whole(200, ((b"content-type", b"application/json"),), body)

    return act


@pytest.mark.parametrize(("provider", "left"), [("alpha", ""), ("loose", LEAK)])
async def test_the_serving_providers_mode_decides_about_a_whole_answer(provider: str, left: str) -> None:
    call = new_call(tools=TOOLS)
    body = json.encode({"choices": [{"index": 0, "message": {"role": "assistant", "content": LEAK}}]})
    exchange = await run(ToolLeakGuard(Endpoint(call, answering(provider, body)), "suppress"), call)
    named = None if left else "F01;suppressed"
    assert (exchange.json()["choices"][0]["message"]["content"], exchange.header("x-troy-leak")) == (left, named)


@pytest.mark.parametrize(("provider", "named"), [("alpha", "F01;suppressed"), ("loose", None)])
async def test_a_leak_that_the_gate_saw_is_named_in_the_head_of_the_stream(provider: str, named: str | None) -> None:
    call = new_call(stream=True, tools=TOOLS)
    guarded = ToolLeakGuard(Endpoint(call, streaming(provider, delta(LEAK), STOP, DONE)), "suppress")
    assert (await run(guarded, call)).header("x-troy-leak") == named


async def test_a_gate_before_any_attempt_follows_the_setting() -> None:
    call = new_call(stream=True, tools=TOOLS)
    ToolLeakGuard(Endpoint(call, streaming("alpha"))).decide(call)
    call.gates[0].reset()
    assert call.gates[0].feed({"choices": [{"index": 0, "delta": {"content": "<func"}}]}, False) is GateVerdict.PENDING


async def test_the_leak_that_ended_an_attempt_is_named_in_the_head_of_the_next() -> None:
    async def act(call: Call, client: Client) -> None:
        await streaming_into(call, "alpha", delta(LEAK))
        await streaming("alpha", delta("Hello"), STOP, DONE)(call, client)

    async def streaming_into(call: Call, provider: str, raw: bytes) -> None:
        attempt(call, provider)
        for gate in call.gates:
            gate.reset()
            gate.feed(json.decode(frames_of(raw)[0].data or b""), True)

    call = new_call(stream=True, tools=TOOLS)
    assert (await run(ToolLeakGuard(Endpoint(call, act)), call)).header("x-troy-leak") == "F01;failed_over"
    assert [(each.provider, each.leak) for each in call.ledger.attempts] == [
        ("alpha", "F01;failed_over"),
        ("alpha", ""),
    ]


async def test_a_stream_that_opened_before_anybody_served_is_guarded_by_the_one_who_does() -> None:
    async def act(call: Call, client: Client) -> None:
        await client.open(200, (SSE,))
        await client.frames(frames_of(b": still here\n\n"), more=True)
        attempt(call, "loose")
        call.ledger.serve("loose", "m", "A")
        await client.frames(frames_of(delta(LEAK), STOP, DONE), more=False)

    call = new_call(stream=True, tools=TOOLS)
    exchange = await run(ToolLeakGuard(Endpoint(call, act)), call)
    assert exchange.body == b": still here\n\n" + delta(LEAK) + STOP + DONE


async def test_the_gateway_hears_of_a_leak_with_its_call() -> None:
    heard: list[tuple[Call, Leak]] = []
    call = new_call(stream=True, tools=TOOLS)
    endpoint = Endpoint(call, streaming("alpha", delta(LEAK), STOP, DONE))
    await run(ToolLeakGuard(endpoint, "suppress", tell=lambda call, leak: heard.append((call, leak))), call)
    assert [(told is call, leak.format) for told, leak in heard] == [(True, "F01")]
    assert "  leak F01 in choice 0: suppressed" in call.ledger.lines


async def test_an_error_body_that_calls_itself_a_stream_keeps_its_bytes() -> None:
    async def act(call: Call, client: Client) -> None:
        del call
        await client.whole(500, (SSE,), b"event: error\ndata: {}\n\n")

    call = new_call(stream=True, tools=TOOLS)
    exchange = await run(UsageInjector(ToolLeakGuard(Endpoint(call, act))), call)
    assert (exchange.status, exchange.body) == (500, b"event: error\ndata: {}\n\n")


async def test_frames_are_not_framed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    call = new_call(stream=True, tools=TOOLS)
    stack = ToolLeakGuard(UsageInjector(Endpoint(call, streaming("alpha", delta("Hi"), STOP, USAGE, DONE))))

    def no_framing(*_: object, **__: object) -> list[Frame]:
        raise AssertionError

    monkeypatch.setattr("troyproxy.middleware.frames.FrameDecoder.feed", no_framing)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.middleware.test_in_gateway.frames_of", _split)
        exchange = await run(stack, call)
    assert exchange.body == delta("Hi") + STOP + DONE


def _split(*raw: bytes) -> list[Frame]:
    return [Frame(raw=item, data=item[6:].strip()) for item in raw]


async def test_the_injector_leaves_the_body_to_the_members() -> None:
    before = (call := new_call(stream=True)).body
    await run(UsageInjector(Endpoint(call, streaming("alpha", DONE))), call)
    assert (call.body, call.usage_wanted) == (before, True)


async def test_a_key_that_is_known_is_not_asked_for() -> None:
    key = Key(id="k", name="k", digest=b"")

    async def authenticate(scope: Scope) -> Key | None:
        raise AssertionError(scope)

    call = new_call()
    app = Endpoint(call, streaming("alpha", DONE))
    await run(AuthGuard(app, authenticate=authenticate, known=lambda _: key), call)
    assert (call.key, app.calls) == (key, [call])


async def test_the_guard_puts_the_key_into_the_call() -> None:
    key = Key(id="k", name="k", digest=b"")

    async def authenticate(scope: Scope) -> Key | None:
        del scope
        return key

    call = new_call()
    await run(AuthGuard(Endpoint(call, streaming("alpha", DONE)), authenticate=authenticate), call)
    assert call.key is key


async def test_the_guards_refusal_is_written_down() -> None:
    async def authenticate(scope: Scope) -> Key | None:
        raise RateLimited("slower", retry_after_s=7)

    call = new_call()
    exchange = await run(AuthGuard(Endpoint(call, streaming("alpha", DONE)), authenticate=authenticate), call)
    assert (exchange.status, exchange.header("retry-after"), call.ledger.refused) == (429, "7", True)


async def test_the_name_is_resolved_into_the_call() -> None:
    call = new_call(model="alpha/m1-high")
    await run(EffortResolver(Endpoint(call, streaming("alpha", DONE))), call)
    assert call.resolution is not None
    assert (call.resolution.canonical, call.body) == ("alpha/m1-high", json.encode(ask(model="alpha/m1-high")))


async def test_an_unknown_name_is_refused() -> None:
    call = new_call(model="nobody/m1")
    exchange = await run(EffortResolver(Endpoint(call, streaming("alpha", DONE))), call)
    assert (exchange.status, exchange.json()["error"]["code"]) == (404, "model_not_found")


async def test_preflight_makes_the_plan_of_a_call() -> None:
    planned: list[Any] = []
    call = new_call()
    await run(Preflight(Endpoint(call, streaming("alpha", DONE)), plan=planned.append), call)
    assert (planned == [call], call.needs is not None) == (True, True)


async def test_preflight_without_a_plan_only_looks() -> None:
    call = new_call()
    await run(Preflight(Endpoint(call, streaming("alpha", DONE))), call)
    assert (call.needs is not None, call.plan) == (True, None)


async def test_other_routes_are_asked_for_less() -> None:
    call = new_call()
    call.route, call.payload = "/v1/embeddings", {"model": "alpha/m1", "input": "x"}
    assert (await run(Preflight(Endpoint(call, streaming("alpha", DONE))), call)).status == 200


def test_a_guard_that_asks_nobody_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="AuthGuard needs keys"):
        AuthGuard(Endpoint(new_call(), streaming("alpha")))
