"""Field cases EC-04, EC-07, EC-08 and EC-11: what the upstream is to blame for, and how an exhausted chain is told."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.cases.house import (
    NO_BUDGET,
    calls,
    circuit,
    combo,
    failed,
    locks,
    provider,
    secret,
    together,
)
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.shapes import completion
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, Reply, Upstreams, error, whole

HTML: Final = (("content-type", "text/html"),)
BROKE: Final[dict[str, Reply]] = {
    "402": whole(b'{"error":{"message":"payment required","code":402}}', 402),
    "429 insufficient_quota": error(429, "You exceeded your current quota", "insufficient_quota"),
    "429 out of credits": error(429, "rejected", anthropic_ratelimit_unified_overage_disabled_reason="out_of_credits"),
    "403 insufficient_credits": error(403, "top up", "insufficient_credits"),
}
OVERLOADED: Final = whole(b'{"type":"error","error":{"type":"overloaded_error","message":"overloaded"}}', 529)
GARBAGE: Final[dict[str, Reply]] = {
    "nothing": whole(b""),
    "HTML": Reply(200, HTML, (b"<html>..</html>",), "length"),
    "an empty object": whole(b"{}"),
    "an error": whole(b'{"error":{"message":"x"}}'),
    "no choices": whole(b'{"choices":[]}'),
    "JSON cut short": whole(completion("cut")[:-9]),
    "a list": whole(b"[1]"),
    "a string": whole(b'"ok"'),
    "null": whole(b"null"),
    "an error that is a string": whole(b'{"error":"x"}'),
}
EMPTY: Final = b'{"choices":[{"message":{"role":"assistant","content":null},"finish_reason":"stop"}]}'
SCHEMA: Final = b'{"error":{"message":"Invalid schema for response_format","type":"invalid_request_error"}}'
RATE: Final = error(429, "slow down", retry_after="30")
SHAPE: Final = {"message", "type", "param", "code"}


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    pairs = [*(f"ec08-{at}" for at in range(len(GARBAGE))), "ec08-empty"]
    narrow = {"ec11-tools": {"tools": False}}
    providers: dict[str, Any] = {
        **{f"ec04-{at}": provider(upstreams, f"ec04-{at}", "AB") for at in range(len(BROKE))},
        # Locks of credentials hold a whole account, so each mixture has providers of its own.
        **{f"{name}-{at}": provider(upstreams, f"{name}-{at}", "A") for name in ("first", "last") for at in range(4)},
        "alpha": provider(upstreams, "alpha", "AB", models=narrow),
        "beta": provider(upstreams, "beta", "A", models=narrow),
    }
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        closed = {"base_url": f"http://127.0.0.1:{bound.getsockname()[1]}/v1", "auth": "none"}
        providers |= {"gone": closed, "lost": closed}
        config = {
            "providers": providers,
            "combos": {
                **{f"c-{model}": combo(f"alpha/{model}", f"beta/{model}") for model in pairs},
                **{f"mixed-{at}": combo(f"first-{at}/m1", f"last-{at}/m2") for at in range(4)},
                "narrow": combo("alpha/ec11-tools", "beta/ec11-tools"),
                "nowhere": combo("gone/m1", "lost/m2"),
                "open": combo("alpha/ec11-open", "beta/ec11-open"),
            },
        }
        with run_gateway(folder, config, **NO_BUDGET) as running:
            yield running


@pytest.mark.parametrize("kind", BROKE)
def test_ec_04_an_account_without_money_is_left_alone_and_the_others_serve(
    gateway: Gateway, upstreams: Upstreams, kind: str
) -> None:
    name = f"ec04-{list(BROKE).index(kind)}"
    upstreams.script(name, BROKE[kind], key=secret(name, "A"))
    answers = [gateway.post(chat(f"{name}/m{number % 3}")) for number in range(20)]
    assert {(answer.status, answer.headers["x-troy-account"]) for answer in answers} == {(200, "B")}
    assert [request.key for request in upstreams.requests(name)].count(secret(name, "A")) == 1
    (lock,) = locks(gateway, name)
    assert (lock["account"], lock["model"], lock["class"]) == ("A", "*", "quota")
    assert failed(gateway, name, "m0")[0]["cooldown_s"] == 1800
    assert circuit(gateway, name, "m0") == "closed"


def test_ec_07_an_overload_of_a_moment_costs_a_hop_and_no_outage(gateway: Gateway, upstreams: Upstreams) -> None:
    for letter in "AB":
        upstreams.script("alpha", OVERLOADED, HEALTHY, key=secret("alpha", letter), model="ec07")
    answers = together(gateway, [chat("alpha/ec07")] * 20)
    flattened = [answer for answer in answers if answer.status != 200]
    assert len(flattened) <= 1
    assert all((answer.status, answer.body) == (529, OVERLOADED.steps[0]) for answer in flattened)
    events = failed(gateway, "alpha", "ec07", least=2)
    assert len(events) == 2
    assert all(4.5 <= event["cooldown_s"] <= 5.5 and event["soft"] for event in events)
    assert events[0]["cooldown_s"] != events[1]["cooldown_s"]
    assert gateway.post(chat("alpha/ec07")).status == 200


@pytest.mark.parametrize("status", [500, 501, 505, 520, 521, 522, 523, 524, 525, 526, 529, 530, 599])
def test_ec_07_an_unknown_5xx_is_told_as_it_is_and_counts_as_failed(
    gateway: Gateway, upstreams: Upstreams, status: int
) -> None:
    reply = error(status, "scripted")
    upstreams.script("alpha", reply, model=f"ec07-{status}")
    before = gateway.metric("requests_total", outcome="upstream_error")
    answer = gateway.post(chat(f"alpha/ec07-{status}"))
    assert (answer.status, answer.body) == (status, reply.steps[0])
    until(lambda: gateway.metric("requests_total", outcome="upstream_error") == before + 1)


@pytest.mark.parametrize("kind", GARBAGE)
def test_ec_08_garbage_under_a_200_is_a_failure(gateway: Gateway, upstreams: Upstreams, kind: str) -> None:
    model = f"ec08-{list(GARBAGE).index(kind)}"
    upstreams.script("alpha", GARBAGE[kind], model=model)
    answer = gateway.post(chat(f"c-{model}"))
    assert (answer.status, answer.headers["x-troy-model"]) == (200, f"beta/{model}")
    assert {event["error_class"] for event in failed(gateway, "alpha", model)} == {"transient"}
    alone = gateway.post(chat(f"alpha/{model}"))
    assert alone.status == 502
    assert set(alone.json()["error"]) >= SHAPE


def test_ec_08_no_words_but_a_finish_reason_is_an_answer(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("alpha", whole(EMPTY), model="ec08-empty")
    answer = gateway.post(chat("c-ec08-empty"))
    assert (answer.status, answer.body) == (200, EMPTY)
    assert not locks(gateway, "alpha", "ec08-empty")


def mixed(gateway: Gateway, upstreams: Upstreams, number: int, first: Reply, last: Reply) -> Any:  # noqa: ANN401
    """Return what a chain of these two answers comes to."""
    upstreams.script(f"first-{number}", first)
    upstreams.script(f"last-{number}", last)
    return gateway.post(chat(f"mixed-{number}"))


def test_ec_11_a_member_whose_key_is_refused_is_not_the_clients_401(gateway: Gateway, upstreams: Upstreams) -> None:
    answer = mixed(gateway, upstreams, 0, RATE, error(401, "bad key"))
    assert (answer.status, answer.code, answer.headers["x-troy-upstream-status"]) == (502, "upstream_auth", "401")
    assert 1 <= int(answer.headers["retry-after"]) <= 30


def test_ec_11_a_request_that_is_wrong_is_told_so(gateway: Gateway, upstreams: Upstreams) -> None:
    answer = mixed(gateway, upstreams, 1, error(500), whole(SCHEMA, 400))
    assert (answer.status, answer.body, "retry-after" in answer.headers) == (400, SCHEMA, False)
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize(("number", "last"), [(2, error(500, "boom")), (3, RATE)])
def test_ec_11_the_last_answer_is_told_verbatim(
    gateway: Gateway, upstreams: Upstreams, number: int, last: Reply
) -> None:
    answer = mixed(gateway, upstreams, number, error(503, "first"), last)
    assert (answer.status, answer.body) == (last.status, last.steps[0])
    # A soft lock bars nobody, and a hard one of the last member leaves the first: nothing is to be waited for.
    assert "retry-after" not in answer.headers


def test_ec_11_nobody_who_could_is_503_with_the_reasons(gateway: Gateway, upstreams: Upstreams) -> None:
    answer = gateway.post(chat("narrow", tools=[{"type": "function", "function": {"name": "f"}}]))
    assert (answer.status, answer.code) == (503, "no_eligible_member")
    assert [skip["reason"] for skip in answer.json()["error"]["details"]] == ["no-tools", "no-tools"]
    assert "retry-after" not in answer.headers
    assert calls(upstreams, "alpha/ec11-tools", "beta/ec11-tools") == [0, 0]


def test_ec_11_nobody_who_may_is_503_with_the_moment(gateway: Gateway, upstreams: Upstreams) -> None:
    for name in ("alpha", "beta"):
        upstreams.script(name, error(500), model="ec11-open")
    until(lambda: gateway.post(chat("open")).status == 503)
    before = calls(upstreams, "alpha/ec11-open", "beta/ec11-open")
    answer = gateway.post(chat("open"))
    assert (answer.status, answer.code) == (503, "all_unavailable")
    assert 1 <= int(answer.headers["retry-after"]) <= 30
    assert [skip["reason"] for skip in answer.json()["error"]["details"]] == ["circuit", "circuit"]
    assert calls(upstreams, "alpha/ec11-open", "beta/ec11-open") == before


def test_ec_11_nobody_who_is_there_is_502(gateway: Gateway) -> None:
    answer = gateway.post(chat("nowhere"))
    assert (answer.status, answer.code) == (502, "upstream_unreachable")
    assert json.loads(answer.body)["error"].keys() >= SHAPE
