from __future__ import annotations

import pytest

from tests.proxy.rig import Rig, good, refusal
from troyproxy.ports import Failover

pytestmark = pytest.mark.anyio


async def test_the_way_from_provider_to_provider_is_told_once_a_retry_included(rig: Rig) -> None:
    said = refusal(400, "unknown field stream_options", param="stream_options")
    rig.script(alpha=refusal(500), beta=[said, refusal(500)], gamma=good())
    served = await rig.ask("three", stream=True)
    assert served.outcomes == ["transient", "model", "transient", "ok"]
    told = [each for (each,) in rig.observer.of("failed_over")]
    assert told == [
        Failover("three", "alpha", "beta", "transient"),
        Failover("three", "beta", "gamma", "transient"),
    ]


async def test_what_failed_last_is_the_answer_when_nobody_is_left(rig: Rig) -> None:
    rig.script(alpha=refusal(500, "first"), beta=refusal(503, "last"))
    served = await rig.ask()
    assert (served.exchange.status, served.error["message"]) == (503, "last")
