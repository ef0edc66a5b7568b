"""Makes spans into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import format_span_id, format_trace_id

from tests.telemetry.rows import attempt, row
from troyproxy.accounting.records import UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.telemetry.spans import Spans

TWO = row(
    attempts=(
        attempt(outcome="rate", status=429, reason="429: rate", hint_s=3.0),
        attempt(provider="google", usage=Usage(100, 20, cached=40, reasoning=5)),
    ),
    provider="google",
    skipped=(("beta/m2", "cooldown"),),
)


@contextmanager
def making(*, latest: bool = False) -> Iterator[tuple[Spans, InMemorySpanExporter]]:
    """Make spans into memory; they are all there when the block is over."""
    exporter = InMemorySpanExporter()
    spans = Spans(exporter, latest=latest)
    try:
        yield spans, exporter
    finally:
        spans.close()


def made(row: UsageRow, *, latest: bool = False, headers: Sequence[tuple[bytes, bytes]] = ()) -> list[ReadableSpan]:
    """Return the spans of *row*."""
    with making(latest=latest) as (spans, exporter):
        spans.finished(row, spans.begin(tuple(headers)))
    return list(exporter.get_finished_spans())


def said(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def ids(span: ReadableSpan) -> tuple[str, str, str | None]:
    """Return trace, span and parent."""
    parent = None if span.parent is None else format_span_id(span.parent.span_id)
    assert span.context is not None
    return format_trace_id(span.context.trace_id), format_span_id(span.context.span_id), parent
