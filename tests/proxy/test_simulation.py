from __future__ import annotations

import socket
from dataclasses import replace
from random import Random
from typing import Never

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.asgi import DISCONNECT, AfterSent
from tests.proxy import rig
from tests.proxy.replaying import Recorder, again, attempt, record, request, run, tried
from tests.proxy.rig import Rig, combo, model, provider
from troyproxy.accounting.usage import Usage
from troyproxy.catalog.models import Price
from troyproxy.ports import UpstreamFailed, UpstreamRequest
from troyproxy.proxy.replay.recording import Source
from troyproxy.proxy.replay.simulation import NoJournal, NoUpstream
from troyproxy.proxy.replay.trace import Target, TracedKey
from troyproxy.resilience.events import ProbeReturned
from troyproxy.routing.needs import Needs
from troyproxy.routing.strategies import STRATEGIES
from troyproxy.settings.values import Settings

PROVIDERS = (
    provider("alpha", "m1", "m3", accounts="ABC"),
    provider("beta", "m2", accounts="AB"),
    provider("gamma", "m4"),
)
MEMBERS = ("alpha/m1", "beta/m2", "gamma/m4")


def made(strategy: str = "fallback") -> Rig:
    found = Rig(*PROVIDERS, combo("two", *MEMBERS, strategy=strategy), combo("one", "alpha/m3"))
    found.exploration = Settings().auto_exploration
    return found


@pytest.mark.parametrize("strategy", [*STRATEGIES, "auto"])
def test_live_seeds_and_recorded_outcomes_lead_to_the_live_attempts(strategy: str) -> None:
    live = made(strategy)
    requests = record(live, Random(strategy), 150, "two", "two", "two", "one")
    simulated = again(requests, live.snapshot)
    assert [tried(one.attempts) for one in simulated] == [tried(one.attempts) for one in requests]
    assert [one.row.outcome for one in simulated] == [one.outcome for one in requests]
    assert sum(len(one.attempts) for one in requests) > 50


def test_models_that_drifted_then_drift_again() -> None:
    live = Rig(provider("alpha", "m1"), provider("beta", "m2"))
    leak = rig.refusal(400, "failed to call a function", code="tool_use_failed")
    recorder = Recorder(live, lambda asked: leak if asked.provider.id == "alpha" else rig.answer())

    async def drive() -> None:
        for _ in range(6):
            call = live.call("default", tools=[{"type": "function", "function": {"name": "f"}}])
            call.tool_turn = True
            await recorder.ask(call)

    run(drive)
    attempts = [tried(one.attempts) for one in recorder.requests]
    assert [len(each) for each in attempts] == [2, 2, 2, 1, 1, 1]
    assert [tried(one.attempts) for one in again(recorder.requests, live.snapshot)] == attempts


@given(seed=st.integers(0, 2**32))
@settings(max_examples=10)
def test_whatever_the_weather_the_attempts_are_the_live_ones(seed: int) -> None:
    live = made()
    requests = record(live, Random(seed), 60, "two", "one")
    simulated = again(requests, live.snapshot)
    assert [tried(one.attempts) for one in simulated] == [tried(one.attempts) for one in requests]
    assert all(set(one.sources) <= {Source.RECORDED} for one in simulated)


def test_another_policy_tries_other_members() -> None:
    live = made()
    requests = [request(attempt("alpha/m1#A", "transient"), attempt("beta/m2#A"), served=None)]
    other = Rig(*PROVIDERS, combo("two", "gamma/m4", "beta/m2"))
    [one] = again(requests, other.snapshot)
    assert tried(one.attempts) == [("gamma", "m4", "A", "ok")]
    assert one.sources == {Source.DEFAULT: 1}
    assert tried(again(requests, live.snapshot)[0].attempts)[-1] == ("beta", "m2", "A", "ok")


