"""Counting together: one trip after another, and nobody waits for a place that does not answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tests.fake_limits import FakeSharedLimits
from tests.fakes import FakeClock, settle
from troyproxy.accounting.limits import Account, Limits
from troyproxy.ports import Admission, Correction, Counted
from troyproxy.proxy.limit_sharing import PER_TRIP, LimitSharing, Pace

pytestmark = pytest.mark.anyio
LIMITS = Limits(requests=1000, tokens=100)
SPENT = Correction("k", LIMITS, Account(at=0.0), 5)


def admission(tokens: int = 0, key_id: str = "k") -> Admission:
    return Admission(key_id, LIMITS, Account(at=0.0), tokens)


class Office:
    """A sharing that runs, and the place that it shares through."""

    def __init__(self) -> None:
        self.shared, self.clock = FakeSharedLimits(), FakeClock(manual=True)
        self.sharing = LimitSharing(self.shared, clock=self.clock)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Office]:
        await self.sharing.join()
        task = asyncio.get_running_loop().create_task(self.sharing.follow())
        await settle()
        try:
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def ask(self, order: Admission | None = None) -> asyncio.Task[Counted | None]:
        return asyncio.get_running_loop().create_task(self.sharing.ask(order or admission()))


@pytest.fixture
async def office(anyio_backend: str) -> AsyncIterator[Office]:
    async with Office().running() as running:
        yield running


async def test_an_answer_comes_back(office: Office) -> None:
    counted = await office.sharing.ask(admission(30))
    assert counted is not None
    assert counted.account.tokens == 70


async def test_what_comes_while_a_trip_is_under_way_goes_together_and_in_order(office: Office) -> None:
    office.shared.held = held = asyncio.Event()
    first = office.ask()
    await settle()
    later = [office.ask(admission(1)), office.ask(admission(2))]
    await settle()
    office.sharing.tell(SPENT)
    held.set()
    await asyncio.gather(first, *later)
    assert [[order.tokens for order in trip] for trip in office.shared.trips] == [[0], [1, 2, 5]]


async def test_a_trip_is_bounded(office: Office) -> None:
    for _ in range(PER_TRIP + 1):
        office.sharing.tell(SPENT)
    await settle()
    assert [len(trip) for trip in office.shared.trips] == [PER_TRIP, 1]


async def test_a_place_that_fails_leaves_everybody_who_waits_alone(office: Office) -> None:
    office.shared.held = held = asyncio.Event()
    asked = [office.ask() for _ in range(2)]
    await settle()
    asked.append(office.ask())
    await settle()
    office.sharing.tell(SPENT)
    office.shared.down = True
    held.set()
    assert await asyncio.gather(*asked) == [None, None, None]
    assert (office.sharing.up, office.sharing.alone, len(office.shared.trips)) == (False, 3, 1)


async def test_nobody_waits_while_it_is_down(office: Office) -> None:
    office.shared.down = True
    await office.sharing.ask(admission())
    office.sharing.tell(SPENT)
    assert await office.sharing.ask(admission()) is None
    assert len(office.shared.trips) == 1


async def test_it_comes_back_by_itself_and_outages_are_said_once(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "troyproxy.limits")
    office.shared.down = True
    await office.sharing.ask(admission())
    await office.clock.advance(10)
    office.shared.down = False
    await office.clock.advance(2)
    assert await office.sharing.ask(admission()) is not None
    assert [record.message for record in caplog.records] == [
        "down; each instance counts the limits of keys by itself",
        "the limits of keys are counted together again",
    ]


async def test_attempts_are_spaced(office: Office) -> None:
    office.shared.down = True
    await office.sharing.ask(admission())
    await office.clock.advance(10)
    assert office.clock.slept == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0, 2.0]


async def test_a_place_that_can_be_opened_but_not_used_is_tried_ever_less_often(office: Office) -> None:
    for _ in range(3):
        office.shared.down = True
        await office.sharing.ask(admission())
        office.shared.down = False
        await office.clock.advance(office.clock.slept[-1])
        assert office.sharing.up
    assert office.clock.slept == [0.1, 0.2, 0.4]


async def test_a_place_that_goes_away_while_nobody_asks_is_found_out(office: Office) -> None:
    office.shared.down = True
    await asyncio.sleep(Pace().idle_s + 0.1)
    assert (office.sharing.up, office.sharing.alone) == (False, 0)


async def test_a_request_that_leaves_while_it_waits_is_not_charged(office: Office) -> None:
    office.shared.held = held = asyncio.Event()
    office.ask()
    await settle()
    queued = office.ask(admission(7))
    await settle()
    queued.cancel()
    held.set()
    await settle()
    assert [[order.tokens for order in trip] for trip in office.shared.trips] == [[0], []]


async def test_a_request_that_leaves_during_its_trip_gets_its_tokens_back(office: Office) -> None:
    office.shared.held = held = asyncio.Event()
    gone = office.ask(admission(60))
    await settle()
    gone.cancel()
    held.set()
    await settle()
    assert office.shared.accounts["k"].tokens == 100


async def test_a_request_that_leaves_and_was_refused_gets_nothing_back(office: Office) -> None:
    await office.sharing.ask(admission(100))
    office.shared.held = held = asyncio.Event()
    gone = office.ask(admission(60))
    await settle()
    gone.cancel()
    held.set()
    await settle()
    assert office.shared.accounts["k"].tokens == 0


async def test_a_place_that_is_down_at_the_start_stops_nothing() -> None:
    late = Office()
    late.shared.down = True
    async with late.running():
        assert await late.sharing.ask(admission()) is None
        late.shared.down = False
        await late.clock.advance(1)
        assert await late.sharing.ask(admission()) is not None


async def test_a_place_that_hangs_at_the_start_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    class Hanging(FakeSharedLimits):
        async def open(self) -> None:
            await asyncio.Event().wait()

    sharing = LimitSharing(Hanging(), clock=FakeClock(), pace=Pace(join_s=0.01))
    await sharing.join()
    assert (sharing.up, "does not answer" in caplog.text) == (False, True)


async def test_the_end_answers_everybody_and_disconnects() -> None:
    office = Office()
    async with office.running():
        office.shared.held = asyncio.Event()
        asked = office.ask()
        await settle()
    assert (await asked, office.sharing.up, office.shared.closed) == (None, False, 1)


async def test_it_can_be_started_again() -> None:
    office = Office()
    for _ in range(2):
        async with office.running():
            assert await office.sharing.ask(admission()) is not None
    assert office.shared.opened == 2
