from __future__ import annotations

from itertools import product

import pytest

from troyproxy.accounting.records import AttemptRecord
from troyproxy.ports import UpstreamFailed
from troyproxy.proxy.replay.answers import failed, fault_of, refusal
from troyproxy.resilience.classes import DENIED_S, QUOTA_PHRASE_S, RULES, ErrorClass
from troyproxy.resilience.classify import Failure, classify
from troyproxy.resilience.faults import Fault

TOLD = [each for each in ErrorClass if each not in {ErrorClass.CANCELLED, ErrorClass.SATURATED}]
COOLING = [each for each in TOLD if RULES[each].cools]
STATUSES = (None, 200, 301, 400, 401, 402, 403, 404, 405, 408, 409, 410, 413, 422, 425, 429, 451, 500, 502, 503, 529)


def record(outcome: str, status: int | None, *, hint_s: float | None = None, **fields: object) -> AttemptRecord:
    base = {"started_at": 0.0, "duration_ms": 1.0, "hint_s": hint_s}
    return AttemptRecord("alpha", "gpt-x", "A", outcome, status, **{**base, **fields})  # type: ignore[arg-type]


def body_of(attempt: AttemptRecord) -> tuple[int, bytes]:
    answer = refusal(attempt)
    [(_, part)] = answer.parts
    assert isinstance(part, bytes)
    return answer.status, part


@pytest.mark.parametrize(("error_class", "status"), [*product(TOLD, STATUSES)])
def test_a_made_up_answer_is_of_the_recorded_class(error_class: ErrorClass, status: int | None) -> None:
    given, body = body_of(record(error_class, status))
    verdict = classify(Failure(given, body=body, provider="alpha", model="gpt-x", body_sent=True), now=1e9)
    assert verdict.error_class is error_class
    assert verdict.hint_s is None
    assert verdict.parameter is None


@pytest.mark.parametrize("error_class", TOLD)
def test_told_within_a_stream_it_is_of_the_recorded_class_too(error_class: ErrorClass) -> None:
    _, body = body_of(record(error_class, None))
    verdict = classify(Failure(None, body=body, model="gpt-x", body_sent=True, in_band=True), now=1e9)
    expected = ErrorClass.TRANSIENT if error_class is ErrorClass.MEMBER else error_class  # events have no status
    assert verdict.error_class is expected


@pytest.mark.parametrize(("error_class", "hint_s"), [*product(COOLING, [1.0, 6.2, 1234.567])])
def test_it_asks_to_be_left_alone_as_long(error_class: ErrorClass, hint_s: float) -> None:
    status, body = body_of(record(error_class, None, hint_s=hint_s))
    verdict = classify(Failure(status, body=body), now=1e9)
    assert verdict.hint_s == pytest.approx(hint_s)


@pytest.mark.parametrize(
    ("error_class", "cooldown_s"),
    [
        (ErrorClass.AUTH, DENIED_S),
        (ErrorClass.AUTH, RULES[ErrorClass.AUTH].cooldown_s),
        (ErrorClass.QUOTA, QUOTA_PHRASE_S),
        (ErrorClass.QUOTA, RULES[ErrorClass.QUOTA].cooldown_s),
    ],
)
@pytest.mark.parametrize("status", STATUSES)
def test_the_flat_time_of_a_lock_is_the_recorded_one(
    error_class: ErrorClass, cooldown_s: float | None, status: int | None
) -> None:
    given, body = body_of(record(error_class, status, cooldown_s=cooldown_s))
    verdict = classify(Failure(given, body=body), now=1e9)
    assert (verdict.error_class, verdict.cooldown_s) == (error_class, cooldown_s)


@pytest.mark.parametrize("fault", Fault)
def test_a_fault_is_read_from_the_reason_of_its_record(fault: Fault) -> None:
    verdict = classify(Failure(None, fault=fault), now=1e9)
    attempt = record(verdict.error_class, None, reason=verdict.reason)
    assert fault_of(attempt) is fault


def test_a_status_is_no_fault() -> None:
    assert fault_of(record(ErrorClass.RATE, 429, reason="429: rate")) is None


def test_a_fault_that_an_error_object_explains_is_told_by_its_class() -> None:
    assert fault_of(record(ErrorClass.RATE, None, reason="not a completion: rate")) is None


@pytest.mark.parametrize(("fault", "sent"), [(Fault.CONNECT, False), (Fault.RESET, True)])
def test_whether_the_request_went_out_is_known_of_a_fault(fault: Fault, sent: bool) -> None:
    failure = failed(fault)
    assert isinstance(failure, UpstreamFailed)
    assert (failure.fault, failure.body_sent) == (fault, sent)