def test_breakers_of_the_policy_open() -> None:
    requests = [
        request(attempt("alpha/m1#A", "transient"), attempt("beta/m2#A"), at=1000.0 + 5 * n, name=f"r{n}")
        for n in range(6)
    ]
    snapshot = Rig(provider("alpha", "m1"), provider("beta", "m2"), combo("two", "alpha/m1", "beta/m2")).snapshot
    wary, blunt = Settings(breaker_failures=1), Settings(breaker_failures=50)
    assert [len(one.attempts) for one in again(requests, snapshot, wary)] == [2, 1, 1, 1, 1, 1]
    assert [len(one.attempts) for one in again(requests, snapshot, blunt)] == [2] * 6


def test_the_same_seed_draws_the_same_outcomes_and_another_does_not() -> None:
    past = [
        request(attempt("alpha/m1#A", "ok" if n % 2 else "transient"), at=1000.0 + n, name=f"p{n}", model="alpha/m1")
        for n in range(40)
    ]
    asked = [request(at=1100.0 + 60 * n, name=f"q{n}", model="alpha/m1") for n in range(30)]
    snapshot = Rig(provider("alpha", "m1")).snapshot

    def outcomes(seed: int) -> list[str]:
        return [one.row.outcome for one in again([*past, *asked], snapshot, seed=seed)[40:]]

    assert outcomes(1) == outcomes(1) != outcomes(2)


def test_time_is_virtual_and_requests_overlap() -> None:
    slow = attempt("alpha/m1#A", duration_ms=50_000.0)
    quick = request(attempt("beta/m2#A"), at=1001.0, name="quick", model="beta/m2")
    ended: list[str] = []
    first, second = again([request(slow, name="slow"), quick], made().snapshot, ended=ended)
    assert [round(one.row.duration_ms) for one in (first, second)] == [50_000, 100]
    assert ended == ["quick", "slow"]


def test_an_unknown_model_is_told_as_such() -> None:
    [one] = again([request(model="nowhere/x")], made().snapshot)
    assert one.unknown
    assert (one.row.outcome, one.row.status, one.attempts) == ("client_error", 404, ())


def test_a_client_that_left_leaves_again() -> None:
    live = made()
    recorder = Recorder(live, lambda _: rig.stream(rig.role(), rig.delta("x"), 5.0, rig.finish(), rig.DONE))

    async def drive() -> None:
        await recorder.ask(live.call("two", stream=True), client=[AfterSent(2), DISCONNECT])

    run(drive)
    [one] = again(recorder.requests, live.snapshot)
    assert one.row.outcome == recorder.requests[0].outcome == "cancelled"
    assert tried(one.attempts) == tried(recorder.requests[0].attempts)


def test_an_attempt_without_an_answer_waits_for_the_client_to_leave() -> None:
    gone = request(attempt("alpha/m1#A", "cancelled", status=None), outcome="cancelled", duration_ms=2_500.0)
    [one] = again([gone], made().snapshot)
    assert (one.row.outcome, one.row.status) == ("cancelled", 499)
    assert one.row.duration_ms == pytest.approx(2_500)


def test_a_refused_parameter_is_two_attempts_again() -> None:
    first = attempt("alpha/m1#A", "model", status=400)
    [one] = again([request(first, attempt("alpha/m1#A"))], made().snapshot)
    assert tried(one.attempts) == [("alpha", "m1", "A", "model"), ("alpha", "m1", "A", "ok")]


def test_a_request_that_was_wrong_is_wrong_everywhere() -> None:
    wrong = request(attempt("alpha/m1#A", "request", status=400), outcome="client_error")
    [one] = again([wrong], Rig(*PROVIDERS, combo("two", "gamma/m4", "beta/m2")).snapshot)
    assert tried(one.attempts) == [("gamma", "m4", "A", "request")]


def test_the_keys_globs_and_preference_count() -> None:
    asked = request(attempt("beta/m2#A"), model="default", key=TracedKey("k", "beta"))
    snapshot = Rig(*PROVIDERS).snapshot
    assert tried(again([asked], snapshot)[0].attempts) == [("beta", "m2", "A", "ok")]
    barred = replace(asked, model="alpha/m1", key=TracedKey("k", None, ("beta/*",)))
    assert again([barred], snapshot)[0].row.status == 403


