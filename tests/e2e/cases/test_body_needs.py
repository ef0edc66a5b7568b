"""Field case BE-01: what a request needs is read from its structure, and its size from its text."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.cases.house import calls, combo, provider
from tests.e2e.client import Response
from tests.e2e.gateway import CHAT, Gateway, client_headers, run_gateway
from tests.e2e.shapes import dumps
from tests.e2e.upstreams import Upstreams

PAYLOAD: Final = base64.b64encode(b"\x89PNG" + bytes(range(256)) * 7_700).decode()
SOUND: Final = base64.b64encode(b"RIFF" + bytes(range(256)) * 8_800).decode()
IMAGE: Final = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PAYLOAD}"}}
ASK: Final = {"type": "text", "text": "what is this?"}
AUDIO: Final = {"type": "input_audio", "input_audio": {"data": SOUND, "format": "wav"}}
CHINESE: Final = "这是一个测试。" * 2000


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {
        "providers": {
            "alpha": provider(upstreams, "alpha", models={"m1": {"vision": True, "audio": True, "context": 128_000}}),
            "beta": provider(upstreams, "beta", models={"m2": {"vision": False, "context": 64_000}}),
        },
        "combos": {"both": combo("beta/m2", "alpha/m1")},
    }
    with run_gateway(folder, config) as running:
        yield running


def asked(gateway: Gateway, *contents: object, model: str = "both", ascii_only: bool = False) -> Response:
    """Send one message for each of *contents*."""
    messages = [{"role": "user", "content": content} for content in contents]
    body = json.dumps({"model": model, "messages": messages}, ensure_ascii=ascii_only).encode()
    return gateway.whole("POST", CHAT, body, client_headers())


def row(gateway: Gateway, answer: Response) -> dict[str, Any]:
    """Return the usage row of an answered request."""
    return gateway.row(answer.headers["x-troy-request-id"])


def test_be_01_an_image_needs_eyes_and_is_charged_a_flat_price(gateway: Gateway) -> None:
    answer = asked(gateway, [IMAGE, ASK])
    assert (answer.status, answer.headers["x-troy-model"]) == (200, "alpha/m1")
    assert answer.headers["x-troy-skipped"] == "beta/m2=no-vision"
    assert 1000 <= row(gateway, answer)["est_tokens"] <= 1100


def test_be_01_an_image_in_the_history_counts_too(gateway: Gateway) -> None:
    answer = asked(gateway, [IMAGE, ASK], "and now without a picture?")
    assert (answer.status, answer.headers["x-troy-model"]) == (200, "alpha/m1")
    assert 1000 <= row(gateway, answer)["est_tokens"] <= 1100


def test_be_01_the_same_bytes_as_text_are_that_long(gateway: Gateway, upstreams: Upstreams) -> None:
    before = calls(upstreams, "alpha/m1", "beta/m2")
    answer = asked(gateway, [{"type": "text", "text": PAYLOAD}, ASK])
    assert (answer.status, answer.code) == (503, "context_length_exceeded")
    assert answer.headers["x-should-retry"] == "false"
    assert "maximum context length is 128000 tokens" in answer.json()["error"]["message"]
    assert [skip["reason"] for skip in answer.json()["error"]["details"]] == ["context", "context"]
    assert calls(upstreams, "alpha/m1", "beta/m2") == before


@pytest.mark.parametrize("text", ["image_url", '{"type":"image_url"}', "data:image/png;base64,AAAA"])
def test_be_01_talk_of_images_needs_no_eyes(gateway: Gateway, text: str) -> None:
    for content in (text, [{"type": "text", "text": text}]):
        answer = asked(gateway, content)
        assert (answer.status, answer.headers["x-troy-model"]) == (200, "beta/m2")


def test_be_01_a_sound_is_no_text(gateway: Gateway) -> None:
    answer = asked(gateway, [AUDIO, ASK], model="alpha/m1")
    assert answer.status == 200
    assert row(gateway, answer)["est_tokens"] <= 1100
    assert row(gateway, answer)["needs"]["audio"] is True


def test_be_01_escapes_change_no_estimate(gateway: Gateway) -> None:
    plain, escaped = (asked(gateway, CHINESE, ascii_only=ascii_only) for ascii_only in (False, True))
    assert len(dumps(CHINESE)) > len(CHINESE.encode())
    assert row(gateway, plain)["est_tokens"] == row(gateway, escaped)["est_tokens"] == len(CHINESE) * 3 / 4
