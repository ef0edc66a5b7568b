"""The AI SDK (npm ``ai``, ``@ai-sdk/openai-compatible``): chat, streams, tools, embeddings; a cut is no clean end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gateway import KEY, Gateway, run_gateway
from tests.e2e.node import FOLDER, run_javascript


@pytest.fixture(scope="module")
def gateway(folder: Path) -> Iterator[Gateway]:
    with run_gateway(folder, {"combos": {"ai_sdk": {"members": ["demo/fail-500", "demo/chat"]}}}, "--demo") as running:
        yield running


@pytest.fixture(scope="module")
def results(gateway: Gateway) -> Any:  # noqa: ANN401 - JSON is what the test expects it to be
    printed = run_javascript(FOLDER / "ai_sdk.mjs", {"OPENAI_BASE_URL": gateway.base_url, "OPENAI_API_KEY": KEY})
    return json.loads(printed)


def test_a_second_member_serves_when_the_first_one_fails(results: Any) -> None:  # noqa: ANN401 - JSON
    assert 'You said: "hello"' in results["chat"]["text"]
    assert results["chat"]["attempts"] == "2"


def test_a_tool_is_called(results: Any) -> None:  # noqa: ANN401 - JSON
    assert results["tools"] == [["get_weather", {"city": "Paris"}]]


def test_an_embedding_is_a_vector(results: Any) -> None:  # noqa: ANN401 - JSON
    assert results["embedding"] == 8


def test_a_stream_ends_well_with_its_usage(results: Any) -> None:  # noqa: ANN401 - JSON
    stream = results["stream"]
    assert "Paris" in stream["text"]
    assert (stream["finish"], stream["errors"]) == ("stop", 0)
    assert stream["tokens"] > 0


def test_a_cut_stream_is_told_as_an_error(results: Any) -> None:  # noqa: ANN401 - JSON
    assert (results["cut"]["finish"], results["cut"]["errors"]) == ("error", 1)
