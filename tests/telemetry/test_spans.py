"""Spans of finished requests: one for the request, one for each attempt, as the ledger has them; nothing private."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from tests.fakes import Reply
from tests.proxy.rig import Rig, delta, fault, good, refusal, reset, stream
from tests.telemetry.spanning import TWO, ids, making, said
from tests.virtual import VirtualLoop
from troyproxy.accounting.records import AttemptRecord, Traced
from troyproxy.telemetry.spans import Told
from troyproxy.wire.traceparent import child_id

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CALLER = ((b"traceparent", f"00-{TRACE}-{SPAN}-01".encode()), (b"tracestate", b"vendor=1"))
REPLIES: Mapping[str, Callable[[], Reply]] = {
    "ok": lambda: good("secret words"),
    "rate": lambda: refusal(429, "key sk-0123456789abcdef is spent", retry_after="3"),
    "broken": lambda: refusal(500),
    "unreachable": fault,
    "cut": lambda: stream(delta("a"), reset()),
    "bad": lambda: refusal(400, "no"),
}


def as_record(span: ReadableSpan) -> tuple[object, ...]:
    """Return what an attempt's span says, in the ledger's words."""
    told = said(span)
    assert span.start_time is not None
    assert span.end_time is not None
    lasted_ms = (span.end_time - span.start_time) / 1e6
    usage = (told.get("gen_ai.usage.input_tokens"), told.get("gen_ai.usage.output_tokens"))
    return (
        *(told["troy.provider"], told["gen_ai.request.model"], told["troy.account"], told["troy.outcome"]),
        *(told.get("http.response.status_code"), told.get("troy.wait_s"), round(lasted_ms, 3), usage),
        span.status.status_code is StatusCode.ERROR,
    )


def from_ledger(record: AttemptRecord) -> tuple[object, ...]:
    usage = (None, None) if record.usage is None else (record.usage.input, record.usage.output)
    return (
        *(record.provider, record.model, record.account, record.outcome, record.status, record.hint_s),
        *(round(record.duration_ms, 3), usage, record.outcome != "ok"),
    )


@settings(max_examples=30)
@given(replies=st.lists(st.sampled_from(sorted(REPLIES)), min_size=3, max_size=3), streamed=st.booleans())
def test_the_spans_of_any_walk_are_its_ledger(replies: list[str], streamed: bool) -> None:
    loop = VirtualLoop()
    try:
        with making() as (spans, exporter):
            rig = Rig()
            rig.script(
                **{name: REPLIES[reply]() for name, reply in zip(("alpha", "beta", "gamma"), replies, strict=True)}
            )
            call = rig.call("three", stream=streamed)
            call.traced = spans.begin(CALLER)
            told = loop.run_until_complete(rig.ask(call=call)).row
            assert told.traced is not None
            spans.finished(told, told.traced)
    finally:
        loop.close()
    request, *attempts = exporter.get_finished_spans()
    assert [as_record(span) for span in attempts] == [from_ledger(record) for record in told.attempts]
    assert ids(request) == (TRACE, told.traced.span_id, SPAN)
    assert [ids(span) for span in attempts] == [
        (TRACE, child_id(told.traced.span_id, number), told.traced.span_id) for number in range(1, len(attempts) + 1)
    ]
    text = repr([(span.name, span.attributes, span.status.description) for span in (request, *attempts)])
    assert not [word for word in ("secret", "sk-0123456789abcdef") if word in text]


# --- whose trace it is ---


def test_a_request_without_a_caller_begins_a_trace() -> None:
    with making() as (spans, _):
        one, other = spans.begin(()), spans.begin(())
    assert (one.parent_id, one.sampled, one.trace_id == other.trace_id) == (None, True, False)


def test_a_root_has_no_parent_and_the_ids_that_upstreams_were_told() -> None:
    with making() as (spans, exporter):
        traced = spans.begin(())
        spans.finished(TWO, traced)
    request, first, _ = exporter.get_finished_spans()
    assert ids(request) == (traced.trace_id, traced.span_id, None)
    assert ids(first) == (traced.trace_id, child_id(traced.span_id, 1), traced.span_id)


@pytest.mark.parametrize(
    "headers",
    [
        ((b"traceparent", b"nonsense"),),
        (CALLER[0], CALLER[0]),
        ((b"tracestate", b"vendor=1"),),
    ],
)
def test_a_caller_that_is_not_valid_is_none(headers: tuple[tuple[bytes, bytes], ...]) -> None:
    with making() as (spans, _):
        traced = spans.begin(headers)
    assert (traced.parent_id, traced.state) == (None, "")


def test_the_callers_state_is_kept() -> None:
    with making() as (spans, _):
        traced = spans.begin((*CALLER, (b"tracestate", b"other=2")))
    assert traced == Traced(TRACE, traced.span_id, SPAN, sampled=True, state="vendor=1,other=2")


def test_a_state_that_is_too_long_is_not() -> None:
    with making() as (spans, _):
        traced = spans.begin((CALLER[0], *((b"tracestate", f"v{n}={'x' * 200}".encode()) for n in range(3))))
    assert (traced.trace_id, traced.state) == (TRACE, "")


def test_what_the_caller_does_not_record_is_not_recorded() -> None:
    with making() as (spans, exporter):
        traced = spans.begin(((b"traceparent", f"00-{TRACE}-{SPAN}-00".encode()),))
        spans.finished(TWO, traced)
    assert (traced.sampled, exporter.get_finished_spans()) == (False, ())


def test_the_sampler_of_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    with making() as (spans, _):
        assert not spans.begin(()).sampled


# --- a receiver that is away ---


class Away(SpanExporter):
    """Takes nothing, until it does."""

    def __init__(self, *results: SpanExportResult) -> None:
        self._results = iter(results)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        del spans
        return next(self._results)

    def shutdown(self) -> None:
        return


def test_a_receiver_that_is_away_is_said_once_and_so_is_its_return(caplog: pytest.LogCaptureFixture) -> None:
    no, yes = SpanExportResult.FAILURE, SpanExportResult.SUCCESS
    told = Told(Away(yes, no, no, yes, yes, no))
    with caplog.at_level(logging.INFO, "troyproxy.spans"):
        results = [told.export(()) for _ in range(6)]
    assert results == [yes, no, no, yes, yes, no]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "WARNING"]


def test_nothing_waits_before_the_exporter() -> None:
    assert Told(InMemorySpanExporter()).force_flush()
