"""An effort in the model's name reaches the upstream as a field, where the model reasons; a product's name stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.upstreams import Upstreams


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    models = {"o3-mini": {"reasoning": True}, "plain": {"reasoning": False}, "qwen3-max": {"reasoning": True}}
    config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none", "models": models}}}
    with run_gateway(folder, config) as running:
        yield running


def seen(client: OpenAI, upstreams: Upstreams, model: str, **more: str) -> dict[str, Any]:
    """Return the body that reaches the upstream."""
    client.chat.completions.create(**chat(model, f"as {model} {more}", **more))  # type: ignore[call-overload]
    bodies = (request.json for request in upstreams.requests("alpha"))
    return next(body for body in bodies if body["messages"][0]["content"] == f"as {model} {more}")


@pytest.mark.parametrize("model", ["o3-mini-high", "alpha/o3-mini-high", "alpha/o3-mini:high"])
def test_a_suffix_becomes_the_effort_of_a_model_that_reasons(client: OpenAI, upstreams: Upstreams, model: str) -> None:
    body = seen(client, upstreams, model)
    assert (body["model"], body["reasoning_effort"]) == ("o3-mini", "high")


@pytest.mark.parametrize("model", ["plain-high", "alpha/plain-high"])
def test_a_model_that_does_not_reason_gets_no_effort(client: OpenAI, upstreams: Upstreams, model: str) -> None:
    body = seen(client, upstreams, model)
    assert body["model"] == "plain"
    assert body.keys().isdisjoint({"reasoning_effort", "reasoning"})


def test_a_body_effort_is_stripped_for_a_model_that_does_not_reason(client: OpenAI, upstreams: Upstreams) -> None:
    body = seen(client, upstreams, "alpha/plain", reasoning_effort="low")
    assert body.keys().isdisjoint({"reasoning_effort", "reasoning"})


@pytest.mark.parametrize("model", ["qwen3-max", "alpha/qwen3-max"])
def test_a_product_name_that_ends_like_an_effort_stays_itself(client: OpenAI, upstreams: Upstreams, model: str) -> None:
    body = seen(client, upstreams, model)
    assert body["model"] == "qwen3-max"
    assert body.keys().isdisjoint({"reasoning_effort", "reasoning"})


def test_the_body_wins_over_the_suffix(client: OpenAI, upstreams: Upstreams) -> None:
    body = seen(client, upstreams, "alpha/o3-mini-high", reasoning_effort="low")
    assert (body["model"], body["reasoning_effort"]) == ("o3-mini", "low")


def test_nothing_is_added_when_nobody_asked(client: OpenAI, upstreams: Upstreams) -> None:
    body = seen(client, upstreams, "alpha/o3-mini")
    assert body.keys() == {"model", "messages"}
