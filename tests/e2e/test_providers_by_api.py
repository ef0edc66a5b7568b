"""A gateway that knows no provider gets one by the admin API, and serves by it at once; its key is told to nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.client import Response
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, Upstreams

SECRET: Final = "sk-upstream-never-told-0123456789"
OTHER: Final = "sk-upstream-another-9876543210"
SOON_S: Final = 5.0
"""A second is promised; a machine that is busy with other tests may need more."""


@pytest.fixture(scope="module")
def gateway(folder: Path) -> Iterator[Gateway]:
    with run_gateway(folder, {}) as running:
        yield running


@pytest.fixture(scope="module")
def other(folder: Path, gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Another process on the same database."""
    there = tmp_path_factory.mktemp("other")
    with run_gateway(there, {}, TROY_DATABASE_URL=f"sqlite+aiosqlite:///{gateway.database}") as running:
        yield running


def add(gateway: Gateway, upstreams: Upstreams, name: str, key: str = SECRET) -> list[Response]:
    """Add a provider and a connection to it."""
    upstreams.script(name, HEALTHY)
    provider = {"id": name, "base_url": upstreams.base_url(name), "default_model": "m1"}
    return [
        gateway.admin("POST", "/api/providers", provider),
        gateway.admin("POST", "/api/connections", {"provider": name, "name": "main", "api_key": key}),
    ]


def served_by(answer: Response) -> Any:  # noqa: ANN401 -- a header or nothing
    return answer.headers.get("x-troy-account")


def test_the_next_request_is_served_with_its_key(gateway: Gateway, upstreams: Upstreams) -> None:
    before = gateway.post(chat("first/m1"))
    made = add(gateway, upstreams, "first")
    after = gateway.post(chat("first/m1"))
    assert ([answer.status for answer in made], before.status, after.status) == ([201, 201], 404, 200)
    assert served_by(after) == "main"
    assert [request.key for request in upstreams.requests("first")] == [SECRET]


def test_a_process_beside_it_serves_by_it_within_a_second(
    gateway: Gateway, other: Gateway, upstreams: Upstreams
) -> None:
    add(gateway, upstreams, "beside")
    until(lambda: other.post(chat("beside/m1")).status == 200, within_s=SOON_S)
    gateway.admin("DELETE", "/api/providers/beside?cascade=true")
    assert until(lambda: other.post(chat("beside/m1")).status == 404, within_s=SOON_S)


def test_a_key_never_goes_to_an_address_that_it_was_not_given_for(gateway: Gateway, upstreams: Upstreams) -> None:
    add(gateway, upstreams, "before")
    upstreams.script("behind", HEALTHY)
    moved = gateway.admin("PATCH", "/api/providers/before", {"base_url": upstreams.base_url("behind")})
    refused = gateway.post(chat("before/m1"))
    gateway.admin("PATCH", "/api/connections/before%23main", {"api_key": OTHER})
    served = gateway.post(chat("before/m1"))
    assert (moved.status, refused.status, served.status) == (200, 503, 200)
    assert [request.key for request in upstreams.requests("behind")] == [OTHER]


def test_it_is_all_there_after_a_restart(gateway: Gateway, upstreams: Upstreams) -> None:
    add(gateway, upstreams, "lasting")
    gateway.kill()
    gateway.start()
    assert gateway.post(chat("lasting/m1")).status == 200


def test_its_key_is_in_no_answer_no_log_and_no_file(gateway: Gateway, upstreams: Upstreams) -> None:
    answers = add(gateway, upstreams, "quiet") + add(gateway, upstreams, "quiet")
    paths = ["/api/providers", "/api/connections", "/api/connections/quiet%23main", "/api/status", "/api/requests"]
    answers += [gateway.admin("GET", path) for path in paths]
    answers += [gateway.admin("PATCH", "/api/connections/quiet%23main", {"api_key": [SECRET]})]
    answers += [gateway.post(chat("quiet/m1")), gateway.get("/metrics")]
    told = b"".join(answer.body for answer in answers) + gateway.output().encode()
    files = b"".join(path.read_bytes() for path in gateway.folder.rglob("*") if path.is_file())
    assert (SECRET.encode() in told, SECRET[-8:].encode() in told, SECRET.encode() in files) == (False, False, False)
