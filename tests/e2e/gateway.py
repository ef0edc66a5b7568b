"""A real gateway process for a test: its configuration, its life, and what can be read from outside.

with run_gateway(folder, config, "--demo", TROY_MAX_INFLIGHT="2") as gateway:
    gateway.post({"model": "alpha/m1", ...})        # raw bytes, exact headers
    with sdk(gateway) as client: ...                # the official SDK, without retries of its own
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from openai import AsyncOpenAI, OpenAI
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.client import CLIENT_S, Headers, Open, Response, send
from tests.e2e.until import until
from tests.services import free_port

ROOT: Final = Path(__file__).parents[2]
KEY: Final = "sk-troy-" + "e2e0" * 12
ADMIN: Final = "admin-token-of-the-end-to-end-tests"
START_S: Final = 40.0
KILL_AFTER_S: Final = 10.0
CHAT: Final = "/v1/chat/completions"
LISTENS: Final = re.compile(r"listens on http://127\.0\.0\.1:(\d+)")
NOTHING: Final[Mapping[str, str]] = {}


class Gateway:
    """One `troyproxy serve` in *folder*; it may be killed and started again there."""

    def __init__(self, folder: Path, arguments: Sequence[str] = (), env: Mapping[str, str] = NOTHING) -> None:
        self.folder, self.port = folder, free_port()
        self.config_path, self.database = folder / "troyproxy.yaml", folder / "data" / "troy.db"
        self._command = [sys.executable, "-m", "troyproxy", "serve", *arguments]
        self._env = dict(env)
        self._starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / "gateway.log"

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def pid(self) -> int:
        """The process, while it runs."""
        assert self._process is not None
        return self._process.pid

    def write_config(self, config: Mapping[str, object] | str) -> None:
        """Write the config file: JSON is YAML."""
        text = config if isinstance(config, str) else json.dumps(config, indent=1)
        self.config_path.write_text(text, encoding="utf-8")

    def start(self) -> None:
        """Start the process, always on the same port, and wait until it is ready."""
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env={**os.environ, "PYTHONPATH": path, "TROY_PORT": str(self.port), "TROY_DRAIN_S": "0", **self._env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )
        self._starts += 1
        until(self._ready, within_s=START_S)

    def _ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"the gateway ended with {self._process.returncode}:\n{self.output()}"
        # Before it listens nobody may connect: on loopback a connection to a free port can meet itself.
        said = LISTENS.findall(self._log.read_text(encoding="utf-8"))
        if len(said) < self._starts:
            return False
        self.port = int(said[-1])
        try:
            return self.get("/readyz").status == 200
        except OSError:
            return False

    def output(self) -> str:
        """Return the end of what the process wrote."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-20_000:] if self._log.exists() else ""

    def signal(self, number: int) -> None:
        """Send a signal to the process."""
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self, within_s: float = START_S) -> int:
        """Wait for the end of the process and return its status."""
        assert self._process is not None
        return self._process.wait(timeout=within_s)

    def kill(self) -> None:
        """End the process as a power failure would."""
        self.signal(signal.SIGKILL)
        self.wait()

    def stop(self) -> None:
        """End the process in an orderly way, or after 10 s in any."""
        if self._process is None or self._process.poll() is not None:
            return
        self.signal(signal.SIGTERM)
        try:
            self.wait(KILL_AFTER_S)
        except subprocess.TimeoutExpired:
            self.kill()

    # What clients send

    def send(self, method: str, path: str, body: bytes = b"", headers: Headers = ()) -> http.client.HTTPConnection:
        """Send one request exactly as given, plus host and length, and wait for nothing."""
        return send(self.port, method, path, body, headers)

    def call(self, method: str, path: str, body: bytes = b"", headers: Headers = ()) -> Open:
        """Send one request and return when the head of its answer is there."""
        return Open(self.send(method, path, body, headers))

    def whole(self, method: str, path: str, body: bytes = b"", headers: Headers = ()) -> Response:
        """Send one request and return the whole answer."""
        with closing(self.call(method, path, body, headers)) as answer:
            return answer.whole()

    def get(self, path: str, *, token: str | None = None) -> Response:
        """Get *path*."""
        return self.whole("GET", path, headers=_bearer(token))

    def post(self, payload: Mapping[str, object] | bytes, path: str = CHAT, **headers: str) -> Response:
        """Post JSON with the client key; ``x_troy_trace="1"`` is a header."""
        return self.whole("POST", path, _body(payload), [*client_headers(), *_named(headers)])

    def stream(self, payload: Mapping[str, object], **headers: str) -> Open:
        """Post a chat request and return when the head of its answer is there."""
        return self.call("POST", CHAT, _body({**payload, "stream": True}), [*client_headers(), *_named(headers)])

    # What an operator sees

    def admin(self, method: str, path: str, payload: Mapping[str, object] | None = None) -> Response:
        """Call the admin API."""
        body = b"" if payload is None else _body(payload)
        return self.whole(method, path, body, [*_bearer(ADMIN), ("content-type", "application/json")])

    def status(self) -> dict[str, Any]:
        """Return ``/api/status``."""
        answer = self.admin("GET", "/api/status")
        assert answer.status == 200, answer.body
        value: dict[str, Any] = answer.json()
        return value

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of the samples of ``troyproxy_<name>`` that carry *labels*."""
        text = self.get("/metrics").body.decode()
        samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
        wanted = (s for s in samples if s.name == f"troyproxy_{name}" and labels.items() <= s.labels.items())
        return sum(sample.value for sample in wanted)

    def row(self, request_id: str) -> dict[str, Any]:
        """Return the usage row of a request, waiting for the writer."""
        found = until(lambda: self._row(request_id))
        return {**found, **{name: json.loads(found[name]) for name in ("attempts", "skipped", "needs")}}

    def _row(self, request_id: str) -> dict[str, Any]:
        with closing(sqlite3.connect(self.database, timeout=5)) as database:
            database.row_factory = sqlite3.Row
            found = database.execute("select * from usage_rows where request_id = ?", (request_id,)).fetchone()
        return {} if found is None else dict(found)

    def rows(self) -> list[dict[str, Any]]:
        """Return every usage row that is written by now, oldest first."""
        with closing(sqlite3.connect(self.database, timeout=5)) as database:
            database.row_factory = sqlite3.Row
            return [dict(row) for row in database.execute("select * from usage_rows order by at")]


def client_headers() -> list[tuple[str, str]]:
    """Return what every client sends."""
    return [("authorization", f"Bearer {KEY}"), ("content-type", "application/json")]


def _bearer(token: str | None) -> list[tuple[str, str]]:
    return [] if token is None else [("authorization", f"Bearer {token}")]


def _named(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name.replace("_", "-"), value) for name, value in headers.items()]


def _body(payload: Mapping[str, object] | bytes) -> bytes:
    return payload if isinstance(payload, bytes) else json.dumps(payload).encode()


def chat(model: str, text: str = "hi", **more: object) -> dict[str, object]:
    """Return a chat request."""
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


@contextmanager
def run_gateway(folder: Path, config: Mapping[str, object], *arguments: str, **env: str) -> Iterator[Gateway]:
    """Run a gateway on *config*; the client key `KEY` is added to it. *arguments* go to ``serve``."""
    keys = {"keys": [{"name": "e2e", "key": KEY}]}
    database = folder / "data" / "troy.db"
    ours = {
        "TROY_CONFIG": str(folder / "troyproxy.yaml"),
        "TROY_DATABASE_URL": f"sqlite+aiosqlite:///{database}",
        "TROY_ADMIN_TOKEN": ADMIN,
        "TROY_LOG": "info,json",
    }
    gateway = Gateway(folder, arguments, {**ours, **env})
    gateway.write_config({**keys, **config})
    with running(gateway):
        yield gateway


@contextmanager
def running(gateway: Gateway) -> Iterator[None]:
    """Start *gateway*, and stop it at the end."""
    try:
        gateway.start()
        yield
    finally:
        gateway.stop()


@contextmanager
def sdk(gateway: Gateway) -> Iterator[OpenAI]:
    """Return the official client, without retries of its own."""
    with OpenAI(base_url=gateway.base_url, api_key=KEY, max_retries=0, timeout=CLIENT_S) as client:
        yield client


def async_sdk(gateway: Gateway) -> AsyncOpenAI:
    """Return the official asynchronous client, a context manager."""
    return AsyncOpenAI(base_url=gateway.base_url, api_key=KEY, max_retries=0, timeout=CLIENT_S)
