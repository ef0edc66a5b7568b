"""A receiver of OTLP over HTTP: takes spans as a collector does, and keeps them for the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True)
class Received:
    """One span. Ids are hexadecimal digits, times unix nanoseconds, kind and status the numbers of the protocol."""

    service: str
    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: int
    status: int
    start: int
    end: int
    attributes: Mapping[str, object]


class Receiver:
    """What was received by now."""

    def __init__(self) -> None:
        self.spans: list[Received] = []
        self.raw = b""
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def take(self, body: bytes) -> None:
        """Take one request's body."""
        self.raw += body
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = str(_attributes(of_resource.resource.attributes)["service.name"])
            self.spans += [_received(service, span) for scope in of_resource.scope_spans for span in scope.spans]

    def trace(self, trace_id: str) -> list[Received]:
        """Return the spans of a trace, the earliest first; parents before their children."""
        mine = (span for span in self.spans if span.trace_id == trace_id)
        return sorted(mine, key=lambda span: (span.kind != SERVER, span.start))


SERVER, CLIENT, ERROR = 2, 3, 2


def _received(service: str, span: Any) -> Received:  # noqa: ANN401 -- made by protobuf at run time
    return Received(
        service,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.name,
        span.kind,
        span.status.code,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        _attributes(span.attributes),
    )


def _attributes(pairs: Any) -> dict[str, object]:  # noqa: ANN401 -- made by protobuf at run time
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@contextmanager
def run_receiver() -> Iterator[Receiver]:
    """Run a receiver on a port of its own."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/v1/traces" and self.headers["content-type"] == "application/x-protobuf":
                receiver.take(body)
                self.send_response(200)
            else:
                self.send_response(404)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class's name
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
