"""Field cases SO-02 to SO-06: usage is asked for where it may be, and hidden from whoever did not ask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cases.house import circuit, ended, finishes_of, keys_used, locks, provider, streamed, text_of, tokens
from tests.e2e.cases.reads import ASK_USAGE, DONE, OK, USAGE
from tests.e2e.gateway import CHAT, Gateway, chat, run_gateway
from tests.e2e.shapes import dumps
from tests.e2e.upstreams import HEALTHY, Reply, Upstreams, stream, whole

COUNTS: Final = b'{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}'
LENGTH: Final = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}\n\n'
ODD: Final = (
    b'data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"length","usage":%b}],"usage":%b}\n\n'
    % (COUNTS, COUNTS),
    b'data: {"choices":[{"index":0,"delta":{}}],"usage":%b}\n\n' % COUNTS,
    b'data: {"usage":%b}\n\n' % COUNTS,
    DONE,
)
ODD_SHOWN: Final = (
    b'data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"length","usage":%b}]}\n\n' % COUNTS,
    b'data: {"choices":[{"index":0,"delta":{}}]}\n\n',
    DONE,
)
VARIANTS: Final[dict[str, tuple[bytes, ...]]] = {
    "usage before the finish": (OK, USAGE, LENGTH, DONE),
    "choices null": (OK, LENGTH, USAGE.replace(b'"choices":[]', b'"choices":null'), DONE),
    "no choices": (OK, LENGTH, USAGE.replace(b'"choices":[],', b""), DONE),
    "usage and the end in one read": (OK, LENGTH, USAGE + DONE),
    "usage first": (USAGE, OK, LENGTH, DONE),
    "usage behind other members": (OK, LENGTH, b'data: {"id":"x","usage":%b,"choices":[],"x":1}\n\n' % COUNTS, DONE),
}
BAD_REQUEST: Final = {
    "400 with a param": whole(
        b'{"error":{"message":"unknown field stream_options","type":"invalid_request_error","param":"stream_options"}}',
        400,
    ),
    "422 with a location": whole(
        b'{"detail":[{"loc":["body","stream_options"],"msg":"extra fields not permitted","type":"value_error.extra"}]}',
        422,
    ),
    "400 with a path": whole(
        b'{"error":{"message":"Extra inputs are not permitted","param":"stream_options.include_usage"}}', 400
    ),
}
NOT_STREAMED: Final[tuple[dict[str, object], ...]] = ({"stream": False}, {}, {"stream": None})


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    plain = provider(upstreams, "plain", accepts={"stream_options": False})
    config = {"providers": {"alpha": provider(upstreams, "alpha", "AB"), "plain": plain}}
    with run_gateway(folder, config) as running:
        yield running


def last_body(upstreams: Upstreams, model: str, name: str = "alpha") -> dict[str, object]:
    """Return the body that came last."""
    return upstreams.requests(name, model=model)[-1].json


def test_so_02_the_finish_reason_survives_the_usage_beside_it(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", stream(*ODD), model="so02")
    answer = streamed(gateway, "alpha/so02")
    assert answer.body == b"".join(ODD_SHOWN)
    assert text_of(answer.body) == "ok"
    assert finishes_of(answer.body) == ["length"]
    assert tokens(gateway, answer) == (3, 2)


@pytest.mark.parametrize("kind", VARIANTS)
def test_so_02_only_events_without_choices_go(gateway: Gateway, upstreams: Upstreams, kind: str) -> None:
    model = f"so02-{list(VARIANTS).index(kind)}"
    upstreams.script("alpha", stream(*VARIANTS[kind]), model=model)
    answer = streamed(gateway, f"alpha/{model}")
    assert answer.body == OK + LENGTH + DONE
    assert tokens(gateway, answer) == (3, 2)
    upstreams.script("alpha", stream(*VARIANTS[kind]), model=model)
    assert b"".join(VARIANTS[kind]) == streamed(gateway, f"alpha/{model}", **ASK_USAGE).body


@pytest.mark.parametrize("given", NOT_STREAMED, ids=["false", "absent", "null"])
def test_so_03_the_option_goes_where_nothing_streams(
    gateway: Gateway, upstreams: Upstreams, given: dict[str, object]
) -> None:
    model = f"so03-{NOT_STREAMED.index(given)}"
    answer = gateway.post(chat(f"alpha/{model}") | ASK_USAGE | given)
    assert (answer.status, answer.json()["object"]) == (200, "chat.completion")
    assert "stream_options" not in last_body(upstreams, model)


def test_so_03_a_refusal_all_the_same_cools_nobody(gateway: Gateway, upstreams: Upstreams) -> None:
    refusal = whole(b'{"error":{"message":"stream_options needs stream","type":"invalid_request_error"}}', 400)
    upstreams.script("alpha", refusal, model="so03-refused")
    answer = gateway.post(chat("alpha/so03-refused") | ASK_USAGE)
    assert (answer.status, answer.json()["error"]["message"]) == (400, "stream_options needs stream")
    assert not locks(gateway, "alpha", "so03-refused")
    assert circuit(gateway, "alpha", "so03-refused") == "closed"


@pytest.mark.parametrize("kind", BAD_REQUEST)
def test_so_05_what_the_gateway_added_is_taken_back_and_remembered(
    gateway: Gateway, upstreams: Upstreams, kind: str
) -> None:
    model = f"so05-{list(BAD_REQUEST).index(kind)}"
    upstreams.script("alpha", BAD_REQUEST[kind], HEALTHY, model=model)
    answer = streamed(gateway, f"alpha/{model}")
    assert (answer.status, text_of(answer.body)) == (200, f"{model} by alpha")
    assert ended(answer.body)
    assert answer.headers["x-troy-attempts"] == "2"
    assert streamed(gateway, f"alpha/{model}").headers["x-troy-attempts"] == "1"
    assert keys_used(upstreams, "alpha", model) == ["A"] * 3
    asked = ["stream_options" in request.json for request in upstreams.requests("alpha", model=model)]
    assert asked == [True, False, False]
    assert not locks(gateway, "alpha", model)
    assert circuit(gateway, "alpha", model) == "closed"


@pytest.mark.parametrize("option", [{"include_usage": True}, {"include_usage": True, "include_obfuscation": False}])
@pytest.mark.parametrize("kind", ["400 with a param", "400 with a path"])
def test_so_05_what_the_client_sent_is_the_clients_to_answer_for(
    gateway: Gateway, upstreams: Upstreams, kind: str, option: dict[str, object]
) -> None:
    model = f"so05-own-{kind.replace(' ', '-')}-{len(option)}"
    reply: Reply = BAD_REQUEST[kind]
    upstreams.script("alpha", reply, HEALTHY, model=model)
    answer = streamed(gateway, f"alpha/{model}", stream_options=option)
    assert (answer.status, answer.body) == (400, reply.steps[0])
    assert len(upstreams.requests("alpha", model=model)) == 1


def test_so_05_a_provider_may_be_declared_not_to_take_it(gateway: Gateway, upstreams: Upstreams) -> None:
    answer = streamed(gateway, "plain/so05")
    assert (answer.status, answer.headers["x-troy-attempts"]) == (200, "1")
    assert "stream_options" not in last_body(upstreams, "so05", "plain")


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"include_obfuscation": False, "include_usage": False}, {"include_obfuscation": False, "include_usage": True}),
        ({"include_obfuscation": False}, {"include_obfuscation": False, "include_usage": True}),
        ({}, {"include_usage": True}),
        (None, {"include_usage": True}),
    ],
)
def test_so_06_the_clients_options_are_kept(
    gateway: Gateway, upstreams: Upstreams, given: dict[str, object] | None, sent: dict[str, object]
) -> None:
    model = f"so06-{len(given or ()) if given is not None else 'null'}"
    answer = streamed(gateway, f"alpha/{model}", stream_options=given)
    assert last_body(upstreams, model)["stream_options"] == sent
    assert b'"usage"' not in answer.body
    assert ended(answer.body)


def test_so_06_legacy_completions_are_asked_too(gateway: Gateway, upstreams: Upstreams) -> None:
    answer = gateway.post({"model": "alpha/so06-legacy", "prompt": "hi", "stream": True}, "/v1/completions")
    assert answer.status == 200
    assert upstreams.requests("alpha", model="so06-legacy")[-1].path.endswith("/completions")
    assert last_body(upstreams, "so06-legacy")["stream_options"] == {"include_usage": True}
    assert b'"usage"' not in answer.body
    assert tokens(gateway, answer) == (7, 3)


def test_so_06_embeddings_pass_byte_for_byte_but_for_the_model(gateway: Gateway, upstreams: Upstreams) -> None:
    body = b'{ "input":["\\u00e9", "x"],\n "model" : "alpha/so06-vectors","dimensions":1.50e1, "stream":true }'
    assert gateway.post(body, "/v1/embeddings").status == 200
    (request,) = upstreams.requests("alpha", model="so06-vectors")
    assert request.body == body.replace(b"alpha/so06-vectors", b"so06-vectors")


def test_so_06_a_request_that_streams_nothing_passes_byte_for_byte_but_for_the_model(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    body = dumps(chat("alpha/so06-bytes")).replace(b",", b" ,\t").replace(b"hi", b"h\\u0069")
    assert gateway.post(body, CHAT).status == 200
    (request,) = upstreams.requests("alpha", model="so06-bytes")
    assert request.body == body.replace(b"alpha/so06-bytes", b"so06-bytes")
    assert json.loads(body)["messages"] == request.json["messages"]
