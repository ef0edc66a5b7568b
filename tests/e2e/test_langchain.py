"""LangChain's ChatOpenAI and OpenAIEmbeddings against a real gateway, through a combo whose first member fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import openai
import pytest
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import SecretStr

from tests.e2e.client import CLIENT_S
from tests.e2e.gateway import KEY, Gateway, run_gateway

SECRET: Final = SecretStr(KEY)


@pytest.fixture(scope="module")
def gateway(folder: Path) -> Iterator[Gateway]:
    combos = {
        name: {"members": [f"demo/fail-{fault}", "demo/chat"]}
        for name, fault in (("invoke", 500), ("stream", 502), ("tools", 503))
    }
    with run_gateway(folder, {"combos": combos}, "--demo") as running:
        yield running


def _model(gateway: Gateway, name: str) -> ChatOpenAI:
    return ChatOpenAI(
        model=name,
        base_url=gateway.base_url,
        api_key=SECRET,
        use_responses_api=False,
        stream_usage=True,
        include_response_headers=True,
        max_retries=0,
        timeout=CLIENT_S,
    )


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"sunny in {city}"


def test_invoke_is_served_by_the_second_member(gateway: Gateway) -> None:
    answer = _model(gateway, "invoke").invoke("hello there")
    assert "hello there" in str(answer.content)
    assert answer.response_metadata["headers"]["x-troy-attempts"] == "2"
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["total_tokens"] > 0


def test_a_stream_comes_in_pieces_with_its_usage(gateway: Gateway) -> None:
    chunks = list(_model(gateway, "stream").stream("hello there"))
    assert "hello there" in "".join(str(chunk.content) for chunk in chunks)
    assert len([chunk for chunk in chunks if chunk.content]) > 3
    assert [chunk.usage_metadata is not None for chunk in chunks].count(True) == 1


def test_a_bound_tool_is_called(gateway: Gateway) -> None:
    answer = _model(gateway, "tools").bind_tools([get_weather]).invoke("what is the weather in Paris?")
    assert [(call["name"], call["args"]) for call in answer.tool_calls] == [("get_weather", {"city": "Paris"})]


@pytest.mark.anyio
async def test_the_asynchronous_model(gateway: Gateway) -> None:
    answer = await _model(gateway, "demo/chat").ainvoke("hello there")
    assert "hello there" in str(answer.content)


def test_embeddings(gateway: Gateway) -> None:
    embeddings = OpenAIEmbeddings(
        model="demo/embed", base_url=gateway.base_url, api_key=SECRET, check_embedding_ctx_length=False, max_retries=0
    )
    assert [len(vector) for vector in embeddings.embed_documents(["one", "two"])] == [8, 8]


def test_a_cut_in_mid_stream_raises(gateway: Gateway) -> None:
    with pytest.raises(openai.APIError, match="ended the stream"):
        list(_model(gateway, "demo/cut-4").stream("hello there"))
