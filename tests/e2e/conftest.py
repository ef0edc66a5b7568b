"""Fixtures of the end-to-end tests: each module has one scripted upstream and one gateway of its own.

A module defines ``gateway`` (`run_gateway` with its configuration); the rest is here.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

import pytest
from openai import OpenAI

from tests.e2e.gateway import Gateway, sdk
from tests.e2e.upstreams import Upstreams, run_upstreams
from tests.measuring import processes_unmeasured

MEASURED: Final = tuple(
    f"test_{about}"
    for about in (
        *("client_keys", "durability", "first_run", "key_limits", "measured", "reload", "restart"),
        *("shutdown", "two_instances", "watching", "workers"),
    )
)
"""What modules are about, whose gateways run lines that no test in process runs: the life of processes."""


@pytest.fixture(autouse=True, scope="module")
def _measured_where_it_is_news(request: pytest.FixtureRequest) -> Iterator[None]:
    """Other modules send requests through what is measured in process already; it would take twice as long here."""
    if request.path.name.startswith(MEASURED):
        yield
    else:
        with processes_unmeasured():
            yield


@pytest.fixture(scope="module")
def upstreams() -> Iterator[Upstreams]:
    with run_upstreams() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gateway")


@pytest.fixture
def client(gateway: Gateway) -> Iterator[OpenAI]:
    with sdk(gateway) as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the gateway wrote when a test that used it fails."""
    report = yield
    if report.failed:
        used = getattr(item, "funcargs", {}).values()
        report.sections += [("the gateway's output", it.output()) for it in used if isinstance(it, Gateway)]
    return report
