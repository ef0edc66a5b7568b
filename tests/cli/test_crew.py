"""The crew and its rules, with workers that do what the test says, in a loop whose time jumps."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.fakes import settle
from tests.virtual import VirtualLoop
from troyproxy.cli.crew import LONGEST_PAUSE_S, STEADY_S, Crew, pause_s

pytestmark = pytest.mark.anyio
GRACE_S = 20.0


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": VirtualLoop}


class Scripted:
    """A worker that serves, ends and obeys when the test says so. *stubborn*: only SIGKILL ends it."""

    def __init__(self, number: int, *, stubborn: bool = False) -> None:
        self.name, self.serving = f"worker-{number}", False
        self.refusal: str | None = None
        self.heard: list[signal.Signals] = []
        self._stubborn = stubborn
        self._told: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._end: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def serve(self) -> None:
        self._told.set_result(True)

    def end(self, status: int = 1, refusal: str | None = None) -> None:
        self.refusal = refusal
        if not self._told.done():
            self._told.set_result(False)
        if not self._end.done():
            self._end.set_result(status)

    async def ready(self) -> bool:
        self.serving = await self._told
        return self.serving

    async def ended(self) -> int:
        status = await self._end
        self.serving = False
        return status

    def send(self, number: signal.Signals) -> None:
        self.heard.append(number)
        if number in {signal.SIGTERM, signal.SIGINT} and not self._stubborn:
            self.end(0)
        elif number == signal.SIGKILL:
            self.end(-9)


class Yard:
    """Where a crew of two works."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.hired: list[Scripted] = []
        self.at: list[float] = []
        self.buried: list[str] = []
        self.announced = self.broken = 0
        self._came, self.gate = asyncio.Event(), asyncio.Event()
        self.gate.set()
        self._stubborn = stubborn
        self.crew = Crew(2, self._hire, grace_s=GRACE_S, buried=self.buried.append)

    async def _hire(self, number: int) -> Scripted:
        if self.broken:
            self.broken -= 1
            raise OSError(11, "no more processes")
        await self.gate.wait()
        worker = Scripted(number, stubborn=self._stubborn)
        self.hired.append(worker)
        self.at.append(asyncio.get_running_loop().time())
        self._came.set()
        return worker

    async def hires(self, count: int) -> None:
        """Wait until so many workers have been hired."""
        while len(self.hired) < count:
            self._came.clear()
            await self._came.wait()

    def _announce(self) -> None:
        self.announced += 1

    @asynccontextmanager
    async def working(self) -> AsyncIterator[asyncio.Task[None]]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self.crew.run(self._announce))
            await settle()
            yield task
            self.crew.stop()

    async def full(self) -> None:
        """Let every worker serve."""
        for worker in self.hired[-2:]:
            worker.serve()
        await settle()


async def test_it_is_announced_once_and_only_when_all_serve() -> None:
    yard = Yard()
    async with yard.working():
        yard.hired[0].serve()
        await settle()
        assert yard.announced == 0
        yard.hired[1].serve()
        await settle()
        assert yard.announced == 1
        yard.hired[0].end(-9)
        await settle()
        yard.hired[2].serve()
        await settle()
        assert yard.announced == 1


async def test_a_worker_that_was_killed_is_started_again_at_once_under_its_number(
    caplog: pytest.LogCaptureFixture,
) -> None:
    yard = Yard()
    async with yard.working():
        await yard.full()
        yard.hired[1].end(-9)
        await settle()
        assert [worker.name for worker in yard.hired] == ["worker-1", "worker-2", "worker-2"]
        assert yard.buried == ["worker-2"]
    assert "worker-2 has ended by SIGKILL; it is started again" in caplog.text


async def test_one_that_keeps_dying_young_is_waited_for_longer_each_time() -> None:
    yard = Yard()
    async with yard.working():
        await yard.full()
        for _ in range(4):
            yard.hired[-1].end()
            await yard.hires(len(yard.hired) + 1)
            yard.hired[-1].serve()
            await settle()
    pauses = [round(later - before) for before, later in zip(yard.at[1:], yard.at[2:], strict=False)]
    assert pauses == [0, 1, 2, 4]


async def test_one_that_lived_long_is_started_again_at_once() -> None:
    yard = Yard()
    async with yard.working():
        await yard.full()
        for _ in range(3):
            await asyncio.sleep(STEADY_S)
            began = asyncio.get_running_loop().time()
            yard.hired[-1].end()
            await settle()
            yard.hired[-1].serve()
            await settle()
            assert yard.at[-1] == began


