"""A conversation outgrows its model: with context-relay it goes on, through real processes and the official SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from tests.e2e.gateway import CHAT, Gateway, client_headers, run_gateway
from tests.e2e.shapes import DONE, completion, delta, role
from tests.e2e.until import until
from tests.e2e.upstreams import HANG, HEALTHY, Upstreams, error, stream, whole

SUMMARY: Final = json.dumps(
    {"summary": "They plan a shed.", "key_decisions": ["oak"], "task_progress": ["drawn"], "active_entities": ["shed"]}
)
SESSION: Final = {"x-troy-session": "shed"}
SYSTEM: Final[ChatCompletionMessageParam] = {"role": "system", "content": "You are a carpenter."}
NEXT: Final[ChatCompletionMessageParam] = {"role": "user", "content": "And the roof?"}
LONG: Final[list[ChatCompletionMessageParam]] = [
    SYSTEM,
    {"role": "user", "content": "a shed of oak " * 600},
    {"role": "assistant", "content": "Fine."},
    NEXT,
]


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    models = {
        "small": {"m": {"context": 1500}},
        "large": {"m": {"context": 100_000}},
        "sums": {"m": {"context": 100_000, "price": {"input": 1, "output": 2}}},
    }
    relay = {"strategy": "context-relay", "config": {"handoff_model": "sums/m", "keep_turns": 2}}
    config = {
        "providers": {
            name: {"base_url": upstreams.base_url(name), "auth": "none", "models": listed}
            for name, listed in models.items()
        },
        "combos": {
            "relay": {**relay, "members": ["small/m"]},
            "both": {**relay, "members": ["small/m", "large/m"]},
            "plain": {"strategy": "context-relay", "members": ["small/m"]},
        },
    }
    with run_gateway(folder, config) as running:
        yield running


@pytest.fixture(autouse=True)
def scripts(gateway: Gateway, upstreams: Upstreams) -> None:
    assert gateway.admin("POST", "/api/cooldowns/clear", {}).status == 200
    upstreams.script("sums", whole(completion(SUMMARY)))
    for name in ("small", "large"):
        upstreams.script(name, HEALTHY)


def test_a_long_conversation_goes_on_with_a_summary(client: OpenAI, upstreams: Upstreams) -> None:
    answer = client.chat.completions.with_raw_response.create(model="relay", messages=LONG, extra_headers=SESSION)
    system, summary, last = upstreams.requests("small")[-1].json["messages"]
    assert (system, last, summary["role"]) == (SYSTEM, NEXT, "system")
    assert "They plan a shed." in summary["content"]
    assert answer.headers["x-troy-trail"] == "sums/m#sums-keyless=handoff,small/m#small-keyless=ok"
    assert answer.parse().choices[0].message.content == "m by small"


def test_a_stream_goes_on_with_a_summary(client: OpenAI, upstreams: Upstreams) -> None:
    upstreams.script("small", stream(role(), delta("Tin."), delta(finish="stop"), DONE))
    chunks = client.chat.completions.create(model="relay", messages=LONG, stream=True, extra_headers=SESSION)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Tin."
    assert "They plan a shed." in upstreams.requests("small")[-1].json["messages"][1]["content"]


def test_a_conversation_that_fits_is_not_touched(client: OpenAI, upstreams: Upstreams) -> None:
    before = len(upstreams.requests("sums"))
    client.chat.completions.create(model="relay", messages=[SYSTEM, NEXT], extra_headers=SESSION)
    assert upstreams.requests("small")[-1].json["messages"] == [SYSTEM, NEXT]
    assert len(upstreams.requests("sums")) == before


def test_without_a_summary_the_member_that_holds_the_whole_gets_it(client: OpenAI, upstreams: Upstreams) -> None:
    upstreams.script("sums", error(500))
    answer = client.chat.completions.with_raw_response.create(model="both", messages=LONG, extra_headers=SESSION)
    assert answer.headers["x-troy-skipped"] == "small/m=context"
    assert upstreams.requests("large")[-1].json["messages"] == LONG


@pytest.mark.parametrize(("model", "headers"), [("relay", {}), ("plain", SESSION)])
def test_without_a_session_or_a_model_the_request_is_too_long(
    client: OpenAI, model: str, headers: dict[str, str]
) -> None:
    with pytest.raises(openai.InternalServerError) as caught:
        client.chat.completions.create(model=model, messages=LONG, extra_headers=headers)
    assert caught.value.code == "context_length_exceeded"


def test_a_client_that_leaves_ends_the_summary(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("sums", HANG)
    before = len(upstreams.requests("sums"))
    asked = json.dumps({"model": "relay", "messages": LONG}).encode()
    with closing(gateway.send("POST", CHAT, asked, [*client_headers(), *SESSION.items()])):
        until(lambda: len(upstreams.requests("sums")) > before)
    until(lambda: upstreams.states("sums")[before:] == ["left"])
    assert upstreams.requests("sums")[before:][1:] == []


def test_the_row_tells_what_the_summary_took(gateway: Gateway, client: OpenAI) -> None:
    answer = client.chat.completions.with_raw_response.create(model="relay", messages=LONG, extra_headers=SESSION)
    path = f"/api/requests/{answer.headers['x-troy-request-id']}"
    until(lambda: gateway.admin("GET", path).status == 200)
    row = gateway.admin("GET", path).json()
    assert [attempt["handoff"] for attempt in row["attempts"]] == [True, False]
    assert (row["wasted"], row["cost_usd"] > 0) == (row["attempts"][0]["usage"], True)
