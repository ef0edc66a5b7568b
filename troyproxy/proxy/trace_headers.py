"""Which trace an upstream is told of: that of the attempt under way, and only while spans are made."""

from __future__ import annotations

from troyproxy.ports import Headers
from troyproxy.proxy.call import Call
from troyproxy.wire.traceparent import TraceParent, child_id, written


def trace_headers(call: Call) -> Headers:
    """Return the headers of W3C Trace Context for the attempt that was opened last."""
    traced = call.traced
    if traced is None:
        return ()
    attempt = child_id(traced.span_id, len(call.ledger.attempts))
    parent = (b"traceparent", written(TraceParent(traced.trace_id, attempt, traced.sampled)))
    return (parent, (b"tracestate", traced.state.encode("latin-1"))) if traced.state else (parent,)