async def test_the_pause_has_an_end() -> None:
    assert [pause_s(n) for n in (0, 1, 2, 3, 100)] == [0, 0, 1, 2, LONGEST_PAUSE_S]


async def test_a_worker_that_refuses_at_the_start_stops_everything_in_its_own_words() -> None:
    yard = Yard()
    async with yard.working() as run:
        yard.hired[0].serve()
        await settle()
        yard.hired[1].end(1, "TROY_X: is wrong")
        await run
    assert yard.crew.failure == "TROY_X: is wrong"
    assert yard.hired[0].heard[0] is signal.SIGTERM


async def test_a_worker_that_dies_at_the_start_stops_everything() -> None:
    yard = Yard()
    async with yard.working() as run:
        yard.hired[0].end(3)
        await run
    assert yard.crew.failure == "worker-1 has ended with status 3"


async def test_a_worker_that_cannot_be_started_stops_everything_at_the_start() -> None:
    yard = Yard()
    yard.broken = 1
    async with yard.working() as run:
        await run
    assert yard.crew.failure == "worker-1 cannot be started: no more processes"


async def test_later_a_refusal_is_tried_again_while_another_serves(caplog: pytest.LogCaptureFixture) -> None:
    yard = Yard()
    async with yard.working():
        await yard.full()
        yard.broken = 1
        yard.hired[0].end(-9)
        await settle()
        await yard.hires(3)
        yard.hired[2].end(1, "the file is broken")
        await yard.hires(4)
    assert yard.crew.failure is None
    assert "worker-1 cannot be started" in caplog.text
    assert "the file is broken; it is started again" in caplog.text


async def test_when_nobody_serves_and_nobody_can_start_it_gives_up() -> None:
    yard = Yard()
    async with yard.working() as run:
        await yard.full()
        for worker in yard.hired[:2]:
            worker.end(-9)
        await settle()
        yard.hired[2].end(1, "the file is broken")
        await run
    assert yard.crew.failure == "the file is broken"


async def test_a_reload_reaches_those_who_serve_now_and_the_others_once_they_do() -> None:
    yard = Yard()
    async with yard.working():
        yard.hired[0].serve()
        await settle()
        yard.crew.reload()
        assert [worker.heard for worker in yard.hired] == [[signal.SIGHUP], []]
        yard.hired[1].serve()
        await settle()
        assert yard.hired[1].heard == [signal.SIGHUP]
        yard.crew.reload()
        assert [len(worker.heard) for worker in yard.hired] == [2, 2]


async def test_a_stop_waits_for_all_and_starts_nobody_again() -> None:
    yard = Yard()
    async with yard.working() as run:
        await yard.full()
        yard.crew.stop()
        await run
    assert (len(yard.hired), yard.buried) == (2, ["worker-1", "worker-2"])


async def test_a_stop_while_a_worker_is_being_started_reaches_it_too() -> None:
    yard = Yard()
    yard.gate.clear()
    async with yard.working() as run:
        yard.crew.stop()
        yard.gate.set()
        await run
    assert [worker.heard for worker in yard.hired] == [[signal.SIGTERM]] * 2


async def test_what_does_not_stop_in_time_is_killed(caplog: pytest.LogCaptureFixture) -> None:
    yard = Yard(stubborn=True)
    async with yard.working() as run:
        await yard.full()
        yard.crew.stop()
        began = asyncio.get_running_loop().time()
        await run
        assert asyncio.get_running_loop().time() - began == pytest.approx(GRACE_S)
    assert [worker.heard for worker in yard.hired] == [[signal.SIGTERM, signal.SIGKILL]] * 2
    assert "worker-1 did not stop within 20 s and is killed" in caplog.text


async def test_a_second_interrupt_ends_the_workers_at_once() -> None:
    yard = Yard(stubborn=True)
    async with yard.working() as run:
        await yard.full()
        yard.crew.stop(signal.SIGINT)
        yard.crew.stop(signal.SIGINT)
        assert yard.hired[0].heard == [signal.SIGTERM, signal.SIGINT]
        await run


async def test_a_stop_ends_the_wait_for_a_restart() -> None:
    yard = Yard()
    async with yard.working() as run:
        await yard.full()
        for _ in range(2):
            yard.hired[-1].end(-9)
            await settle()
        yard.crew.stop()
        await run
    assert len(yard.hired) == 3
