"""The demo provider, driven by hand."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from tests.asgi import DISCONNECT, AfterSent, Exchange, Message, Receive, Step, drive, http_scope, request_body
from troyproxy.demo.app import Cut, demo_app
from troyproxy.demo.peer import MAX_BODY

pytestmark = pytest.mark.anyio
APP = demo_app(pace_s=0, now=lambda: 1.8e9)
SAY_HI = [{"role": "user", "content": "hi"}]


async def ask(path: str = "/v1/chat/completions", **body: Any) -> Exchange:  # noqa: ANN401 - a JSON body
    return await drive(APP, http_scope(path), request_body({"messages": SAY_HI, **body}))


async def play(*script: Step) -> Exchange:
    return await drive(APP, http_scope(), script)


def datas(body: bytes) -> list[str]:
    return [event.removeprefix("data: ") for event in body.decode().split("\n\n") if event]


def chunks(body: bytes) -> list[Any]:
    return [json.loads(data) for data in datas(body) if data != "[DONE]"]


async def test_an_answer_is_a_completion() -> None:
    done = await ask(model="ok")
    body = json.loads(done.body)
    assert (done.status, body["object"], body["model"], body["created"]) == (
        200,
        "chat.completion",
        "ok",
        1_800_000_000,
    )
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + body["usage"]["completion_tokens"]
    assert body["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/chat/completions", "/v1/chat/completions/"])
async def test_paths_work_with_and_without_the_version(path: str) -> None:
    assert (await ask(path, model="ok")).status == 200


async def test_a_stream_says_what_the_completion_says() -> None:
    whole = json.loads((await ask(model="ok")).body)["choices"][0]["message"]["content"]
    streamed = await ask(model="ok", stream=True)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks(streamed.body)]
    assert "".join(delta.get("content", "") for delta in deltas) == whole
    assert (deltas[0], datas(streamed.body)[-1]) == ({"role": "assistant", "content": ""}, "[DONE]")


async def test_a_stream_is_one_message_an_event() -> None:
    done = await ask(model="ok", stream=True)
    bodies = [m["body"] for m in done.sent if m["type"] == "http.response.body"]
    assert all(body.endswith(b"\n\n") and body.count(b"data: ") == 1 for body in bodies[:-1])
    assert len(bodies) > 10


async def test_a_stream_has_usage_only_when_asked() -> None:
    without = chunks((await ask(model="ok", stream=True)).body)
    asked = chunks((await ask(model="ok", stream=True, stream_options={"include_usage": True})).body)
    assert not any("usage" in chunk for chunk in without)
    assert ([c["usage"] for c in asked[:-1]], asked[-1]["choices"]) == ([None] * (len(asked) - 1), [])
    assert asked[-1]["usage"]["completion_tokens"] > 0


async def test_usage_every_counts_up() -> None:
    counts = [c["usage"]["completion_tokens"] for c in chunks((await ask(model="usage-every", stream=True)).body)]
    assert (counts[0], counts == sorted(counts), counts[-1] > 5) == (0, True, True)


async def test_several_choices_are_given() -> None:
    body = json.loads((await ask(model="ok", n=3)).body)
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]


async def test_thoughts_come_before_the_answer() -> None:
    whole = json.loads((await ask(model="ok", reasoning_effort="high")).body)
    streamed = chunks((await ask(model="ok", reasoning_effort="high", stream=True)).body)
    assert whole["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0
    assert whole["choices"][0]["message"]["reasoning_content"].startswith("The demo")
    assert "reasoning_content" in streamed[1]["choices"][0]["delta"]


TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"properties": {"city": {}}}}}]


async def test_a_tool_is_called() -> None:
    body = json.loads((await ask(model="ok", tools=TOOLS, tool_choice="required")).body)
    message = body["choices"][0]["message"]
    assert (message["content"], message["tool_calls"][0]["function"]["name"]) == (None, "get_weather")
    assert body["choices"][0]["finish_reason"] == "tool_calls"


async def test_a_streamed_call_comes_in_pieces() -> None:
    done = await ask(model="ok", tools=TOOLS, tool_choice="required", stream=True)
    calls = [call for c in chunks(done.body) for call in c["choices"][0]["delta"].get("tool_calls", [])]
    arguments = "".join(call["function"]["arguments"] for call in calls)
    assert (calls[0]["function"]["name"], json.loads(arguments)) == ("get_weather", {"city": "hi"})


async def test_a_leak_is_text() -> None:
    done = await ask(model="leak", tools=TOOLS)
    assert json.loads(done.body)["choices"][0]["message"]["content"].startswith("<function=get_weather>")


async def test_text_completions_have_text() -> None:
    whole = json.loads((await ask("/v1/completions", model="ok", prompt="hi")).body)
    streamed = chunks((await ask("/v1/completions", model="ok", prompt="hi", stream=True)).body)
    assert (whole["object"], whole["choices"][0]["text"].startswith("Hello")) == ("text_completion", True)
    assert "".join(c["choices"][0]["text"] for c in streamed) == whole["choices"][0]["text"]


async def test_embeddings_are_the_same_each_time() -> None:
    one = json.loads((await ask("/v1/embeddings", model="ok", input=["a", "b"])).body)
    two = json.loads((await ask("/v1/embeddings", model="ok", input="b")).body)
    assert one["data"][1]["embedding"] == two["data"][0]["embedding"] != one["data"][0]["embedding"]
    assert [entry["index"] for entry in one["data"]] == [0, 1]


async def test_embeddings_take_dimensions_and_base64() -> None:
    done = await ask("/v1/embeddings", model="ok", input=[1, 2], dimensions=5, encoding_format="base64")
    assert len(base64.b64decode(json.loads(done.body)["data"][0]["embedding"])) == 5 * 4


async def test_an_echo_shows_no_credential() -> None:
    headers = [(b"authorization", b"Bearer s3cret"), (b"x-api-key", b"s3cret"), (b"x-title", b"t")]
    scope = http_scope(headers=headers)
    done = await drive(APP, scope, request_body({"model": "echo", "messages": SAY_HI}))
    echoed = json.loads(json.loads(done.body)["choices"][0]["message"]["content"])
    assert ("s3cret" in done.body.decode(), echoed["headers"]["x-title"], echoed["body"]["model"]) == (
        False,
        "t",
        "echo",
    )


@pytest.mark.parametrize("status", [304, 401, 404, 429, 500, 503])
async def test_a_scripted_status_is_given(status: int) -> None:
    done = await ask(model=f"fail-{status}")
    assert (done.status, done.header("retry-after")) == (status, None)


async def test_a_scripted_status_has_a_retry_hint() -> None:
    done = await ask(model="fail-429-retry-7", stream=True)
    assert (done.status, done.header("retry-after"), "error" in json.loads(done.body)) == (429, "7", True)


@pytest.mark.parametrize(("stream", "kind"), [(False, "application/json"), (True, "text/event-stream")])
async def test_empty_is_a_200_without_a_body(stream: bool, kind: str) -> None:
    done = await ask(model="empty", stream=stream)
    assert (done.status, done.body, (done.header("content-type") or "").startswith(kind)) == (200, b"", True)


async def test_garbage_is_html() -> None:
    done = await ask(model="garbage")
    assert (done.status, done.body.startswith(b"<!doctype html>")) == (200, True)


async def test_an_error_event_follows_the_role_only() -> None:
    role, error = chunks((await ask(model="error-event", stream=True)).body)
    assert (role["choices"][0]["delta"]["role"], "error" in error) == ("assistant", True)


async def test_an_error_object_under_a_200() -> None:
    done = await ask(model="error-event")
    assert (done.status, "error" in json.loads(done.body)) == (200, True)


@pytest.mark.parametrize(("model", "events"), [("cut-0", 0), ("cut", 2), ("cut-3", 3)])
async def test_a_cut_stream_ends_behind_its_events(model: str, events: int) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    with pytest.raises(Cut):
        await APP(_scope(), _receiver({"model": model, "messages": SAY_HI, "stream": True}), send)
    assert len([m for m in sent if m["type"] == "http.response.body"]) == events


async def test_a_cut_answer_is_shorter_than_its_length() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    with pytest.raises(Cut):
        await APP(_scope(), _receiver({"model": "cut", "messages": SAY_HI}), send)
    length = int(dict(sent[0]["headers"])[b"content-length"])
    assert 0 < len(sent[1]["body"]) < length


def _scope() -> dict[str, Any]:
    return {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}


def _receiver(body: object) -> Receive:
    messages = iter([{"type": "http.request", "body": json.dumps(body).encode()}])

    async def receive() -> Message:
        message = next(messages, None)
        if message is None:
            await asyncio.Event().wait()
        return message or {}

    return receive


@pytest.mark.parametrize("model", ["hang", "first-600000", "slow-600000"])
async def test_a_client_that_leaves_ends_the_wait(model: str) -> None:
    done = await play(*request_body({"model": model, "messages": SAY_HI}), DISCONNECT)
    assert done.sent == []


async def test_a_client_that_leaves_ends_the_stream() -> None:
    body = request_body({"model": "slow-600000", "stream": True, "messages": SAY_HI})
    done = await play(*body, AfterSent(2), DISCONNECT)
    assert len(done.sent) == 2


async def test_a_late_message_is_no_farewell() -> None:
    late: Message = {"type": "http.request", "body": b"", "more_body": False}
    done = await play(*request_body({"model": "hang"}), late, DISCONNECT)
    assert done.order.count("receive http.disconnect") == 1


async def test_a_client_that_leaves_before_its_body_is_through_is_left_alone() -> None:
    done = await play(DISCONNECT)
    assert done.sent == []


async def test_a_pace_is_waited_for() -> None:
    assert json.loads((await ask(model="slow-1")).body)["model"] == "slow-1"


async def test_a_body_in_parts_is_put_together() -> None:
    assert (await play(*request_body({"model": "ok", "messages": []}, cuts=[3, 9]))).status == 200


async def test_a_body_over_the_bound_is_refused() -> None:
    assert (await play(*request_body(bytes(MAX_BODY + 1)))).status == 413


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/models", 200),
        ("GET", "/models/chat", 200),
        ("POST", "/v1/models", 405),
        ("GET", "/v1/chat/completions", 405),
        ("GET", "/", 404),
        ("POST", "/v1/images/generations", 400),
        ("POST", "/v1/images/paint", 404),
        ("POST", "/v1/chat/completions", 400),
    ],
)
async def test_other_requests_get_their_status(method: str, path: str, status: int) -> None:
    assert (await drive(APP, http_scope(path, method=method), request_body(b"no json"))).status == status


async def test_models_are_listed() -> None:
    listed = (await drive(APP, http_scope("/v1/models", method="GET"))).json()
    assert {"chat", "fail-429-retry-1"} <= {model["id"] for model in listed["data"]}


async def test_other_protocols_are_not_spoken() -> None:
    with pytest.raises(NotImplementedError):
        await APP({"type": "websocket"}, _receiver({}), _receiver({}))  # type: ignore[arg-type]  # never called
