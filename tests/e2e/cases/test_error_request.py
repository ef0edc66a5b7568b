"""Field cases EC-01, EC-02, EC-05, EC-10 and EC-14: errors that the request or the model causes lock no account."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cases.house import calls, circuit, combo, keys_used, locks, provider, streamed, text_of
from tests.e2e.cases.reads import DONE, LONG_PROMPT, OK, said
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.upstreams import HEALTHY, Pause, Reply, Upstreams, error, stream, whole

TOO_LONG: Final[dict[str, Reply]] = {
    "OpenAI": whole(LONG_PROMPT, 400),
    "Anthropic": whole(
        b'{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 250001 tokens"}}', 400
    ),
    "vLLM": error(400, "This model's maximum context length is 128000 tokens. However, you requested 250001 tokens."),
    "413": whole(LONG_PROMPT, 413),
    "Google": error(400, "The input token count (250001) exceeds the maximum number of tokens allowed (128000)."),
    "with a hint": whole(LONG_PROMPT, 400, retry_after="60"),
}
DEAD_MODEL: Final[dict[str, Reply]] = {
    "404": whole(b'{"error":{"code":"model_not_found","message":"no such model"}}', 404),
    "410": whole(b'{"error":{"message":"model retired"}}', 410),
    "400": whole(
        b'{"error":{"type":"invalid_request_error","message":"model m1 is not supported","param":"model"}}', 400
    ),
    "401": whole(b'{"error":{"type":"ModelError","message":"model not available"}}', 401),
    "403": whole(b'{"error":{"code":"model_not_found","message":"you have no access to this model"}}', 403),
}
TOO_LARGE: Final[dict[str, Reply]] = {
    "413": whole(
        b'{"error":{"message":"request too large for tokens per minute limit","type":"tokens",'
        b'"code":"rate_limit_exceeded"}}',
        413,
        retry_after="60",
    ),
    "422": whole(b'{"error":{"message":"too many requests in this list","type":"tokens"}}', 422, retry_after="60"),
}
FILTERED: Final[dict[str, Reply]] = {
    "Azure": whole(
        b'{"error":{"message":"filtered","code":"content_filter",'
        b'"innererror":{"code":"ResponsibleAIPolicyViolation"}}}',
        400,
    ),
    "OpenAI": whole(b'{"error":{"message":"flagged","code":"content_policy_violation"}}', 400),
    "inner code alone": whole(
        b'{"error":{"message":"no","innererror":{"code":"ResponsibleAIPolicyViolation"}}}', 400, retry_after="60"
    ),
}
IN_STREAM: Final = (b'data: {"error":{"message":"filtered","code":"content_filter"}}\n\n', DONE)
LATE_400: Final = Reply(
    framing="raw",
    steps=(
        Pause(0.3),
        b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
        b"content-length: %d\r\n\r\n%b" % (len(LONG_PROMPT), LONG_PROMPT),
    ),
)
STATUSES: Final = (400, 404, 405, 406, 408, 409, 413, 418, 422, 425, 429, 451, 500, 501, 503, 504, 520, 529, 599)
LARGE: Final = {"context": 1_000_000}


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    long = [f"ec01-{at}" for at in range(len(TOO_LONG))]
    models = {"alpha": {m: {"context": 128_000} for m in (*long, "ec01-small")}, "beta": dict.fromkeys(long, LARGE)}
    models["beta"]["ec01-small"] = {"context": 128_000}
    dead, large = ([f"{case}-{at}" for at in range(5)] for case in ("ec02", "ec05"))
    pairs = [*long, *dead, *large, "ec01-small", *(f"ec10-{at}" for at in range(len(FILTERED))), "ec10-stream"]
    config = {
        "providers": {name: provider(upstreams, name, "AB", models=models[name]) for name in ("alpha", "beta")},
        "combos": {f"c-{model}": combo(f"alpha/{model}", f"beta/{model}") for model in pairs},
    }
    with run_gateway(folder, config) as running:
        yield running


def body_of(reply: Reply) -> bytes:
    """Return the body of a whole answer."""
    (body,) = reply.steps
    assert isinstance(body, bytes)
    return body


@pytest.mark.parametrize("vendor", TOO_LONG)
def test_ec_01_a_prompt_that_is_too_long_is_one_call_and_locks_nothing(
    gateway: Gateway, upstreams: Upstreams, vendor: str
) -> None:
    model, reply = f"ec01-{list(TOO_LONG).index(vendor)}", TOO_LONG[vendor]
    upstreams.script("alpha", reply, HEALTHY, reply, model=model)
    first = gateway.post(chat(f"alpha/{model}", "long"))
    assert (first.status, first.body, "retry-after" in first.headers) == (reply.status, body_of(reply), False)
    assert first.headers["x-should-retry"] == "false"
    assert keys_used(upstreams, "alpha", model) == ["A"]
    assert gateway.post(chat(f"alpha/{model}")).status == 200
    third = gateway.post(chat(f"c-{model}", "long"))
    assert third.headers["x-troy-trail"] == f"alpha/{model}#A=context,beta/{model}#A=ok"
    assert not locks(gateway, "alpha", model)
    assert circuit(gateway, "alpha", model) == "closed"


def test_ec_01_a_member_whose_window_is_no_larger_is_not_asked(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", TOO_LONG["OpenAI"], model="ec01-small")
    answer = gateway.post(chat("c-ec01-small", "long"))
    assert (answer.status, answer.body) == (400, LONG_PROMPT)
    assert calls(upstreams, "alpha/ec01-small", "beta/ec01-small") == [1, 0]


@pytest.mark.parametrize("kind", DEAD_MODEL)
def test_ec_02_a_dead_model_benches_itself_and_nothing_else(gateway: Gateway, upstreams: Upstreams, kind: str) -> None:
    model, reply = f"ec02-{list(DEAD_MODEL).index(kind)}", DEAD_MODEL[kind]
    upstreams.script("alpha", reply, model=model)
    assert gateway.post(chat(f"c-{model}")).headers["x-troy-model"] == f"beta/{model}"
    assert gateway.post(chat(f"c-{model}")).headers["x-troy-model"] == f"beta/{model}"
    assert keys_used(upstreams, "alpha", model) == ["A"]
    assert gateway.post(chat("alpha/ec02-other")).headers["x-troy-account"] == "A"
    alone = gateway.post(chat(f"alpha/{model}"))
    assert (alone.status, alone.body) == (reply.status, body_of(reply))
    assert {lock["account"] for lock in locks(gateway, "alpha", model)} == {"*"}
    assert circuit(gateway, "alpha", model) == "closed"


@pytest.mark.parametrize("kind", TOO_LARGE)
def test_ec_05_what_is_too_large_for_one_provider_goes_to_the_next(
    gateway: Gateway, upstreams: Upstreams, kind: str
) -> None:
    model, reply = f"ec05-{list(TOO_LARGE).index(kind)}", TOO_LARGE[kind]
    upstreams.script("alpha", reply, model=model)
    assert gateway.post(chat(f"c-{model}")).headers["x-troy-trail"] == f"alpha/{model}#A=member,beta/{model}#A=ok"
    alone = gateway.post(chat(f"alpha/{model}"))
    assert (alone.status, alone.body, "retry-after" in alone.headers) == (reply.status, body_of(reply), False)
    assert keys_used(upstreams, "alpha", model) == ["A", "A"]
    assert not locks(gateway, "alpha", model)


@pytest.mark.parametrize("vendor", FILTERED)
def test_ec_10_a_filtered_prompt_is_not_shopped_around_and_hurts_nobody_else(
    gateway: Gateway, upstreams: Upstreams, vendor: str
) -> None:
    model, reply = f"ec10-{list(FILTERED).index(vendor)}", FILTERED[vendor]
    upstreams.script("alpha", reply, HEALTHY, reply, model=model)
    first = gateway.post(chat(f"alpha/{model}", "flagged"))
    assert (first.status, first.body) == (400, body_of(reply))
    assert gateway.post(chat(f"alpha/{model}")).status == 200
    third = gateway.post(chat(f"c-{model}", "flagged"))
    assert (third.status, third.body, third.headers["x-should-retry"]) == (400, body_of(reply), "false")
    assert calls(upstreams, f"alpha/{model}", f"beta/{model}") == [3, 0]
    assert not locks(gateway, "alpha", model)


def test_ec_10_a_filter_that_speaks_in_the_stream_is_told_as_an_error(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", stream(*IN_STREAM), model="ec10-stream")
    answer = streamed(gateway, "c-ec10-stream")
    assert answer.status == 502
    assert answer.json()["error"]["message"] == "filtered"
    assert answer.headers["x-should-retry"] == "false"
    assert calls(upstreams, "alpha/ec10-stream", "beta/ec10-stream") == [1, 0]
    assert not locks(gateway, "alpha", "ec10-stream")


def test_ec_10_a_finish_reason_is_an_answer(gateway: Gateway, upstreams: Upstreams) -> None:
    reads = (OK, said(b"", finish=b'"content_filter"'), DONE)
    upstreams.script("alpha", stream(*reads), model="ec10-finish")
    answer = streamed(gateway, "alpha/ec10-finish")
    assert (answer.body, text_of(answer.body)) == (b"".join(reads), "ok")
    cut = b'{"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"content_filter"}]}'
    upstreams.script("alpha", whole(cut), model="ec10-whole")
    assert gateway.post(chat("alpha/ec10-whole")).body == cut
    assert not locks(gateway, "alpha", "ec10-whole")


def test_ec_14_a_stream_that_is_refused_has_the_status_of_the_refusal(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", LATE_400, model="ec14")
    answer = streamed(gateway, "alpha/ec14")
    assert (answer.status, answer.headers["content-type"]) == (400, "application/json")
    assert answer.body == LONG_PROMPT


@pytest.mark.parametrize("status", STATUSES)
def test_ec_14_every_status_of_a_refused_stream_is_told(gateway: Gateway, upstreams: Upstreams, status: int) -> None:
    reply = error(status, "scripted refusal", code=f"code_{status}")
    upstreams.script("alpha", reply, model=f"ec14-{status}")
    answer = streamed(gateway, f"alpha/ec14-{status}")
    assert (answer.status, answer.headers["content-type"]) == (status, "application/json")
    assert answer.body == body_of(reply)
