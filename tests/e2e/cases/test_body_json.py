"""Field cases BE-03, BE-04, BE-05 and BE-08: JSON as the wild has it, and vectors that do not mix."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cases.house import calls, combo, ended, locks, provider, streamed
from tests.e2e.cases.reads import DONE, STOP, TOOLS, said, splits
from tests.e2e.client import Response
from tests.e2e.gateway import CHAT, Gateway, chat, client_headers, run_gateway
from tests.e2e.shapes import dumps
from tests.e2e.upstreams import HEALTHY, Upstreams, error, stream, whole

USER: Final = b'"messages":[{"role":"user","content":"hi"}]'
SURROGATES: Final = {
    "in a text": b'{"model":"alpha/M","messages":[{"role":"user","content":"hi \\ud83d"}]}',
    "a low one": b'{"model":"alpha/M","messages":[{"role":"user","content":"\\ude42 hi"}]}',
    "in a key": b'{"model":"alpha/M","messages":[{"role":"user","content":"hi","\\ud83d":1}]}',
    "in a tool argument": b'{"model":"alpha/M","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1",'
    b'"type":"function","function":{"name":"w","arguments":"{\\"a\\":\\"\\ud83d\\"}"}}]}]}',
    "in a tool": b'{"model":"alpha/M",%b,"tools":[{"type":"function","function":{"name":"w","description":"\\ud83d"}}]}'
    % USER,
    "at the top": b'{"model":"alpha/M",%b,"user":"\\ud83d","\\ud83d":{"x":"\\ud83d"}}' % USER,
    "a whole pair": b'{"model":"alpha/M","messages":[{"role":"user","content":"\\ud83d\\ude42"}]}',
}
INFINITE: Final = (
    b'{"choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"logprobs":{"content":[{"token":"ok",'
    b'"logprob":-Infinity}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}'
)
INFINITE_EVENT: Final = (
    b'data: {"choices":[{"index":0,"delta":{"content":"ok"},"logprobs":{"content":[{"token":"ok","logprob":-Infinity},'
    b'{"token":"x","logprob":NaN}]},"finish_reason":null}],"usage":null}\n\n'
)
TWICE: Final = (
    b'{"model":"beta/M","model":"alpha/M","stream":true,"stream":false,'
    b'"messages":[{"role":"user","content":"\\"model\\":\\"x\\""}]}'
)
TWICE_STREAMED: Final = TWICE.replace(b'"stream":true,"stream":false', b'"stream":false,"stream":true')


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {
        "providers": {name: provider(upstreams, name, "AB" if name == "alpha" else "") for name in ("alpha", "beta")},
        "combos": {
            "emb-mixed": combo("alpha/emb-1", "beta/emb-2"),
            "emb-same": combo("alpha/emb-1", "beta/emb-1"),
            "emb-free": combo("alpha/emb-1", "beta/emb-2", config={"allow_mixed_embeddings": True}),
        },
    }
    with run_gateway(folder, config) as running:
        yield running


def sent(gateway: Gateway, body: bytes, model: str, path: str = CHAT) -> Response:
    """Post *body* for a model of its own."""
    return gateway.whole("POST", path, body.replace(b"/M", f"/{model}".encode()), client_headers())


@pytest.mark.parametrize("place", SURROGATES)
@pytest.mark.parametrize(
    "more", [b"", b'"stream":true,', b'"reasoning_effort":"low",'], ids=["as it is", "stream", "effort"]
)
def test_be_03_half_an_emoji_passes_as_the_escape_it_is(
    gateway: Gateway, upstreams: Upstreams, place: str, more: bytes
) -> None:
    model = f"be03-{list(SURROGATES).index(place)}-{len(more)}"
    body = SURROGATES[place].replace(b"{", b"{" + more, 1)
    assert sent(gateway, body, model).status == 200
    (request,) = upstreams.requests("alpha", model=model)
    expected = {**json.loads(body), "model": model}
    got = request.json
    got.pop("stream_options", None)
    assert got == expected
    assert request.body.isascii()
    assert not locks(gateway, "alpha", model)


@pytest.mark.parametrize("tools", [[], TOOLS], ids=["plain", "guarded"])
@pytest.mark.parametrize("text", [b"a \\ud83d b", b"\\ude42", b"\\ud83d\\ude42"])
def test_be_03_half_an_emoji_from_the_upstream_breaks_no_stream(
    gateway: Gateway, upstreams: Upstreams, text: bytes, tools: list[object]
) -> None:
    model = f"be03-up-{len(text)}-{len(tools)}"
    body = said(text, usage=b'{"prompt_tokens":1,"completion_tokens":1}') + STOP + DONE
    cuts = list(splits(body))[::9]
    upstreams.script("alpha", *(stream(*reads) for reads in cuts), model=model)
    answers = [streamed(gateway, f"alpha/{model}", tools=tools).body for _ in cuts]
    assert set(answers) == {said(text) + STOP + DONE}
    assert not locks(gateway, "alpha", model)


def test_be_03_half_an_emoji_in_a_whole_answer_passes(gateway: Gateway, upstreams: Upstreams) -> None:
    answer = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"\\ud83d"},"finish_reason":"stop"}]}'
    upstreams.script("alpha", whole(answer), model="be03-whole")
    assert gateway.post(chat("alpha/be03-whole", tools=TOOLS)).body == answer


def test_be_04_numbers_that_are_none_pass_as_they_are(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", whole(INFINITE), model="be04")
    answer = gateway.post(chat("alpha/be04", logprobs=True))
    assert (answer.status, answer.body) == (200, INFINITE)
    upstreams.script("alpha", stream(INFINITE_EVENT, STOP, DONE), model="be04-stream")
    body = streamed(gateway, "alpha/be04-stream", tools=TOOLS).body
    assert body == INFINITE_EVENT.replace(b',"usage":null', b"") + STOP + DONE
    assert ended(body)


@pytest.mark.parametrize("value", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"1E400"])
def test_be_04_a_request_with_such_a_number_passes_as_it_is(
    gateway: Gateway, upstreams: Upstreams, value: bytes
) -> None:
    model = f"be04-{value.decode()}"
    body = b'{"temperature":%b,"model":"alpha/M",%b}' % (value, USER)
    assert sent(gateway, body, model).status == 200
    (request,) = upstreams.requests("alpha", model=model)
    assert request.body == body.replace(b"alpha/M", model.encode())


@pytest.mark.parametrize("streams", [False, True])
def test_be_05_the_last_of_two_keys_is_read_by_everybody(gateway: Gateway, upstreams: Upstreams, streams: bool) -> None:
    model = f"be05-{streams:d}"
    answer = sent(gateway, TWICE_STREAMED if streams else TWICE, model)
    assert (answer.status, answer.headers["x-troy-model"]) == (200, f"alpha/{model}")
    assert answer.headers["content-type"].startswith("text/event-stream" if streams else "application/json")
    assert calls(upstreams, f"alpha/{model}", f"beta/{model}") == [1, 0]
    (request,) = upstreams.requests("alpha", model=model)
    pairs: list[tuple[str, object]] = json.loads(request.body, object_pairs_hook=list)
    names = [name for name, _ in pairs]
    assert names.count("model") == 1
    assert dict(pairs)["model"] == model
    assert request.json.get("stream", False) is streams
    # A stream flag that is there twice may stay so only if every reader sees the same.
    assert {value for name, value in pairs if name == "stream"} <= {streams}


@pytest.mark.parametrize(
    "body", [b'{"MODEL":"alpha/m1",%b}', b'{"model\\u0000":"alpha/m1",%b}', b'{" model":"alpha/m1",%b}']
)
def test_be_05_only_model_is_model(gateway: Gateway, body: bytes) -> None:
    answer = gateway.whole("POST", CHAT, body % USER, client_headers())
    assert (answer.status, answer.json()["error"]["param"]) == (400, "model")


@pytest.mark.parametrize("name", ["Model", "MODEL", "Stream"])
def test_be_05_another_spelling_beside_it_is_refused(gateway: Gateway, upstreams: Upstreams, name: str) -> None:
    body = b'{"model":"alpha/be05-spelt","%b":"x",%b}' % (name.encode(), USER)
    answer = gateway.whole("POST", CHAT, body, client_headers())
    assert (answer.status, answer.json()["error"]["param"]) == (400, name.lower())
    assert not upstreams.requests("alpha", model="be05-spelt")


def test_be_08_vectors_of_two_models_are_never_mixed(gateway: Gateway, upstreams: Upstreams) -> None:
    limited = error(429, "slow down", retry_after="1")
    upstreams.script("alpha", limited, model="emb-1")
    mixed = gateway.post(dumps({"model": "emb-mixed", "input": "x"}), "/v1/embeddings")
    assert (mixed.status, mixed.body) == (429, limited.steps[0])
    assert calls(upstreams, "beta/emb-2") == [0]
    same = gateway.post(dumps({"model": "emb-same", "input": "x"}), "/v1/embeddings")
    assert (same.status, same.headers["x-troy-model"], same.json()["model"]) == (200, "beta/emb-1", "emb-1")
    free = gateway.post(dumps({"model": "emb-free", "input": "x"}), "/v1/embeddings")
    assert (free.status, free.headers["x-troy-model"]) == (200, "beta/emb-2")
    assert {request.path for request in upstreams.requests("beta") if "emb" in request.model} == {"/beta/v1/embeddings"}


def test_be_08_accounts_of_one_model_rotate_freely(gateway: Gateway, upstreams: Upstreams) -> None:
    limited = error(429, "slow down", retry_after="1")
    upstreams.script("alpha", limited, HEALTHY, model="emb-3")
    answer = gateway.post(dumps({"model": "alpha/emb-3", "input": "x"}), "/v1/embeddings")
    assert (answer.status, answer.headers["x-troy-account"]) == (200, "B")
