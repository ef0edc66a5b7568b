"""Text completions and embeddings through the walk: what is sent, what is an answer, what usage is told and kept."""

from __future__ import annotations

import base64
import json

import pytest

from tests.fakes import Reply
from tests.proxy.rig import DONE, Rig, answer, combo, event, provider, refusal, stream, usage
from troyproxy.accounting.usage import Usage
from troyproxy.errors import AllUnavailable
from troyproxy.proxy.call import Call

pytestmark = pytest.mark.anyio

TEXT = "/v1/completions"
VECTORS = "/v1/embeddings"
DONE_TEXT = {
    "object": "text_completion",
    "choices": [{"index": 0, "text": "", "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3},
}
VECTOR = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
    "usage": {"prompt_tokens": 2, "total_tokens": 2},
}


def piece(text: str, finish: str | None = None, index: int = 0) -> bytes:
    """One event of a text completion."""
    return event({"object": "text_completion", "choices": [{"index": index, "text": text, "finish_reason": finish}]})


def asked(rig: Rig, model: str, route: str, **fields: object) -> Call:
    """Return a call without messages."""
    call = rig.call(model, route=route, **fields)  # type: ignore[arg-type]  # fields of the payload
    del call.payload["messages"]
    call.body = json.dumps(call.payload).encode()
    return call


# --- text completions ---


@pytest.mark.parametrize("prompt", ["hi", ["hi", "there"], [1, 2, 3], [[1, 2], [3]], None])
async def test_a_prompt_goes_on_as_it_is(rig: Rig, prompt: object) -> None:
    rig.script(alpha=answer(DONE_TEXT))
    served = await rig.ask(call=asked(rig, "alpha/m1", TEXT, prompt=prompt, n=2, echo=True))
    (request,) = rig.upstream.requests
    sent = {"model": "m1", "prompt": prompt, "n": 2, "echo": True}
    assert (request.path, json.loads(request.body), served.exchange.status) == ("/completions", sent, 200)


async def test_a_finished_text_may_be_empty(rig: Rig) -> None:
    rig.script(alpha=answer(DONE_TEXT))
    served = await rig.ask(call=asked(rig, "two", TEXT, prompt="hi"))
    assert (served.exchange.json(), served.row.usage) == (DONE_TEXT, Usage(3, 0))


async def test_a_choice_without_text_is_no_completion(rig: Rig) -> None:
    rig.script(alpha=answer({"choices": [{"index": 0, "finish_reason": "stop"}]}), beta=answer(DONE_TEXT))
    assert (await rig.ask(call=asked(rig, "two", TEXT, prompt="hi"))).outcomes == ["transient", "ok"]


async def test_a_stream_of_text_is_asked_for_usage(rig: Rig) -> None:
    rig.script(alpha=stream(piece("a"), piece("", "stop"), usage(), DONE))
    served = await rig.ask(call=asked(rig, "two", TEXT, prompt="hi", stream=True))
    assert json.loads(rig.upstream.requests[0].body)["stream_options"] == {"include_usage": True}
    assert served.row.usage == Usage(3, 2)


async def test_a_stream_of_text_commits_at_its_first_text(rig: Rig) -> None:
    rig.script(
        alpha=stream(piece(""), event({"error": {"message": "busy"}})), beta=stream(piece("b"), piece("", "stop"), DONE)
    )
    served = await rig.ask(call=asked(rig, "two", TEXT, prompt="hi", stream=True))
    assert (served.exchange.body, served.outcomes) == (piece("b") + piece("", "stop") + DONE, ["transient", "ok"])


async def test_a_stream_of_text_ends_when_every_prompt_is_answered(rig: Rig) -> None:
    body = (piece("a"), piece("b", index=1), piece("", "stop"), piece("", "stop", index=1))
    rig.script(alpha=stream(*body))
    served = await rig.ask(call=asked(rig, "two", TEXT, prompt=["x", "y"], stream=True))
    assert served.exchange.body == b"".join(body) + DONE


# --- embeddings ---


@pytest.mark.parametrize("given", ["hi", ["hi", "there"], [1, 2, 3], [[1, 2], [3]]])
async def test_an_input_goes_on_as_it_is(rig: Rig, given: object) -> None:
    rig.script(alpha=answer(VECTOR))
    call = asked(rig, "alpha/m1", VECTORS, input=given, dimensions=256, encoding_format="base64", stream=True)
    served = await rig.ask(call=call)
    (request,) = rig.upstream.requests
    sent = {"model": "m1", "input": given, "dimensions": 256, "encoding_format": "base64", "stream": True}
    assert (request.path, json.loads(request.body)) == ("/embeddings", sent)
    assert (served.exchange.header("content-type"), served.row.usage) == ("application/json", Usage(2, 0))


async def test_packed_vectors_pass_as_they_are(rig: Rig) -> None:
    packed = base64.b64encode(b"\x00\x00\x80?").decode()
    body = b'{ "data":[{"embedding":"%b","index":0}] }' % packed.encode()
    rig.script(alpha=answer(body))
    served = await rig.ask(call=asked(rig, "alpha/m1", VECTORS, input="hi"))
    assert (served.exchange.body, served.row.usage) == (body, Usage(1, 0, estimated=True))


@pytest.mark.parametrize("body", [{}, {"data": []}, {"data": ["x"]}, {"object": "list"}, {"error": {"message": "x"}}])
async def test_what_is_no_list_of_vectors_goes_on(rig: Rig, body: object) -> None:
    rig.use(provider("alpha", "e"), provider("beta", "e"), combo("vec", "alpha/e", "beta/e"))
    rig.script(alpha=answer(body), beta=answer(VECTOR))
    assert (await rig.ask(call=asked(rig, "vec", VECTORS, input="x"))).outcomes == ["transient", "ok"]


async def test_vectors_move_between_accounts_and_providers_of_one_model(rig: Rig) -> None:
    rig.use(
        provider("alpha", "e", accounts="AB"),
        provider("beta", "v/e", "f"),
        combo("vec", "alpha/e", "beta/f", "beta/v/e"),
    )
    rig.script(alpha=[refusal(429), refusal(429)], beta=answer(VECTOR))
    served = await rig.ask(call=asked(rig, "vec", VECTORS, input="x"))
    assert served.tried == ["alpha#A", "alpha#B", "beta#A"]
    assert (served.exchange.header("x-troy-model"), served.exchange.header("x-troy-skipped")) == (
        "beta/v/e",
        "beta/f=mixed-embeddings",
    )


async def test_vectors_wait_for_their_model_while_it_is_locked(rig: Rig) -> None:
    rig.use(provider("alpha", "e"), provider("beta", "f"), combo("vec", "alpha/e", "beta/f"))
    rig.script(alpha=refusal(429, retry_after="30"))
    first = await rig.ask(call=asked(rig, "vec", VECTORS, input="x"))
    call = asked(rig, "vec", VECTORS, input="x")
    with pytest.raises(AllUnavailable) as caught:
        rig.planner.plan(call)
    assert (first.exchange.status, caught.value.http_status, rig.upstream.asked) == (429, 503, ["alpha"])
    assert call.ledger.skips == "alpha/e=cooldown,beta/f=mixed-embeddings"


async def test_vectors_of_several_models_come_where_the_combo_allows_it(rig: Rig) -> None:
    rig.use(
        provider("alpha", "e"), provider("beta", "f"), combo("vec", "alpha/e", "beta/f", allow_mixed_embeddings=True)
    )
    rig.script(alpha=Reply(500), beta=answer(VECTOR))
    served = await rig.ask(call=asked(rig, "vec", VECTORS, input="x"))
    assert served.exchange.header("x-troy-model") == "beta/f"
