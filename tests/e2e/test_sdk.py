"""The official SDK against the demo provider and a scripted one: everything it offers works, and no cut is silent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionUserMessageParam

from tests.e2e.gateway import Gateway, async_sdk, run_gateway
from tests.e2e.shapes import delta, event, role
from tests.e2e.upstreams import CUT, RST, Step, Upstreams, stream

ASK: Final[ChatCompletionUserMessageParam] = {"role": "user", "content": "what is the weather in Paris?"}
SCHEMA: Final[dict[str, object]] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL: Final[ChatCompletionFunctionToolParam] = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": SCHEMA},
}


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    models = {"vendor/model-x": {"tools": True, "context": 4096}}
    config = {
        "providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none", "models": models}},
        "combos": {"daily": {"members": ["alpha/vendor/model-x", "demo/chat"]}},
    }
    with run_gateway(folder, config, "--demo") as running:
        yield running


def test_a_completion(client: OpenAI) -> None:
    answer = client.chat.completions.create(model="demo/chat", messages=[ASK])
    assert "what is the weather in Paris?" in (answer.choices[0].message.content or "")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_the_streaming_helper(client: OpenAI) -> None:
    with client.chat.completions.stream(model="demo", messages=[ASK]) as events:
        kinds = {happening.type for happening in events}
        final = events.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert final.choices[0].finish_reason == "stop"
    assert "Paris" in (final.choices[0].message.content or "")


def test_usage_comes_to_whoever_asks(client: OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="demo/chat",
            messages=[ASK],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert [chunk.usage is not None for chunk in chunks].count(True) == 1
    assert not chunks[-1].choices


@pytest.mark.parametrize("streams", [False, True])
def test_a_tool_call(client: OpenAI, streams: bool) -> None:
    if streams:
        with client.chat.completions.stream(model="demo/chat", messages=[ASK], tools=[TOOL]) as events:
            choice = events.get_final_completion().choices[0]
            calls, finish = [call.to_dict() for call in choice.message.tool_calls or ()], choice.finish_reason
    else:
        whole = client.chat.completions.create(model="demo/chat", messages=[ASK], tools=[TOOL]).choices[0]
        calls, finish = [call.to_dict() for call in whole.message.tool_calls or ()], whole.finish_reason
    assert finish == "tool_calls"
    called = [call["function"] for call in calls]
    assert len(called) == 1
    assert isinstance(called[0], dict)
    assert (called[0]["name"], called[0]["arguments"]) == ("get_weather", '{"city": "Paris"}')


def test_the_models_are_listed(client: OpenAI) -> None:
    found = {model.id: model for model in client.models.list()}
    assert {"daily", "demo", "alpha/vendor/model-x", "demo/chat"} <= found.keys()
    assert found["daily"].owned_by == "troy"


@pytest.mark.parametrize("name", ["daily", "demo/chat", "alpha/vendor/model-x"])
def test_one_model_is_retrieved(client: OpenAI, name: str) -> None:
    model = client.models.retrieve(name)
    assert (model.id, model.object) == (name, "model")


def test_an_unknown_model_is_not_found(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("alpha/nothing/at/all")
    assert caught.value.code == "model_not_found"


def test_embeddings(client: OpenAI) -> None:
    answer = client.embeddings.create(model="alpha/embed", input=["one", "two"], encoding_format="float")
    assert answer.data[0].embedding == [0.25, -0.5]
    assert client.embeddings.create(model="demo/embed", input="one").data[0].embedding


def test_a_legacy_completion(client: OpenAI) -> None:
    answer = client.completions.create(model="demo/chat", prompt="hello")
    assert answer.choices[0].text


@pytest.mark.anyio
async def test_the_asynchronous_client(gateway: Gateway) -> None:
    async with async_sdk(gateway) as client:
        answer = await client.chat.completions.create(model="demo/chat", messages=[ASK])
        chunks = await client.chat.completions.create(model="demo", messages=[ASK], stream=True)
        text = "".join([choice.delta.content or "" async for chunk in chunks for choice in chunk.choices])
    assert text == answer.choices[0].message.content


ENDINGS: Final[dict[str, tuple[Step, ...]]] = {
    "a closed connection": (CUT,),
    "a reset": (RST,),
    "an end without a finish": (),
    "an error event": (event({"error": {"message": "out of memory", "code": 500}}),),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_a_cut_in_mid_stream_raises_in_the_sdk(
    client: OpenAI, upstreams: Upstreams, ending: tuple[Step, ...], request: pytest.FixtureRequest
) -> None:
    model = request.node.callspec.id.replace(" ", "-")
    upstreams.script("alpha", stream(role(), delta("half a sen"), *ending), model=model)
    chunks = client.chat.completions.create(model=f"alpha/{model}", messages=[ASK], stream=True)
    text: list[str] = []
    with pytest.raises(openai.APIError) as caught:
        text.extend(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["troy"]["partial"] is True


def test_a_cut_of_the_demo_provider_raises_in_the_sdk(client: OpenAI) -> None:
    with pytest.raises(openai.APIError, match=r"."):
        list(client.chat.completions.create(model="demo/cut-4", messages=[ASK], stream=True))


def test_a_finish_reason_without_the_end_mark_is_an_answer(client: OpenAI, upstreams: Upstreams) -> None:
    upstreams.script("alpha", stream(delta("all of it"), delta(finish="stop")), model="no-done")
    with client.chat.completions.stream(model="alpha/no-done", messages=[ASK]) as events:
        final = events.get_final_completion()
    assert final.choices[0].message.content == "all of it"


def test_an_upstreams_own_error_is_raised_as_it_is(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match=r"Invalid request\."):
        client.chat.completions.create(model="demo/fail-400", messages=[ASK])
