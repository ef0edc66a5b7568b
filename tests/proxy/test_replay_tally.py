from __future__ import annotations

import pytest

from tests.proxy.replaying import again, attempt, request
from tests.proxy.rig import Rig, combo, provider
from troyproxy.proxy.replay import tally
from troyproxy.proxy.replay.tally import Tally
from troyproxy.proxy.replay.trace import Target

SERVED = Target("alpha", "m1", "A")


def recorded(*requests: object) -> dict[str, object]:
    made = Tally()
    for one in requests:
        made.record(one)  # type: ignore[arg-type]  # requests
    return made.told()


def test_what_was_recorded_is_summed() -> None:
    told = recorded(
        request(attempt("alpha/m1#A"), served=SERVED, cost_usd=0.25, duration_ms=100.0),
        request(attempt("alpha/m1#A", "rate"), attempt("alpha/m1#A"), served=SERVED, duration_ms=300.0),
        request(attempt("alpha/m1#A", "rate")),
        request(attempt("alpha/m1#A", "request"), outcome="client_error"),
    )
    assert told == {
        "requests": 4,
        "succeeded": 2,
        "failed": 1,
        "success_rate": 2 / 3,
        "attempts": 5,
        "attempts_per_request": 1.25,
        "cost_usd": 0.25,
        "unpriced": 1,
        "latency_ms": {"p50": 100.0, "p95": 300.0},
        "outcomes": {"ok": 2, "upstream_error": 1, "client_error": 1},
        "members": {"alpha/m1": 2},
        "accounts": {"alpha/m1#A": 2},
    }


def test_nothing_has_no_rates() -> None:
    told = Tally().told()
    assert (told["success_rate"], told["attempts_per_request"]) == (None, None)


def test_simulated_requests_are_summed_with_where_their_outcomes_come_from() -> None:
    made = Tally()
    snapshot = Rig(provider("alpha", "m1"), combo("two", "alpha/m1")).snapshot
    asked = [request(attempt("alpha/m1#A")), request(name="b", model="nowhere/x"), request(name="c")]
    for one in again(asked, snapshot):
        made.simulate(one)
    assert made.told()["members"] == {"alpha/m1": 2}
    assert made.evidence() == {
        "outcomes_from": {"recorded": 1, "account": 0, "model": 1, "provider": 0, "default": 0},
        "unknown_models": {"nowhere/x": 1},
    }


def test_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "MOST_NAMES", 1)
    told = recorded(
        request(attempt("alpha/m1#A"), served=SERVED), request(attempt("b/m#A"), served=Target("b", "m", "A"))
    )
    assert told["members"] == {"alpha/m1": 1}
