"""``troyproxy serve`` as a process of its own, in a folder of its own, seen from outside."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from tests.e2e.until import until

ROOT: Final = Path(__file__).parents[2]
START_S: Final = 40.0


def command(*words: str) -> list[str]:
    """Return how this interpreter runs the command line."""
    return [sys.executable, "-m", "troyproxy", *words]


def environment(**env: str) -> dict[str, str]:
    """Return an environment in which the package is found."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "TROY_DRAIN_S": "0", **env}


def once(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run one command that ends by itself."""
    return subprocess.run(
        command(*words),
        cwd=folder,
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
    )


class Served:
    """A running server; `err` is everything on standard error so far."""

    def __init__(self, process: subprocess.Popen[bytes], err: Path) -> None:
        self.process, self._err = process, err
        self.port = 0

    @property
    def err(self) -> str:
        return self._err.read_text(encoding="utf-8")

    def find(self, pattern: str) -> re.Match[str]:
        """Return the first match on standard error, waiting for it."""
        found = until(lambda: re.search(pattern, self.err), within_s=START_S)
        assert found is not None
        return found

    def request(
        self, method: str, path: str, body: object = None, *, key: str | None = None, port: int | None = None
    ) -> http.client.HTTPConnection:
        """Send a request."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=20)
        headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return connection

    def call(
        self, method: str, path: str, body: object = None, *, key: str | None = None, port: int | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request and return the whole answer."""
        with closing(self.request(method, path, body, key=key, port=port)) as connection:
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def chat(self, key: str, model: str, **more: object) -> tuple[int, Mapping[str, str], Any]:
        """Ask *model*."""
        request = {"model": model, "messages": [{"role": "user", "content": "hi"}], **more}
        status, headers, body = self.call("POST", "/v1/chat/completions", request, key=key)
        return status, headers, json.loads(body)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the end and return the status."""
        self.process.send_signal(number)
        return self.process.wait(timeout=START_S)


@contextmanager
def serving(folder: Path, *words: str, tty: bool = False, **env: str) -> Iterator[Served]:
    """Run ``serve`` on a free port until it listens; *tty*: its standard error is a terminal."""
    err = folder / "err.txt"
    words = ("serve", "--port", "0", *words)
    argv = ["script", "-qec", " ".join(command(*words)), "/dev/null"] if tty else command(*words)
    with err.open("wb") as log:
        process = subprocess.Popen(
            argv, cwd=folder, env=environment(**env), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    served = Served(process, err)
    try:
        served.port = int(served.find(r"listens on http://127\.0\.0\.1:(\d+)")[1])
        yield served
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
