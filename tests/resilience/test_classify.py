"""Provider errors get the class the design's table gives them; vendor cases name their vendor."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.resilience.classes import BreakerEffect, ErrorClass, NextStep, Scope
from troyproxy.resilience.classify import Failure, Verdict, classify
from troyproxy.resilience.faults import Fault

NOW = 1_790_000_000.0


def verdict(status: int | None, body: object = "", /, **more: object) -> Verdict:
    """Classify an answer; a body that is no string is written as JSON."""
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    fields: dict[str, object] = {"model": "m1", "body": raw, **more}
    return classify(Failure(status, **fields), now=NOW)  # type: ignore[arg-type]


def error(message: str = "", **fields: object) -> dict[str, object]:
    return {"error": {"message": message, **fields}}


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        *(
            (fault, ErrorClass.TRANSIENT)
            for fault in Fault
            if fault not in {Fault.SATURATED, Fault.CANCELLED, Fault.LEAK}
        ),
        (Fault.LEAK, ErrorClass.LEAK),
        (Fault.SATURATED, ErrorClass.SATURATED),
        (Fault.CANCELLED, ErrorClass.CANCELLED),
    ],
)
def test_a_fault_has_its_class(fault: Fault, expected: ErrorClass) -> None:
    assert verdict(None, fault=fault).error_class is expected


def test_a_status_beats_a_fault() -> None:
    assert verdict(429, fault=Fault.RESET).error_class is ErrorClass.RATE


def test_a_client_that_left_beats_a_status() -> None:
    assert verdict(503, fault=Fault.CANCELLED).error_class is ErrorClass.CANCELLED


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (error("x"), ErrorClass.TRANSIENT),
        (error("overloaded", type="server_error", code=503), ErrorClass.OVERLOAD),
        (error("x", code=429), ErrorClass.RATE),
        (error("slow down", type="rate_limit_error"), ErrorClass.RATE),
        (error("x", type="authentication_error"), ErrorClass.AUTH),
        (error("x", status="RESOURCE_EXHAUSTED"), ErrorClass.RATE),
        (error("x", code=400), ErrorClass.REQUEST),
        (error("filtered", code="content_filter"), ErrorClass.REQUEST),
        (error("too long", code="context_length_exceeded"), ErrorClass.CONTEXT),
        (error("x", code="tool_use_failed"), ErrorClass.LEAK),
        ({"choices": [{"finish_reason": "function_call_filter: MALFORMED_FUNCTION_CALL"}]}, ErrorClass.LEAK),
        ("not json: billing", ErrorClass.TRANSIENT),
    ],
)
def test_an_error_under_a_200_is_read_like_an_answer(body: object, expected: ErrorClass) -> None:
    assert verdict(200, body, in_band=True).error_class is expected


@pytest.mark.parametrize(
    "body", ["", "<html>login</html>", "{}", '{"choices": []}', '{"choices": [{"message": "billing']
)
def test_what_is_no_completion_is_transient(body: str) -> None:
    assert verdict(200, body, fault=Fault.NOT_A_COMPLETION).error_class is ErrorClass.TRANSIENT


def test_an_error_object_that_was_no_completion_is_read() -> None:
    assert verdict(200, error("x", code=429), fault=Fault.NOT_A_COMPLETION).error_class is ErrorClass.RATE


def test_the_start_of_an_answer_that_broke_off_is_not_read() -> None:
    assert verdict(200, error("quota exceeded"), fault=Fault.RESET).error_class is ErrorClass.TRANSIENT


@pytest.mark.parametrize(
    ("status", "body", "cooldown_s"),
    [
        (401, "", 120.0),
        (403, "", 120.0),
        (403, "<html>blocked</html>", 30.0),
        (403, error("not available in your region"), 30.0),
        (403, error("x", type="permission_error"), 30.0),
        (403, error("x", code="unsupported_country_region_territory"), 30.0),
        (402, "", 1800.0),
        (429, error("x", code="insufficient_quota"), 1800.0),
        (429, error("Insufficient balance"), 120.0),
        (404, error("model gone"), 300.0),
        (529, "", 5.0),
        (403, error("request not allowed"), 5.0),
        (500, "", 2.0),
        (429, "", None),
        (400, "", None),
    ],
)
def test_a_verdict_has_its_flat_cooldown(status: int, body: object, cooldown_s: float | None) -> None:
    assert verdict(status, body).cooldown_s == cooldown_s


def test_anthropic_says_in_a_header_that_credits_are_out() -> None:
    headers = ((b"Anthropic-RateLimit-Unified-Overage-Disabled-Reason", b"out_of_credits"),)
    found = verdict(429, headers=headers)
    assert (found.error_class, found.cooldown_s) == (ErrorClass.QUOTA, 1800.0)


@pytest.mark.parametrize(
    ("fault", "body_sent", "retry_timeouts", "step"),
    [
        (Fault.TIMEOUT_CONNECT, False, True, NextStep.NEXT_ACCOUNT),
        (Fault.TIMEOUT_FIRST_BYTE, True, True, NextStep.NEXT_MEMBER),
        (Fault.TIMEOUT_TOTAL, True, False, NextStep.STOP),
        (Fault.TIMEOUT_IDLE, False, False, NextStep.NEXT_ACCOUNT),
        (Fault.RESET, True, False, NextStep.NEXT_ACCOUNT),
    ],
)
def test_a_timeout_after_the_body_never_goes_to_another_account(
    fault: Fault, *, body_sent: bool, retry_timeouts: bool, step: NextStep
) -> None:
    failure = Failure(None, fault=fault, body_sent=body_sent)
    assert classify(failure, now=NOW, retry_timeouts=retry_timeouts).step is step


def test_a_status_that_came_before_the_timeout_decides_the_step() -> None:
    found = verdict(429, fault=Fault.TIMEOUT_TOTAL, body_sent=True)
    assert found.step is NextStep.NEXT_ACCOUNT


def test_a_hint_makes_a_soft_lock_hard() -> None:
    found = verdict(503, headers=((b"retry-after", b"7"),))
    assert (found.hint_s, found.soft, found.scope) == (7.0, False, Scope.PAIR)


def test_without_a_hint_a_transient_lock_is_soft() -> None:
    assert verdict(503).soft


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_hint_on_a_class_that_does_not_cool_is_ignored(status: int) -> None:
    found = verdict(status, headers=((b"retry-after", b"60"),))
    assert (found.hint_s, found.cooldown_s, found.scope) == (None, None, Scope.NONE)


@pytest.mark.parametrize(("status", "hint_s"), [(429, 1800.0), (504, 1800.0)])
def test_a_hint_is_capped_on_every_status(status: int, hint_s: float) -> None:
    assert verdict(status, headers=((b"retry-after", b"86400"),)).hint_s == hint_s


@pytest.mark.parametrize(("status", "hint_s"), [(429, 20.0), (503, None)])
def test_rate_limit_headers_explain_only_a_rate_limit(status: int, hint_s: float | None) -> None:
    headers = ((b"x-ratelimit-remaining-tokens", b"0"), (b"x-ratelimit-reset-tokens", b"20s"))
    assert verdict(status, headers=headers).hint_s == hint_s


def test_headers_that_are_there_but_empty_change_nothing() -> None:
    names = (b"retry-after", b"x-ratelimit-remaining-requests", b"x-ratelimit-reset-requests", b"x-ratelimit-reset")
    found = verdict(503, headers=tuple((name, b"") for name in names))
    assert (found.error_class, found.hint_s) == (ErrorClass.TRANSIENT, None)


def test_a_reset_in_the_text_is_a_hint() -> None:
    assert verdict(429, error("limit reached, resets after 26h10m5s", code=429)).hint_s == 1800.0


def test_the_rejected_parameter_comes_from_its_pointer() -> None:
    assert verdict(400, error("no", param="reasoning_effort", code="unsupported_value")).parameter == "reasoning_effort"


def test_a_parameter_named_in_words_only_is_none() -> None:
    assert verdict(400, error("reasoning_effort is not supported")).parameter is None


@pytest.mark.parametrize(
    ("status", "fault", "reason"),
    [
        (429, None, "429: rate"),
        (None, Fault.TIMEOUT_FIRST_BYTE, "timeout first byte: transient"),
        (200, Fault.EMPTY, "empty: transient"),
        (None, None, "no answer: transient"),
        (503, Fault.RESET, "503: transient"),
    ],
)
def test_the_reason_says_what_happened(status: int | None, fault: Fault | None, reason: str) -> None:
    assert verdict(status, fault=fault).reason == reason


def test_the_reason_holds_nothing_the_upstream_wrote() -> None:
    secret = "sk-up-A-1234567890abcd"
    assert secret not in repr(verdict(401, error(f"bad key {secret}", code=secret)))


def test_a_verdict_can_be_made_from_a_class() -> None:
    found = Verdict.of(ErrorClass.LEAK, "leaked tool call", hint_s=3.0)
    assert (found.step, found.hint_s, found.breaker) == (NextStep.NEXT_MEMBER, None, BreakerEffect.NEUTRAL)


def test_a_model_without_a_name_is_no_trouble() -> None:
    assert classify(Failure(404, body=b'{"error": "not found"}'), now=NOW).error_class is ErrorClass.MEMBER


@given(
    status=st.none() | st.integers(0, 999),
    body=st.binary(max_size=80)
    | st.builds(
        lambda code, text: json.dumps({"error": {"code": code, "message": text, "details": [code]}}).encode(),
        st.integers() | st.text(max_size=9),
        st.text(max_size=30),
    ),
    headers=st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=20)), max_size=3).map(tuple),
    fault=st.none() | st.sampled_from(Fault),
    in_band=st.booleans(),
)
def test_every_failure_has_a_one_line_verdict(
    status: int | None, body: bytes, headers: tuple[tuple[bytes, bytes], ...], fault: Fault | None, *, in_band: bool
) -> None:
    failure = Failure(status, headers, body, fault, model="m", in_band=in_band)
    found = classify(failure, now=NOW)
    assert found.reason
    assert "\n" not in found.reason
