"""Field cases RA-07 and EC-04 over hours: the real walk on a clock that jumps, since no test waits for a day."""

from __future__ import annotations

from typing import Final

import anyio
import pytest

from tests.fakes import Reply
from tests.proxy.rig import Rig, answer, provider, refusal
from tests.virtual import VirtualLoop

pytestmark = pytest.mark.anyio
DAY_S: Final = 86_400.0
RESETS: Final = answer({"error": {"message": "limit reached, resets after 26h10m5s", "code": 429}}, 429)
BROKE: Final[dict[str, Reply]] = {
    "402": answer({"error": {"message": "payment required", "code": 402}}, 402),
    "429 insufficient_quota": refusal(429, "You exceeded your current quota", "insufficient_quota"),
    "429 out of credits": refusal(
        429, "rejected", anthropic_ratelimit_unified_overage_disabled_reason="out_of_credits"
    ),
}


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": VirtualLoop}


async def calls_of_a(first: Reply, *, requests: int, over_s: float) -> tuple[int, int]:
    """Return how often account A was called, which always answers *first*, and how many requests B served."""
    rig = Rig(provider("alpha", "m1", accounts="AB"))
    served: list[str] = []
    for _ in range(requests):
        rig.script(alpha=[first, answer()] if rig.health.cooldown("alpha", "alpha#A", "m1") is None else [answer()])
        done = await rig.ask("alpha/m1")
        assert done.exchange.status == 200
        served += done.tried
        await anyio.sleep(over_s / requests)
    assert rig.idle
    return served.count("alpha#A"), served.count("alpha#B")


async def test_ra_07_an_account_that_is_empty_until_tomorrow_is_asked_a_few_dozen_times_a_day() -> None:
    of_a, of_b = await calls_of_a(RESETS, requests=1000, over_s=DAY_S)
    assert of_a <= 48
    assert of_b == 1000


@pytest.mark.parametrize("kind", BROKE)
async def test_ec_04_an_account_without_money_is_asked_once_in_ten_minutes(kind: str) -> None:
    assert await calls_of_a(BROKE[kind], requests=100, over_s=600) == (1, 100)


async def test_ra_07_without_a_hint_the_back_off_climbs_and_a_success_resets_it() -> None:
    of_a, of_b = await calls_of_a(refusal(429, "slow down"), requests=1000, over_s=DAY_S)
    assert of_a <= DAY_S / 300 + 10
    assert of_b == 1000
