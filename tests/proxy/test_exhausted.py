from __future__ import annotations

import pytest

from troyproxy.proxy.exhausted import NO_RETRY, advice, curable, own_error
from troyproxy.proxy.outcome import Answer, Broken
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.classify import Failure, Verdict
from troyproxy.resilience.faults import Fault

POLICY = WalkPolicy()


def _verdict(error_class: ErrorClass) -> Verdict:
    return Verdict.of(error_class, "reason")


@pytest.mark.parametrize("error_class", ["request", "member", "context", "model", "auth"])
def test_what_the_same_request_meets_again_is_not_curable(error_class: str) -> None:
    assert not curable([_verdict(ErrorClass(error_class))])


@pytest.mark.parametrize("error_class", ["quota", "rate", "overload", "short", "transient", "leak", "saturated"])
def test_one_curable_failure_is_enough(error_class: str) -> None:
    assert curable([_verdict(ErrorClass.MODEL), _verdict(ErrorClass(error_class))])


@pytest.mark.parametrize(("wait_s", "told"), [(0.4, b"1"), (7.2, b"8"), (60.0, b"60")])
def test_a_wait_is_rounded_up_and_never_0(wait_s: float, told: bytes) -> None:
    assert advice([_verdict(ErrorClass.RATE)], wait_s) == ((b"retry-after", told),)


def test_no_wait_and_no_hope() -> None:
    assert advice([_verdict(ErrorClass.REQUEST)], None) == (NO_RETRY,)


def test_an_in_band_error_without_a_status_is_502() -> None:
    broken = Broken(Failure(None, in_band=True))
    error = own_error(broken, _verdict(ErrorClass.TRANSIENT), POLICY)
    assert (error is not None and (error.http_status, str(error))) == (502, "the upstream reported an error")


def test_an_in_band_refusal_of_our_credential_is_masked() -> None:
    broken = Broken(Failure(401, in_band=True), message="bad key")
    error = own_error(broken, _verdict(ErrorClass.AUTH), POLICY)
    assert error is not None
    assert (error.http_code, "bad key" in str(error)) == ("upstream_auth", False)


def test_an_upstreams_own_answer_needs_no_error_of_ours() -> None:
    assert own_error(Broken(Failure(500), Answer(500, (), b"")), _verdict(ErrorClass.TRANSIENT), POLICY) is None


@pytest.mark.parametrize("fault", [Fault.EMPTY, Fault.NOT_A_COMPLETION, Fault.PROTOCOL])
def test_what_is_no_completion_is_invalid(fault: Fault) -> None:
    error = own_error(Broken(Failure(None, fault=fault)), _verdict(ErrorClass.TRANSIENT), POLICY)
    assert error is not None
    assert error.http_code == "upstream_invalid"
