"""A gateway with a shared state: what it says of it, and that it lives and ends with the gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.house import House, build
from tests.fakes import FakeClock, FakeStateMirror, settle
from troyproxy.app import Wiring
from troyproxy.errors import ConfigError

pytestmark = pytest.mark.anyio


@pytest.fixture
def mirror() -> FakeStateMirror:
    return FakeStateMirror()


@pytest.fixture
async def house(tmp_path: Path, mirror: FakeStateMirror, anyio_backend: str) -> AsyncIterator[House]:
    house = build(tmp_path, FakeClock(manual=True), wiring=Wiring(mirror=mirror))
    await house.gateway.life.start()
    yield house
    await house.gateway.life.stop()


async def shown(house: House) -> tuple[object, object, object]:
    """Return what `/readyz`, `/api/status` and `/metrics` say."""
    ready, status = await house.get("/readyz"), await house.get("/api/status")
    metrics = (await house.ask("GET", "/metrics")).body.decode()
    samples = [line.rpartition(" ")[2] for line in metrics.split("\n") if line.startswith("troyproxy_shared_state_up")]
    return ready["dependencies"]["shared_state"], status["shared_state"], samples


async def test_a_shared_state_that_works_is_shown(house: House) -> None:
    assert await shown(house) == ("ok", {"up": True, "failures": 0}, ["1.0"])


async def test_a_shared_state_that_is_down_is_a_degradation_not_an_outage(
    house: House, mirror: FakeStateMirror
) -> None:
    mirror.down = True
    await settle()
    await house.clock.advance(2.0)
    assert await shown(house) == ("down", {"up": False, "failures": 1}, ["0.0"])
    assert (await house.get("/readyz"))["status"] == "degraded"
    assert (await house.chat("demo")).status == 200


async def test_it_is_connected_before_the_first_request_and_disconnected_at_the_stop(
    house: House, mirror: FakeStateMirror
) -> None:
    assert (mirror.opened, mirror.reads, mirror.closed) == (1, 1, 0)
    await house.gateway.life.stop()
    assert mirror.closed == 1


async def test_without_one_nothing_is_said_of_it(tmp_path: Path) -> None:
    house = build(tmp_path, FakeClock(manual=True))
    await house.gateway.life.start()
    try:
        assert (await house.get("/api/status"))["shared_state"] is None
        assert b"\ntroyproxy_shared_state_up" not in (await house.ask("GET", "/metrics")).body
    finally:
        await house.gateway.life.stop()


async def test_a_url_that_is_none_stops_the_start_and_is_not_quoted(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="TROY_REDIS_URL") as refused:
        build(tmp_path, FakeClock(), redis_url="redis://:hush@h:99999999/0")
    assert "hush" not in str(refused.value)
