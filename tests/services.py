"""Services that tests start themselves, from what is installed, on a free port, in a folder of their own.

Where a binary is missing the test is skipped, with the Debian package in the reason; ``.ci/run`` makes that a failure.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

START_S: Final = 20.0


def free_port() -> int:
    """Return a TCP port of the loopback that nobody uses.

    It is below those that the system gives to clients, so that it is still free when its user starts again.
    """
    while True:
        port = 10_000 + secrets.randbelow(20_000)
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


class Postgres:
    """A PostgreSQL cluster of the tests; `start` and `stop` work more than once."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries = binaries
        self._data = folder / "data"
        self._folder = folder
        self.port = free_port()

    def url(self, database: str) -> str:
        return f"postgresql+asyncpg://postgres@127.0.0.1:{self.port}/{database}"

    def create(self) -> None:
        self._as_postgres("initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")

    def start(self) -> None:
        options = (
            f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off"
            " -c full_page_writes=off -c max_connections=60 -c shared_buffers=16MB"
        )
        self._as_postgres(
            "pg_ctl", "-D", str(self._data), "-l", str(self._folder / "log"), "-o", options, "-w", "-t", "60", "start"
        )

    def stop(self) -> None:
        self._as_postgres("pg_ctl", "-D", str(self._data), "-m", "immediate", "-w", "stop")

    def sql(self, statement: str, database: str = "postgres") -> list[str]:
        """Run one statement, outside of a transaction, and return the lines of what it found."""
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-d", database]
        return _run([str(self._binaries / "psql"), *where, "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", statement])

    def empty(self, database: str) -> None:
        """Remove every table, and whoever still holds one. Much cheaper than a database for each test."""
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        self.sql(f"{others} AND pid <> pg_backend_pid()", database)
        self.sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public", database)

    def _as_postgres(self, program: str, *arguments: str) -> None:
        # PostgreSQL refuses to run as root.
        command = [str(self._binaries / program), *arguments]
        _run(["/usr/sbin/runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else command)


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Run a PostgreSQL server. Skips the test when none is installed."""
    binaries = _postgres_binaries()
    if binaries is None:
        pytest.skip("needs PostgreSQL (Debian package postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="troy-pg-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    server = Postgres(binaries, folder)
    try:
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Redis:
    """A Redis of the tests that keeps nothing on disk: `start`, `stop`, `freeze` and `thaw` work more than once."""

    def __init__(self, binary: str, folder: Path, password: str | None) -> None:
        self._binary, self._folder, self._password = binary, folder, password
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        user = f":{self._password}@" if self._password else ""
        return f"redis://{user}127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        options = ["--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no"]
        options += ["--dir", str(self._folder), "--maxmemory", "64mb"]
        options += ["--requirepass", self._password] if self._password else []
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binary, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder
            )
        deadline = time.monotonic() + START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"redis-server: {(self._folder / 'log').read_text(errors='replace')}")
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False

    def stop(self) -> None:
        """Kill it; it holds nothing worth keeping."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(timeout=START_S)

    def freeze(self) -> None:
        """Make it hang: connections stay, nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


@contextmanager
def redis(password: str | None = None) -> Iterator[Redis]:
    """Run a Redis server. Skips the test when none is installed."""
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("needs redis-server (Debian package redis-server)")
    with tempfile.TemporaryDirectory(prefix="troy-redis-") as folder:
        server = Redis(binary, Path(folder), password)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _postgres_binaries() -> Path | None:
    """Return the newest installed server's folder; Debian keeps it out of the path."""
    installed = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(installed, key=lambda path: int(path.parts[-3]), default=None)
    found = newest or (Path(path) if (path := shutil.which("initdb")) else None)
    return None if found is None else found.parent


def _run(command: Sequence[str]) -> list[str]:
    """Run *command* and return the lines that it wrote. Raises RuntimeError when it fails."""
    # The output goes to a file: a server started in the background would keep a pipe open.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", timeout=120
        )
        output.seek(0)
        wrote = output.read().decode(errors="replace")
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed: {wrote}")
        return wrote.split("\n")[:-1]
