"""The tests' end of the scripted upstream (`scripted.py`): tell it what to answer, read what it saw.

upstreams.script("alpha", error(429, retry_after="3"))                     # every account and model
upstreams.script("alpha", RESET, HEALTHY, model="m1")                      # the first call, then all others
upstreams.script("alpha", stream(b"data: {...", b"...}\\n\\n", CUT))       # exactly these reads
upstreams.script("alpha", stream(delta("a"), Gate("go"), delta("b")), key="sk-up-A")
"""

from __future__ import annotations

import ast
import base64
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.e2e import shapes

ROOT: Final = Path(__file__).parents[2]
PATIENCE_S: Final = 20.0
ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class Gate:
    """A step: wait until the test opens this gate."""

    name: str


@dataclass(frozen=True, slots=True)
class Pause:
    """A step: wait this long."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Drip:
    """A step: send *data* every so many seconds until the gateway leaves."""

    data: bytes
    every_s: float


@dataclass(frozen=True, slots=True)
class Act:
    """A step without an argument."""

    name: str


CUT: Final = Act("close")
"""Close the connection without the end that the framing asks for."""
RST: Final = Act("reset")
"""Reset the connection."""
SILENCE: Final = Act("hang")
"""Say nothing more until the gateway leaves."""
Step = bytes | Gate | Pause | Drip | Act


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. Each `bytes` step is one write and arrives as one network read.

    *framing*: ``chunked`` (a write is a chunk), ``length`` (only for replies that end), ``close`` (the end of the
    connection is the end of the body), ``raw`` (no head is made; the steps are all that is sent).
    """

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    steps: tuple[Step, ...] = ()
    framing: str = "chunked"

    def order(self) -> dict[str, Any]:
        """Return it as the scripted upstream reads it."""
        steps = [_order_of(step) for step in self.steps]
        return {"status": self.status, "headers": self.headers, "steps": steps, "framing": self.framing}


@dataclass(frozen=True, slots=True)
class Say:
    """An answer made from the request: ``healthy`` (a fitting one), or ``echo`` (path, headers and body as content)."""

    what: str

    def order(self) -> dict[str, Any]:
        """Return it as the scripted upstream reads it."""
        return {"say": self.what}


HEALTHY: Final = Say("healthy")
ECHO: Final = Say("echo")
RESET: Final = Reply(framing="raw", steps=(RST,))
HANG: Final = Reply(framing="raw", steps=(SILENCE,))


def _order_of(step: Step) -> list[Any]:
    if isinstance(step, bytes):
        return ["write", base64.b64encode(step).decode()]
    if isinstance(step, Gate):
        return ["gate", step.name]
    if isinstance(step, Pause):
        return ["pause", step.seconds]
    if isinstance(step, Drip):
        return ["drip", base64.b64encode(step.data).decode(), step.every_s]
    return [step.name]


def stream(*steps: Step, framing: str = "chunked", **headers: str) -> Reply:
    """Return a 200 event stream of exactly these reads."""
    return Reply(200, (("content-type", "text/event-stream"), *_headers(headers)), steps, framing)


def whole(body: bytes, status: int = 200, **headers: str) -> Reply:
    """Return an answer with a length. ``retry_after="3"`` is the header ``retry-after``."""
    return Reply(status, (("content-type", "application/json"), *_headers(headers)), (body,), "length")


def error(status: int, message: str = "scripted", code: str | None = None, **headers: str) -> Reply:
    """Return a vendor's error."""
    return whole(shapes.error(message, code), status, **headers)


def behind(gate: str, body: bytes | None = None) -> Reply:
    """Return a whole answer whose head, too, waits for *gate*."""
    body = shapes.completion("waited for") if body is None else body
    named = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close"
    return Reply(framing="raw", steps=(Gate(gate), f"HTTP/1.1 200 OK\r\n{named}\r\n\r\n".encode() + body))


def reads_in(text: str) -> tuple[bytes, ...]:
    """Return the network reads of ``chunks=[b'..', ..]`` in the text of a field case."""
    start = text.index("chunks=[") + len("chunks=")
    for end in (at + 1 for at, character in enumerate(text) if at > start and character == "]"):
        try:  # the first bracket that closes a literal is the end of the list
            return tuple(ast.literal_eval(text[start:end]))
        except SyntaxError:
            continue
    raise ValueError("the list of chunks has no end")


def _headers(named: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name.replace("_", "-"), value) for name, value in named.items())


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the upstream saw it."""

    provider: str
    key: str
    """The credential it came with."""
    model: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    at: float
    """Unix seconds."""
    state: str
    """``open``, ``done``, ``left`` (the gateway went away) or ``cut`` (the script did)."""

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body)
        return value


class Upstreams:
    """The control of one scripted process; safe to use from several threads."""

    def __init__(self, port: int, control: socket.socket) -> None:
        self.port = port
        self._control, self._lines = control, control.makefile("rb")
        self._turn = threading.Lock()

    def base_url(self, provider: str) -> str:
        """Return the base URL that makes a request arrive as *provider*'s."""
        return f"http://127.0.0.1:{self.port}/{provider}/v1"

    def script(self, provider: str, *replies: Reply | Say, key: str = ANY, model: str = ANY) -> None:
        """Answer with *replies* one after another; the last one stays. The most specific script wins."""
        orders = [reply.order() for reply in replies]
        self._do(do="script", provider=provider, key=key, model=model, replies=orders)

    def open(self, gate: str) -> None:
        """Open *gate*, for good."""
        self._do(do="open", gate=gate)

    def requests(self, provider: str, *, model: str = ANY, key: str = ANY) -> list[Request]:
        """Return what came, oldest first."""
        found = (self._request(raw) for raw in self._do(do="requests"))
        return [r for r in found if r.provider == provider and model in {ANY, r.model} and key in {ANY, r.key}]

    def states(self, provider: str, *, model: str = ANY) -> list[str]:
        """Return how the requests stand."""
        return [request.state for request in self.requests(provider, model=model)]

    def connections(self) -> dict[str, int]:
        """Return how many connections were ``accepted`` and are ``open``."""
        return {"accepted": 0, "open": 0, **self._do(do="connections")}

    def _request(self, raw: dict[str, Any]) -> Request:
        headers = tuple((name, value) for name, value in raw.pop("headers"))
        return Request(headers=headers, body=base64.b64decode(raw.pop("body")), **raw)

    def _do(self, **order: object) -> Any:  # noqa: ANN401 - what JSON may hold
        with self._turn:
            self._control.sendall(json.dumps(order).encode() + b"\n")
            return json.loads(self._lines.readline())

    def close(self) -> None:
        """Close the control connection."""
        self._lines.close()
        self._control.close()


@contextmanager
def run_upstreams() -> Iterator[Upstreams]:
    """Run a scripted upstream process."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command: Sequence[str] = [sys.executable, "-m", "tests.e2e.scripted"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        port, control = json.loads(process.stdout.readline())
        upstreams = Upstreams(port, socket.create_connection(("127.0.0.1", control), timeout=PATIENCE_S))
        try:
            yield upstreams
        finally:
            upstreams.close()
            process.kill()  # it holds nothing worth keeping
            process.wait(timeout=PATIENCE_S)
