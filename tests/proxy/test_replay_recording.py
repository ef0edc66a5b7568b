from __future__ import annotations

from random import Random

import pytest

from tests.proxy.replaying import attempt, request
from troyproxy.proxy.replay import recording
from troyproxy.proxy.replay.recording import DEFAULT_MS, Recording, Source, samples_of
from troyproxy.proxy.replay.trace import Target, TracedRequest

PLACE = ("alpha", "m1", "A")
RNG = Random(1)


def filled(*requests: TracedRequest) -> Recording:
    made = Recording()
    for one in requests:
        made.add(one)
    return made


def at(moment: float, where: str = "alpha/m1#A", outcome: str = "ok", **fields: object) -> TracedRequest:
    return request(attempt(where, outcome, **fields), at=moment)


def test_the_accounts_own_attempts_around_the_moment_come_first() -> None:
    near = [at(1000.0 + n) for n in range(5)]
    found, source = filled(*near, at(1010.0, "alpha/m1#B", "auth")).draw(PLACE, 1000.0, RNG)
    assert (found.attempt.account, source) == ("A", Source.ACCOUNT)


def test_too_few_of_the_account_are_not_believed() -> None:
    found, source = filled(at(1000.0, "alpha/m1#B", "auth"), at(1001.0)).draw(PLACE, 1000.0, Random(0))
    assert source is Source.MODEL
    assert found.attempt.account in {"A", "B"}


def test_far_attempts_of_the_model_count_before_near_ones_of_the_provider() -> None:
    found, source = filled(at(1000.0), at(90_000.0, "alpha/m3#A")).draw(PLACE, 90_000.0, RNG)
    assert (found.attempt.model, source) == ("m1", Source.MODEL)


def test_only_what_lies_near_is_drawn_while_there_is_any() -> None:
    made = filled(*[at(1000.0 + n, outcome="transient") for n in range(50)], at(50_000.0))
    assert {made.draw(PLACE, 50_000.0, Random(n))[0].attempt.outcome for n in range(20)} == {"ok"}


def test_a_provider_stands_for_its_unknown_model() -> None:
    _, source = filled(at(1000.0)).draw(("alpha", "m9", "A"), 1000.0, RNG)
    assert source is Source.PROVIDER


def test_an_unknown_provider_serves_after_the_median_time() -> None:
    made = filled(*[at(1000.0 + n, duration_ms=ms) for n, ms in enumerate((10.0, 70.0, 900.0))])
    found, source = made.draw(("new", "m", "A"), 1000.0, RNG)
    assert (found.attempt.outcome, found.attempt.duration_ms, source) == ("ok", 70.0, Source.DEFAULT)


def test_without_any_answer_the_default_takes_a_second() -> None:
    found, _ = filled(at(1000.0, outcome="rate")).draw(("new", "m", "A"), 1000.0, RNG)
    assert found.attempt.duration_ms == DEFAULT_MS


@pytest.mark.parametrize("outcome", ["request", "context", "cancelled", "saturated"])
def test_what_speaks_of_one_request_is_no_evidence_for_others(outcome: str) -> None:
    _, source = filled(*[at(1000.0 + n, outcome=outcome) for n in range(9)]).draw(PLACE, 1000.0, RNG)
    assert source is Source.DEFAULT


def test_memory_is_bounded_and_the_span_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST", 10)
    made = filled(*[at(1000.0 + n, duration_ms=float(n)) for n in range(500)])
    drawn = {made.draw(PLACE, 1250.0, Random(n))[0].attempt.duration_ms for n in range(200)}
    assert 2 < len(drawn) <= 11
    assert max(drawn) > 250 > min(drawn)


def test_the_number_of_series_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_SERIES", 3)
    made = filled(at(1000.0), at(1001.0, "beta/m2#A"))
    assert made.draw(("beta", "m2", "A"), 1000.0, RNG)[1] is Source.DEFAULT


def test_the_span_of_a_trace_is_that_of_its_arrivals() -> None:
    made = filled(at(1000.0), at(1500.0), at(1700.0))
    assert (made.requests, made.first_at, made.last_at) == (3, 1000.0, 1700.0)


def test_the_first_output_is_timed_from_the_attempts_begin() -> None:
    served = request(
        attempt("alpha/m1#A", "rate", started_at=1000.0),
        attempt("beta/m2#A", started_at=1000.2, duration_ms=500.0),
        served=Target("beta", "m2", "A"),
        first_token_ms=300.0,
    )
    first, second = samples_of(served)
    assert first.first_ms is None
    assert second.first_ms == pytest.approx(100.0)


def test_an_answer_that_broke_off_is_known_by_what_became_of_its_attempt() -> None:
    [sample] = samples_of(request(attempt("alpha/m1#A", "transient"), served=Target("alpha", "m1", "A")))
    assert sample.cut


def test_the_summary_of_a_hand_off_is_no_attempt_at_an_answer() -> None:
    made = request(attempt("alpha/m1#A", handoff=True), attempt("beta/m2#A"))
    assert [sample.attempt.provider for sample in samples_of(made)] == ["beta"]
