"""A request with tools, an image and 50,000 tokens of text, against members that each lack one of these."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from openai import APIStatusError, OpenAI

from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.upstreams import Upstreams

ABLE: Final = {"tools": True, "vision": True, "context": 200_000, "output": 8_192}
LACKING: Final = {
    "blunt": {**ABLE, "tools": False},
    "blind": {**ABLE, "vision": False},
    "small": {**ABLE, "context": 16_000},
}
REASONS: Final = {"alpha/blunt": "no-tools", "alpha/blind": "no-vision", "alpha/small": "context"}
TOOL: Final = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
IMAGE: Final = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    models = {**LACKING, "able": ABLE}
    config = {
        "providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none", "models": models}},
        "combos": {
            "somebody": {"members": [*REASONS, "alpha/able"]},
            "nobody": {"members": list(REASONS)},
            "small-ones": {"members": ["alpha/small"]},
        },
    }
    with run_gateway(folder, config) as running:
        yield running


def demanding(model: str) -> dict[str, Any]:
    text = {"type": "text", "text": "word" * 50_000}
    return {"model": model, "messages": [{"role": "user", "content": [text, IMAGE]}], "tools": [TOOL]}


def test_members_that_lack_something_are_skipped_with_their_reasons(client: OpenAI, upstreams: Upstreams) -> None:
    raw = client.chat.completions.with_raw_response.create(**demanding("somebody"))
    assert raw.headers["x-troy-model"] == "alpha/able"
    assert raw.headers["x-troy-attempts"] == "1"
    assert dict(pair.split("=") for pair in raw.headers["x-troy-skipped"].split(",")) == REASONS
    assert not [name for name in LACKING if upstreams.requests("alpha", model=name)]


def test_nobody_left_is_503_with_the_reasons(client: OpenAI, upstreams: Upstreams) -> None:
    with pytest.raises(APIStatusError) as caught:
        client.chat.completions.create(**demanding("nobody"))
    assert caught.value.status_code == 503
    assert caught.value.code == "no_eligible_member"
    assert isinstance(caught.value.body, dict)
    assert {detail["member"]: detail["reason"] for detail in caught.value.body["details"]} == REASONS
    assert all(reason in caught.value.message for reason in REASONS.values())
    assert not [name for name in LACKING if upstreams.requests("alpha", model=name)]


def test_too_long_for_every_member_is_said_in_the_words_agents_read(gateway: Gateway) -> None:
    answer = gateway.post(chat("small-ones", "word" * 50_000))
    assert (answer.status, answer.code) == (503, "context_length_exceeded")
    assert "maximum context length" in answer.json()["error"]["message"]
    assert answer.headers["x-should-retry"] == "false"


def test_a_skip_is_counted(gateway: Gateway) -> None:
    before = gateway.metric("skips_total", provider="alpha", reason="no-tools")
    assert gateway.post(demanding("somebody")).status == 200
    assert gateway.metric("skips_total", provider="alpha", reason="no-tools") == before + 1
