"""The auto engine and the walk: probes in flight, what attempts teach, what is remembered when an answer begins."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes import Reply
from tests.proxy.auto_desk import priced
from tests.proxy.rig import DONE, Rig, answer, combo, delta, finish, good, refusal, role, stream
from troyproxy.accounting.finished import Finished
from troyproxy.ports import UpstreamFailed
from troyproxy.proxy.statistics import Key
from troyproxy.resilience.faults import Fault

pytestmark = pytest.mark.anyio

POOL = (priced("p0", 1.0), priced("p1", 5.0), combo("spec", "p0/m"))
TERM_S = 300.0


@pytest.fixture
def rig() -> Rig:
    made = Rig(*POOL)
    # A circuit that never opens leaves the field to exclusion.
    made.set(upstream_timeout_s=300.0, request_timeout_s=600.0)
    return made


async def exclude(rig: Rig, name: str = "p0") -> None:
    """Let a candidate be excluded, and its term be over."""
    for at in range(5):
        rig.auto.attempted(Finished(name, "m", "A", rig.clock.now() + at / 1000, ok=False))
    await asyncio.sleep(TERM_S)


def served(rig: Rig, *names: str) -> None:
    rig.script(**{name: answer() for name in names})


def replies(rig: Rig, name: str, *given: Reply) -> None:
    rig.script(**{name: given})


def in_it(rig: Rig) -> list[str]:
    """Return the order of a plan made now, as providers."""
    plan = rig.planner.draft(rig.call("auto")).plan
    return [candidate.provider.id for candidate in plan.candidates if candidate.provider is not None]


async def test_the_probe_is_asked_first_and_serves_its_request(rig: Rig) -> None:
    await exclude(rig)
    served(rig, "p0")
    done = await rig.ask("auto")
    assert (done.tried, done.call.ledger.marks) == (["p0#A"], ["probe"])
    assert in_it(rig) == ["p0", "p1"]


async def test_a_bad_probe_fails_over_and_is_out_for_the_next_term(rig: Rig) -> None:
    await exclude(rig)
    replies(rig, "p0", refusal(500))
    served(rig, "p1")
    done = await rig.ask("auto")
    assert done.tried == ["p0#A", "p1#A"]
    assert in_it(rig) == ["p1"]
    await asyncio.sleep(2 * TERM_S)
    assert rig.planner.draft(rig.call("auto")).run is not None
    assert in_it(rig)[0] == "p0"


@pytest.mark.parametrize(("timeout_s", "limit_s"), [(300.0, 75.0), (8.0, 5.0)])
async def test_a_probe_may_take_a_quarter_of_the_usual_time_and_at_least_five_seconds(
    rig: Rig, timeout_s: float, limit_s: float
) -> None:
    rig.set(upstream_timeout_s=timeout_s)
    await exclude(rig)
    replies(rig, "p0", Reply(before=[1_000.0]))
    served(rig, "p1")
    done = await rig.ask("auto")
    assert done.outcomes == ["transient", "ok"]
    assert done.call.ledger.attempts[0].duration_ms == pytest.approx(limit_s * 1000)


async def test_who_is_no_probe_has_all_his_time(rig: Rig) -> None:
    replies(rig, "p0", Reply(before=[1_000.0]))
    served(rig, "p1")
    done = await rig.ask("auto")
    assert done.call.ledger.attempts[0].duration_ms == pytest.approx(300_000)


async def test_who_is_on_probation_is_probed_as_the_last_resort_too(rig: Rig) -> None:
    await exclude(rig, "p0")
    await exclude(rig, "p1")
    replies(rig, "p0", refusal(500))
    replies(rig, "p1", answer(before=[100.0]))
    before = rig.clock.now()
    assert (await rig.ask("auto")).outcomes == ["transient", "transient"]
    assert rig.clock.now() - before == pytest.approx(75.0)  # a quarter of the usual time


async def test_who_is_on_probation_has_all_his_time_in_a_combo_that_does_not_score(rig: Rig) -> None:
    await exclude(rig)
    replies(rig, "p0", answer(before=[100.0]))
    assert (await rig.ask("spec")).outcomes == ["ok"]


async def test_of_many_requests_at_once_one_is_the_probe(rig: Rig) -> None:
    await exclude(rig)
    replies(rig, "p0", answer(before=[20.0]))
    replies(rig, "p1", *[answer(before=[20.0])] * 4)
    all_done = await asyncio.gather(*(rig.ask("auto") for _ in range(5)))
    assert sorted(done.tried[0] for done in all_done) == ["p0#A", *["p1#A"] * 4]
    assert [done.call.ledger.skipped[0].reason for done in all_done if done.tried[0] != "p0#A"] == ["excluded"] * 4


async def test_a_probe_that_streams_is_good_with_its_first_output(rig: Rig) -> None:
    rig.set(stream_idle_s=600.0)
    await exclude(rig)
    replies(rig, "p0", stream(role(), delta("a"), 500.0, delta("b"), finish(), DONE))
    async with asyncio.TaskGroup() as group:
        going = group.create_task(rig.ask("auto", stream=True))
        await asyncio.sleep(10.0)
        assert in_it(rig) == ["p0", "p1"]
    assert going.result().outcomes == ["ok"]


async def test_a_client_that_leaves_a_probe_frees_its_place(rig: Rig) -> None:
    await exclude(rig)
    replies(rig, "p0", answer(before=[50.0]))
    async with asyncio.TaskGroup() as group:
        going = group.create_task(rig.ask("auto"))
        await asyncio.sleep(1.0)
        assert in_it(rig) == ["p1"]
        going.cancel()
    assert in_it(rig)[0] == "p0"


async def test_a_request_that_is_wrong_excludes_nobody(rig: Rig) -> None:
    replies(rig, "p0", *[refusal(400, "no such field", param="messages")] * 8)
    for _ in range(8):
        await rig.ask("auto")
    assert not rig.observer.of("auto_excluded")


async def test_failures_of_the_walk_exclude(rig: Rig) -> None:
    replies(rig, "p0", *[Reply(before=[UpstreamFailed(Fault.CONNECT, body_sent=False)])] * 5)
    replies(rig, "p1", *[answer()] * 5)
    for _ in range(5):
        await rig.ask("spec")
        await asyncio.sleep(70.0)  # past cooldowns and circuits
    assert in_it(rig) == ["p1"]


async def test_an_explored_request_feeds_the_statistics(rig: Rig) -> None:
    rig.auto.exploration = 1.0
    replies(rig, "p1", answer(before=[2.0]))
    done = await rig.ask("auto")
    measured = rig.measuring.statistics.measures(key("p1"), rig.clock.now())
    assert (done.tried, done.call.ledger.marks) == (["p1#A"], ["explored"])
    assert measured.samples == 1
    assert measured.p95_ms == pytest.approx(2_000)


def key(name: str) -> Key:
    return name, "m", "A"


async def test_a_success_is_remembered_and_told_to_other_instances(rig: Rig) -> None:
    said: list[Finished] = []
    rig.measuring.tell(said.append)
    replies(rig, "p0", refusal(500), answer())
    replies(rig, "p1", answer())
    done = await rig.ask("auto")
    assert [(one.provider, one.ok, one.remember) for one in said] == [
        ("p0", False, ()),
        ("p1", True, done.call.remember),
    ]
    assert done.call.remember


async def test_what_served_is_known_until_it_fails(rig: Rig) -> None:
    replies(rig, "p1", answer(), refusal(500), answer())
    replies(rig, "p0", refusal(500), answer(), answer())
    assert (await rig.ask("auto/lkgp")).tried == ["p0#A", "p1#A"]
    await asyncio.sleep(60.0)
    again = await rig.ask("auto/lkgp")
    assert (again.tried, again.call.ledger.marks) == (["p1#A", "p0#A"], ["known"])
    await asyncio.sleep(60.0)
    assert (await rig.ask("auto/lkgp")).call.ledger.marks == ["known"]


async def test_a_stream_is_remembered_when_it_begins(rig: Rig) -> None:
    replies(rig, "p0", good())
    done = await rig.ask("auto", stream=True)
    assert rig.auto.memory.last(done.call.remember[0]) is not None
