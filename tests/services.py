"""Services that tests start themselves, from what is installed, on a free port, in a folder of their own.

Where a binary is missing the test is skipped, with the Debian package in the reason; ``.ci/run`` makes that a failure.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest


def free_port() -> int:
    """Return a TCP port of the loopback that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


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

    def sql(self, statement: str, database: str = "postgres") -> None:
        """Run one statement, outside of a transaction."""
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-d", database]
        _run([str(self._binaries / "psql"), *where, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", statement])

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


def _postgres_binaries() -> Path | None:
    """Return the newest installed server's folder; Debian keeps it out of the path."""
    installed = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(installed, key=lambda path: int(path.parts[-3]), default=None)
    found = newest or (Path(path) if (path := shutil.which("initdb")) else None)
    return None if found is None else found.parent


def _run(command: Sequence[str]) -> None:
    # The output goes to a file: a server started in the background would keep a pipe open.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", timeout=120
        )
        output.seek(0)
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed: {output.read().decode(errors='replace')}")
