"""The retry budget at work: a total outage is not multiplied, and the client is told."""

from __future__ import annotations

import pytest

from tests.proxy.rig import Rig, answer, refusal
from troyproxy.proxy.retries import Retries
from troyproxy.resilience.retry_budget import RetryPolicy

pytestmark = pytest.mark.anyio


def use_up(rig: Rig) -> None:
    """Spend the floor of the budget: a hundred attempts in ten seconds."""
    for _ in range(100):
        rig.gear.retries.count_retry()


async def test_a_spent_budget_ends_the_walk_with_the_last_error(rig: Rig) -> None:
    use_up(rig)
    rig.script(alpha=refusal(500), beta=answer())
    served = await rig.ask("three")
    assert (served.tried, served.exchange.status) == (["alpha#A"], 500)
    assert served.exchange.header("x-troy-retry-budget") == "spent"


async def test_the_first_attempt_of_a_request_needs_no_budget(rig: Rig) -> None:
    use_up(rig)
    rig.script(alpha=answer())
    served = await rig.ask("three")
    assert served.exchange.status == 200
    assert served.exchange.header("x-troy-retry-budget") is None


async def test_a_budget_that_stopped_nothing_is_not_named(rig: Rig) -> None:
    use_up(rig)
    rig.script(alpha=refusal(500))
    served = await rig.ask("alpha/m1")
    assert (served.exchange.status, served.exchange.header("x-troy-retry-budget")) == (500, None)


async def test_a_refused_parameter_is_not_tried_again_without_budget(rig: Rig) -> None:
    use_up(rig)
    rig.script(alpha=refusal(400, "unknown field", param="stream_options"))
    served = await rig.ask("alpha/m1", stream=True)
    assert (served.tried, served.exchange.header("x-troy-retry-budget")) == (["alpha#A"], "spent")


async def test_ten_seconds_later_the_walk_goes_on_again(rig: Rig) -> None:
    use_up(rig)
    await rig.clock.sleep(10)
    rig.script(alpha=refusal(500), beta=answer())
    assert (await rig.ask("three")).exchange.status == 200


async def test_an_attempt_beyond_the_first_is_counted(rig: Rig) -> None:
    rig.script(alpha=refusal(500), beta=answer())
    for _ in range(99):
        rig.gear.retries.count_retry()
    await rig.ask("three")
    assert not rig.gear.retries.allowed


async def test_a_budget_of_zero_is_no_limit(rig: Rig) -> None:
    retries = Retries(rig.clock, RetryPolicy(ratio=0.0, floor_per_s=0.0))
    retries.count_request(rig.clock.now())
    retries.count_retry()
    assert retries.allowed
