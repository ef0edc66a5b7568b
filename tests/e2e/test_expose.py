"""``TROY_EXPOSE=id``: whatever the answer, a client sees the id, the attempts and when to retry, and no name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.client import Response
from tests.e2e.gateway import CHAT, Gateway, chat, run_gateway
from tests.e2e.upstreams import RESET, Upstreams
from tests.e2e.upstreams import error as failing

FIRST, SECOND, ACCOUNT = "hiddenone", "hiddentwo", "hiddenaccount"
SHOWN: Final = {"x-troy-request-id", "x-troy-attempts"}
TOOLS: Final = [{"type": "function", "function": {"name": "f"}}]


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    accounts = [{"name": ACCOUNT, "api_key": "sk-up-0123456789"}]
    first = {"base_url": upstreams.base_url("first"), "accounts": accounts}
    bare = {"tools": False, "context": 50}
    second = {"base_url": upstreams.base_url("second"), "accounts": accounts, "models": {"m2": {}, "bare": bare}}
    combos: dict[str, Any] = {"bare": {"members": [f"{SECOND}/bare"]}}
    for name in ("fine", "moves", "spent", "reset", "locked", "upset", "off"):
        combos[name] = {"members": [f"{FIRST}/{name}", f"{SECOND}/{name}"]}
    config = {"providers": {FIRST: first, SECOND: second}, "combos": combos}
    with run_gateway(folder, config, TROY_EXPOSE="id", TROY_RETRY_BUDGET="0") as running:
        yield running


def assert_discreet(answer: Response, *, attempts: int) -> None:
    """It has the id and the attempts, and neither its head nor its body names anybody."""
    assert {name for name in answer.headers if name.startswith("x-troy-")} == SHOWN
    assert answer.headers["x-troy-attempts"] == str(attempts)
    said = (str(answer.headers) + answer.body.decode()).lower()
    assert [name for name in (FIRST, SECOND, ACCOUNT, "cooldown", "circuit") if name in said] == []


@pytest.mark.parametrize("path", [CHAT, "/v1/completions", "/v1/embeddings"])
def test_a_success(gateway: Gateway, path: str) -> None:
    answer = gateway.post({**chat("fine"), "prompt": "hi", "input": "hi"}, path)
    assert answer.status == 200
    assert_discreet(answer, attempts=1)


def test_a_pass_through(gateway: Gateway) -> None:
    answer = gateway.post({"model": "fine", "input": "hi"}, "/v1/moderations")
    assert_discreet(answer, attempts=1)


def test_a_stream_that_moved_on(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("first", failing(500), model="moves")
    with closing(gateway.stream(chat("moves"))) as stream:
        answer = stream.whole()
    assert answer.status == 200
    assert_discreet(answer, attempts=2)


def test_an_upstreams_own_error_keeps_its_own_words_only(gateway: Gateway, upstreams: Upstreams) -> None:
    for name in ("first", "second"):
        upstreams.script(name, failing(500), model="spent")
    answer = gateway.post(chat("spent"))
    assert answer.status == 500
    assert_discreet(answer, attempts=2)


def test_an_error_of_ours(gateway: Gateway, upstreams: Upstreams) -> None:
    for name in ("first", "second"):
        upstreams.script(name, RESET, model="reset")
    answer = gateway.post(chat("reset"))
    assert (answer.status, answer.code) == (502, "upstream_unreachable")
    assert_discreet(answer, attempts=2)


def test_a_refused_credential(gateway: Gateway, upstreams: Upstreams) -> None:
    for name in ("first", "second"):
        upstreams.script(name, failing(401), model="off")
    answer = gateway.post(chat("off"))
    assert (answer.status, answer.code) == (502, "upstream_auth")
    assert_discreet(answer, attempts=2)
    gateway.admin("POST", "/api/cooldowns/clear", {})


@pytest.mark.parametrize("streams", [False, True])
def test_a_refusal_because_all_rest(gateway: Gateway, upstreams: Upstreams, streams: bool) -> None:
    for name in ("first", "second"):
        upstreams.script(name, failing(429, retry_after="60"), model="locked")
    gateway.post(chat("locked"))
    answer = gateway.post(chat("locked", stream=streams))
    assert (answer.status, answer.code, "retry-after" in answer.headers) == (429, "rate_limited", True)
    assert "details" not in answer.json()["error"]
    assert_discreet(answer, attempts=0)


def test_a_refusal_because_nobody_can_says_what_cannot_be_done(gateway: Gateway) -> None:
    answer = gateway.post(chat("bare", tools=TOOLS))
    assert (answer.status, answer.json()["error"]["message"]) == (
        503,
        "the model 'bare' cannot serve this request: no-tools",
    )
    assert_discreet(answer, attempts=0)


def test_a_prompt_that_is_too_long(gateway: Gateway) -> None:
    answer = gateway.post(chat("bare", "x" * 4000))
    assert (answer.code, "maximum context length is 50" in answer.json()["error"]["message"]) == (
        "context_length_exceeded",
        True,
    )
    assert_discreet(answer, attempts=0)


def test_a_name_that_is_none_gets_no_hints(gateway: Gateway) -> None:
    answer = gateway.post(chat("hiddenon/m"))
    assert (answer.status, answer.json()["error"]["message"]) == (404, "model 'hiddenon/m' not found")
    assert_discreet(answer, attempts=0)


def test_a_wrong_key_and_a_broken_body(gateway: Gateway) -> None:
    wrong = gateway.whole("POST", CHAT, b"{}", [("content-type", "application/json")])
    broken = gateway.post(b"{")
    assert (wrong.status, broken.status) == (401, 400)
    assert_discreet(wrong, attempts=0)
    assert_discreet(broken, attempts=0)


def test_a_stream_that_nobody_began(gateway: Gateway, upstreams: Upstreams) -> None:
    for name in ("first", "second"):
        upstreams.script(name, failing(503), model="upset")
    with closing(gateway.stream(chat("upset"))) as stream:
        answer = stream.whole()
    assert answer.status == 503
    assert_discreet(answer, attempts=2)


def test_the_operator_sees_it_all(gateway: Gateway) -> None:
    told = gateway.post(chat("fine")).headers["x-troy-request-id"]
    story = gateway.admin("GET", f"/api/requests/{told}").json()
    assert (story["provider"], story["account"]) == (FIRST, ACCOUNT)
