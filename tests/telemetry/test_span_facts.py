"""What spans say: names of the conventions, nothing private, and errors only where something failed."""

from __future__ import annotations

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from tests.telemetry.rows import attempt, row
from tests.telemetry.spanning import TWO, made, said


def test_a_request_is_a_server_span_with_what_was_decided() -> None:
    request, *_ = made(TWO)
    assert (request.name, request.kind, request.status.status_code) == (
        "POST /v1/chat/completions",
        SpanKind.SERVER,
        StatusCode.UNSET,
    )
    assert said(request) == {
        "http.request.method": "POST",
        "http.route": "/v1/chat/completions",
        "http.response.status_code": 200,
        "gen_ai.operation.name": "chat",
        "gen_ai.system": "gcp.gemini",
        "gen_ai.request.model": "combo1",
        "gen_ai.response.model": "m1",
        "troy.stream": True,
        "troy.first_output_s": 0.3,
        "troy.request_id": "req-1",
        "troy.outcome": "ok",
        "troy.key_name": "laptop",
        "troy.combo": "combo1",
        "troy.strategy": "priority",
        "troy.provider": "google",
        "troy.account": "A",
        "troy.attempts": 2,
        "troy.skipped": ("beta/m2=cooldown",),
        "troy.cost_usd": 0.25,
        "troy.overhead_s": 0.0004,
    }


def test_an_attempt_is_a_client_span_with_its_tokens() -> None:
    *_, served = made(TWO, latest=True)
    assert (served.name, served.kind) == ("chat m1", SpanKind.CLIENT)
    assert said(served) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "m1",
        "gen_ai.request.stream": True,
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "gen_ai.usage.reasoning.output_tokens": 5,
        "http.response.status_code": 200,
        "troy.attempt": 2,
        "troy.provider": "google",
        "troy.account": "A",
        "troy.outcome": "ok",
    }


def test_a_failed_attempt_has_its_class_as_error_and_the_reason_as_status() -> None:
    _, failed, _ = made(TWO)
    assert (said(failed)["error.type"], failed.status.status_code, failed.status.description) == (
        "rate",
        StatusCode.ERROR,
        "429: rate",
    )


def test_spans_last_as_long_as_what_they_are_about() -> None:
    request, first, _ = made(TWO)
    assert [(span.start_time, span.end_time) for span in (request, first)] == [
        (1_800_000_000_000_000_000, 1_800_000_001_500_000_000),
        (1_800_000_000_000_000_000, 1_800_000_001_200_000_000),
    ]


@pytest.mark.parametrize(
    ("status", "outcome", "error"),
    [
        (404, "client_error", None),
        (503, "refused", "refused"),
        (200, "truncated", "truncated"),
        (499, "cancelled", None),
    ],
)
def test_only_what_the_gateway_failed_at_is_an_error_of_the_request(
    status: int, outcome: str, error: str | None
) -> None:
    request, *_ = made(row(status=status, outcome=outcome))
    assert (said(request).get("error.type"), request.status.description) == (error, error)


def test_a_hand_offs_summary_is_marked_and_is_a_chat() -> None:
    _, summary = made(row(route="/v1/completions", attempts=(attempt(handoff=True),)))
    assert (said(summary)["troy.handoff"], said(summary)["gen_ai.operation.name"]) == (True, "chat")


def test_skips_are_bounded() -> None:
    request, *_ = made(row(skipped=tuple((f"alpha/m{n}", "cooldown") for n in range(25))))
    skipped = said(request)["troy.skipped"]
    assert isinstance(skipped, tuple)
    assert (len(skipped), skipped[-1]) == (21, "+5")


def test_what_a_client_calls_a_model_is_masked_and_cut() -> None:
    request, *_ = made(row(requested_model="sk-0123456789abcdef" + "x" * 500))
    assert len(str(said(request)["gen_ai.request.model"])) <= 201
    assert "0123456789" not in str(said(request))


def test_the_service_has_our_name_unless_the_environment_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [made(row())[0].resource.attributes["service.name"]]
    monkeypatch.setenv("OTEL_SERVICE_NAME", "edge-1")
    names.append(made(row())[0].resource.attributes["service.name"])
    assert names == ["troyproxy", "edge-1"]
