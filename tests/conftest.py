"""Fixtures and guards of every test: one event loop, fake time, seeded chance, a clean environment, no network."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Any

import hypothesis
import pytest
from coverage import Coverage

from tests.fakes import FakeClock
from tests.services import Postgres, postgres

hypothesis.settings.register_profile("default", deadline=None, max_examples=60)
hypothesis.settings.register_profile("ci", deadline=None, max_examples=60, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")

REQUIRE_SERVICES = "REQUIRE_TEST_SERVICES"
_LOCAL_NAMES = {"localhost", "localhost.", "::1", "0.0.0.0", "::", ""}
_FOREIGN = ("_API_KEY", "_PROXY", "_proxy")
_FOREIGN_PREFIXES = ("TROY_", "OTEL_", "AI_PROVIDER", "OPENAI_", "ANTHROPIC_", "PROMETHEUS_MULTIPROC")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def rng() -> random.Random:
    return random.Random(7)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """One server for all tests; `Postgres.empty` makes its database ``troy`` anew."""
    with postgres() as server:
        server.sql("CREATE DATABASE troy")
        yield server


@pytest.fixture
def running_postgres(postgres_server: Postgres) -> Iterator[Postgres]:
    """The server, for a test that stops it; it runs again afterwards."""
    yield postgres_server
    with suppress(RuntimeError):  # it runs already
        postgres_server.start()


def _is_foreign(name: str) -> bool:
    return name != REQUIRE_SERVICES and (
        name.startswith(_FOREIGN_PREFIXES) or name.rstrip("_23456789").endswith(_FOREIGN)
    )


@pytest.fixture(autouse=True, scope="session")
def _a_clean_environment() -> Iterator[None]:
    """Hide settings, provider keys and proxies of the person who runs the tests, from us and from our sub-processes."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if _is_foreign(name)]:
            patch.delenv(name)
        yield


def _is_local(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    return name is None or (isinstance(name, str) and (name in _LOCAL_NAMES or name.startswith("127.")))


@pytest.fixture(autouse=True, scope="session")
def _no_network() -> Iterator[None]:
    """Fail whatever talks beyond this machine: the suite passes without a network, and proves it."""
    connect, connect_ex, getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def refuse(host: object) -> None:
        if not _is_local(host):
            raise OSError(f"tests stay on this machine: {host!r}")

    def connect_here(self: socket.socket, address: Any) -> None:  # noqa: ANN401 - as the socket module has it
        refuse(address[0] if isinstance(address, tuple) else None)
        connect(self, address)

    def connect_ex_here(self: socket.socket, address: Any) -> int:  # noqa: ANN401 - as the socket module has it
        refuse(address[0] if isinstance(address, tuple) else None)
        return connect_ex(self, address)

    def resolve_here(host: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the socket module has it
        if not _is_local(host):
            raise socket.gaierror(socket.EAI_NONAME, f"tests stay on this machine: {host!r}")
        return getaddrinfo(host, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect_here)
        patch.setattr(socket.socket, "connect_ex", connect_ex_here)
        patch.setattr(socket, "getaddrinfo", resolve_here)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where the services must be there (`.ci/run`), a test skipped for want of one has failed.

    Such a skip names its remedy: "needs redis-server (Debian package redis-server)".
    """
    report = yield
    if report.skipped and os.environ.get(REQUIRE_SERVICES) == "1" and "Debian package" in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: a service is missing: {report.longrepr}"
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what one of several processes has measured while it has time: it is killed when it ends too slowly."""
    running = Coverage.current()
    if running is not None and hasattr(session.config, "workerinput"):
        running.stop()
        running.save()
