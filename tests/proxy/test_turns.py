"""What the play-by-play says of locks and circuits."""

from __future__ import annotations

import pytest

from tests.proxy.rig import ALPHA, Rig, answer, combo, delta, fault, provider, refusal, reset, stream
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.resilience.health import HealthPolicy

pytestmark = pytest.mark.anyio


@pytest.fixture
def rig() -> Rig:
    return Rig(ALPHA, combo("one", "alpha/m1"), policy=WalkPolicy(trace=True), health=HealthPolicy())


async def asked(rig: Rig, **fields: object) -> list[str]:
    return (await rig.ask("one", **fields)).call.ledger.lines  # type: ignore[arg-type]  # fields of the payload


async def test_a_lock_is_told_with_its_time_and_class(rig: Rig) -> None:
    rig.script(alpha=refusal(429, retry_after="30"))
    assert "  cooldown alpha/m1 #A: 30 s (rate)" in await asked(rig)


async def test_a_lock_that_ended_is_cleared_by_the_next_success(rig: Rig) -> None:
    rig.script(alpha=[refusal(429, retry_after="30"), answer()])
    await asked(rig)
    await rig.clock.sleep(31)
    assert "  cleared alpha/m1 #A" in await asked(rig)


async def test_a_circuit_that_opens_and_closes_is_told(rig: Rig) -> None:
    rig.use(provider("alpha", "m1", accounts="ABC"), combo("one", "alpha/m1"))
    rig.script(alpha=[refusal(500), refusal(500), refusal(500), answer()])
    opened = await asked(rig)
    await rig.clock.sleep(400)
    closed = await asked(rig)
    assert [line for line in (*opened, *closed) if "circuit" in line] == [
        "  circuit alpha/m1: closed -> open",
        "  circuit alpha/m1: half_open -> closed",
    ]


async def test_a_cut_stream_is_told_too(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), reset()))
    assert any("cooldown alpha/" in line for line in await asked(rig, stream=True))


async def test_nothing_is_looked_up_when_nothing_is_printed() -> None:
    rig = Rig(ALPHA, combo("one", "alpha/m1"))
    rig.script(alpha=fault())
    assert not any("cooldown" in line for line in await asked(rig))