def test_needs_count_without_the_text_that_had_them() -> None:
    small = provider("small", model("s", context=1000))
    snapshot = Rig(small, provider("large", model("l", context=100_000)), combo("two", "small/s", "large/l")).snapshot
    asked = request(needs=Needs(est_tokens=50_000))
    assert tried(again([asked], snapshot)[0].attempts) == [("large", "l", "A", "ok")]


def test_cost_is_reckoned_by_the_prices_of_the_policy() -> None:
    dear = replace(model("m1"), price=Price(input=1.0, output=2.0))
    snapshot = Rig(provider("alpha", dear), combo("two", "alpha/m1")).snapshot
    asked = request(attempt("alpha/m1#A"), usage=Usage(1_000_000, 500_000))
    assert again([asked], snapshot)[0].row.cost_usd == pytest.approx(2.0)


@pytest.mark.parametrize("route", ["/v1/embeddings", "/v1/completions", "/v1/moderations", "/v1/audio/{path}"])
def test_every_route_is_served(route: str) -> None:
    [one] = again([request(attempt("alpha/m1#A"), route=route, model="alpha/m1")], made().snapshot)
    assert (one.row.outcome, tried(one.attempts)) == ("ok", [("alpha", "m1", "A", "ok")])


def test_what_is_passed_through_may_break_off_again() -> None:
    cut = attempt("alpha/m1#A", "transient", reason="reset: transient", status=None)
    asked = request(
        cut, route="/v1/audio/{path}", model="alpha/m1", outcome="truncated", served=Target("alpha", "m1", "A")
    )
    [one] = again([asked], made().snapshot)
    assert (one.row.outcome, tried(one.attempts)) == ("truncated", [("alpha", "m1", "A", "transient")])


def test_a_long_stream_does_not_count_as_silence() -> None:
    long = attempt("alpha/m1#A", duration_ms=250_000.0)
    told = request(long, stream=True, served=Target("alpha", "m1", "A"), first_token_ms=200.0)
    [one] = again([told], made().snapshot)
    assert (one.row.outcome, round(one.row.duration_ms), round(one.row.first_token_ms or 0)) == ("ok", 250_000, 200)


def test_a_deadline_of_the_policy_ends_what_takes_longer() -> None:
    slow = request(attempt("alpha/m1#A", duration_ms=20_000.0), attempt("beta/m2#A"))
    [one] = again([slow], made().snapshot, Settings(upstream_timeout_ms=5_000))
    assert tried(one.attempts)[0] == ("alpha", "m1", "A", "transient")
    assert one.attempts[0].duration_ms == pytest.approx(5_000)


def test_a_request_without_a_seed_gets_one_of_the_simulation() -> None:
    members = tuple(f"alpha/x{n}" for n in range(8))
    snapshot = Rig(provider("alpha"), combo("two", *members, strategy="random")).snapshot
    asked = [request(at=1000.0 + 10 * n, name=f"r{n}", seed=None) for n in range(10)]
    first, other = ([one.row.model for one in again(asked, snapshot, seed=seed)] for seed in (1, 2))
    assert first == [one.row.model for one in again(asked, snapshot, seed=1)]
    assert first != other


def test_no_socket_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Never:
        raise AssertionError("a simulation opens no socket")

    for method in ("connect", "connect_ex", "bind", "listen", "sendto"):
        monkeypatch.setattr(socket.socket, method, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    [one] = again([request(attempt("alpha/m1#A"))], made().snapshot)
    assert one.row.outcome == "ok"


@pytest.mark.anyio
async def test_the_journal_of_a_simulation_is_empty() -> None:
    journal = NoJournal()
    journal.append(ProbeReturned(1.0, "alpha", "m1", 1.0))
    assert await journal.replay() == ()


@pytest.mark.anyio
async def test_the_policys_own_upstream_reaches_nobody() -> None:
    upstream = NoUpstream()
    asked = UpstreamRequest(PROVIDERS[0], "POST", "/chat/completions", ())
    with pytest.raises(UpstreamFailed, match="not called in a simulation"):
        await upstream.send(asked)
    await upstream.aclose()
