"""The official client in JavaScript (npm ``openai``): all of it works, each call through a failing first member."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.gateway import KEY, Gateway, run_gateway
from tests.e2e.node import FOLDER, run_javascript

TASKS: Final = {
    "chat": "chat",
    "streaming": "chat",
    "tools": "chat",
    "streamed_tools": "chat",
    "embeddings": "embed",
    "completions": "chat",
    "transcription": "transcribe",
}
"""Task → the demo model that serves it in the end."""
FAULTS: Final = (500, 502, 503, 504, 507, 508, 511)
"""Each task has a failing first member of its own, so that none meets the cooldown of another."""
CALL: Final = {"name": "get_weather", "arguments": '{"city": "Paris"}'}


@pytest.fixture(scope="module")
def gateway(folder: Path) -> Iterator[Gateway]:
    combos = {
        task: {"members": [f"demo/fail-{fault}", f"demo/{model}"], "config": {"allow_mixed_embeddings": True}}
        for (task, model), fault in zip(TASKS.items(), FAULTS, strict=True)
    }
    with run_gateway(folder, {"combos": combos}, "--demo") as running:
        yield running


@pytest.fixture(scope="module")
def results(gateway: Gateway) -> Any:  # noqa: ANN401 - JSON is what the test expects it to be
    printed = run_javascript(FOLDER / "openai.mjs", {"OPENAI_BASE_URL": gateway.base_url, "OPENAI_API_KEY": KEY})
    return json.loads(printed)


@pytest.mark.parametrize("task", [task for task in TASKS if task != "streamed_tools"])
def test_a_second_member_serves_when_the_first_one_fails(results: Any, task: str) -> None:  # noqa: ANN401 - JSON
    assert results[task].get("error") is None
    assert (results[task]["combo"], results[task]["attempts"]) == (task, "2")


def test_a_chat_is_answered(results: Any) -> None:  # noqa: ANN401 - JSON
    assert 'You said: "hello"' in results["chat"]["text"]


def test_a_stream_comes_in_pieces(results: Any) -> None:  # noqa: ANN401 - JSON
    assert "Paris" in results["streaming"]["text"]
    assert results["streaming"]["pieces"] > 3


@pytest.mark.parametrize("task", ["tools", "streamed_tools"])
def test_a_tool_is_called(results: Any, task: str) -> None:  # noqa: ANN401 - JSON
    assert (results[task].get("finish"), results[task].get("call")) == ("tool_calls", CALL)


def test_embeddings_are_vectors(results: Any) -> None:  # noqa: ANN401 - JSON
    assert results["embeddings"]["sizes"] == [8, 8]


def test_a_legacy_completion_is_text(results: Any) -> None:  # noqa: ANN401 - JSON
    assert "hello" in results["completions"]["text"]


def test_a_sound_is_transcribed(results: Any) -> None:  # noqa: ANN401 - JSON
    assert results["transcription"]["text"]


def test_the_models_are_listed_and_retrieved(results: Any) -> None:  # noqa: ANN401 - JSON
    assert {*TASKS, "demo", "demo/chat"} <= set(results["models"]["found"])
    assert results["models"]["one"] == "demo/chat"


def test_an_unknown_model_is_the_clients_own_error(results: Any) -> None:  # noqa: ANN401 - JSON
    assert results["refused"] == {"name": "NotFoundError", "status": 404, "code": "model_not_found"}


def test_a_cut_in_mid_stream_raises(results: Any) -> None:  # noqa: ANN401 - JSON
    assert results["cut"] == {"raised": True}
