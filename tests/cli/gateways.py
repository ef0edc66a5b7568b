"""A server that gives prepared answers as a gateway would, for commands that ask one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "admin-token-of-this-test"


@dataclass
class FakeGateway:
    """Path → status and body; what was asked for is written down."""

    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and authorization of each request."""
    cut: bool = False
    """Whether it ends in the middle of an answer."""
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def says(self, path: str, value: Mapping[str, object], status: int = 200) -> None:
        """Answer *path* with JSON."""
        self.answers[path] = (status, json.dumps(value).encode())

    def tells(self, path: str, *events: tuple[str, Mapping[str, object]]) -> None:
        """Answer *path* with events, and end."""
        frames = (f": quiet\n\nevent: {kind}\ndata: {json.dumps(facts)}\n\n" for kind, facts in events)
        self.answers[path] = (200, "".join(frames).encode())


@contextmanager
def fake_gateway() -> Iterator[FakeGateway]:
    """Serve on a free port."""
    fake = FakeGateway()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fake.asked.append((self.path, self.headers.get("authorization")))
            status, body = fake.answers.get(self.path, (404, b"no gateway"))
            self.send_response(status)
            framing = ("transfer-encoding", "chunked") if fake.cut else ("content-length", str(len(body)))
            self.send_header(*framing)
            self.end_headers()
            self.wfile.write((b"%x\r\n" % (len(body) + 1) if fake.cut else b"") + body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        fake.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield fake
        finally:
            server.shutdown()
            thread.join()
