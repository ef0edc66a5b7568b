"""Spans for OpenTelemetry: the only door to its SDK, behind the extra ``otel`` and imported when they are switched on.

A span is made when its request is over, from the row that is kept of it: nothing of OpenTelemetry runs while a request
does, and no context is carried along. Only ids are drawn before, since upstreams are told of them.

The exporter's queue is bounded (``OTEL_BSP_MAX_QUEUE_SIZE``); at the bound the oldest spans are lost.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

from troyproxy.accounting.records import Traced, UsageRow
from troyproxy.ports import Headers
from troyproxy.telemetry.span_facts import SpanFacts, attempt_spans, request_span
from troyproxy.version import VERSION
from troyproxy.wire.traceparent import TraceParent, parent_of

LOGGER: Final = logging.getLogger("troyproxy.spans")
SERVICE: Final = "troyproxy"
"""``service.name``, unless ``OTEL_SERVICE_NAME`` or ``OTEL_RESOURCE_ATTRIBUTES`` says otherwise."""
LONGEST_STATE: Final = 512
"""Characters of a ``tracestate`` that is passed on; the least that W3C Trace Context asks for."""


class Told(SpanExporter):
    """Says once that spans cannot be delivered, and once that they can be again: the exporter says it at each try."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Deliver *spans*; those that cannot be are lost."""
        result = self._exporter.export(spans)
        failed = result is not SpanExportResult.SUCCESS
        if failed and not self._failing:
            LOGGER.warning("spans cannot be delivered and are lost until the receiver takes them again")
        elif self._failing and not failed:
            LOGGER.info("spans are delivered again")
        self._failing = failed
        return result

    def shutdown(self) -> None:
        """Deliver nothing more."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing waits here."""
        return self._exporter.force_flush(timeout_millis)


class Ids(IdGenerator):
    """Gives the next span the ids that were drawn for it before. Requests end one by one, on one thread."""

    def __init__(self) -> None:
        self._trace_id = self._span_id = 0

    def follow(self, trace_id: str, span_id: str) -> None:
        """Have the next span be this one."""
        self._trace_id, self._span_id = int(trace_id, 16), int(span_id, 16)

    def generate_trace_id(self) -> int:
        """Return the trace of a span without parent."""
        return self._trace_id

    def generate_span_id(self) -> int:
        """Return the id of the span."""
        return self._span_id


class Spans:
    """Makes spans of finished requests and hands them to *exporter*, by default the one that ``OTEL_*`` describe."""

    def __init__(self, exporter: SpanExporter | None = None, *, latest: bool = False) -> None:
        self._latest = latest
        self._random, self._ids = RandomIdGenerator(), Ids()
        self._provider = TracerProvider(resource=_resource(), id_generator=self._ids, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(Told(exporter or OTLPSpanExporter())))
        self._tracer = self._provider.get_tracer(SERVICE, VERSION)

    def begin(self, headers: Headers) -> Traced:
        """Return the place of a request that comes in with *headers*: in its caller's trace, else in one of its own."""
        parent = _caller(headers)
        trace_id = parent.trace_id if parent else f"{self._random.generate_trace_id():032x}"
        state = _state(headers) if parent else ""
        return Traced(
            trace_id=trace_id,
            span_id=f"{self._random.generate_span_id():016x}",
            parent_id=parent.span_id if parent else None,
            sampled=self._sampled(trace_id, _context(parent, state)),
            state=state,
        )

    def _sampled(self, trace_id: str, parent: Context) -> bool:
        sampler = self._provider.sampler
        found = sampler.should_sample(parent, int(trace_id, 16), SERVICE, SpanKind.SERVER)
        return found.decision is Decision.RECORD_AND_SAMPLE

    def finished(self, row: UsageRow, traced: Traced) -> None:
        """Make the spans of a request that is over. Never waits."""
        if not traced.sampled:
            return
        caller = None
        if traced.parent_id is not None:
            caller = TraceParent(traced.trace_id, traced.parent_id, sampled=True)
        around = _context(caller, traced.state)
        self._make(request_span(row, traced, latest=self._latest), traced, SpanKind.SERVER, around)
        within = _context(TraceParent(traced.trace_id, traced.span_id, sampled=True), traced.state, remote=False)
        for facts in attempt_spans(row, traced, latest=self._latest):
            self._make(facts, traced, SpanKind.CLIENT, within)

    def _make(self, facts: SpanFacts, traced: Traced, kind: SpanKind, parent: Context) -> None:
        self._ids.follow(traced.trace_id, facts.span_id)
        span = self._tracer.start_span(facts.name, parent, kind, facts.attributes, start_time=facts.start)
        if facts.error is not None:
            span.set_status(Status(StatusCode.ERROR, facts.error))
        span.end(facts.end)

    def close(self) -> None:
        """Deliver what waits, as far as the receiver takes it, and end. May block for many seconds."""
        self._provider.shutdown()


def _caller(headers: Headers) -> TraceParent | None:
    """Return who called; two of them are nobody (W3C Trace Context, section 3.2)."""
    found = _values(headers, b"traceparent")
    return parent_of(found[0]) if len(found) == 1 else None


def _state(headers: Headers) -> str:
    """Return the ``tracestate`` to pass on: the valid members of it, none if they are too long."""
    told = _values(headers, b"tracestate")
    state = TraceState.from_header(told).to_header() if told else ""
    return state if len(state) <= LONGEST_STATE else ""


def _values(headers: Headers, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]


def _context(parent: TraceParent | None, state: str, *, remote: bool = True) -> Context:
    """Return the context of a span under *parent*; without one, of a root."""
    if parent is None:
        return Context()
    flags = TraceFlags(TraceFlags.SAMPLED if parent.sampled else TraceFlags.DEFAULT)
    members = TraceState.from_header([state]) if state else TraceState()
    own = SpanContext(int(parent.trace_id, 16), int(parent.span_id, 16), remote, flags, members)
    return set_span_in_context(NonRecordingSpan(own), Context())


def _resource() -> Resource:
    ours = Resource({"service.name": SERVICE, "service.version": VERSION})
    return Resource.create(dict(ours.merge(OTELResourceDetector().detect()).attributes))
