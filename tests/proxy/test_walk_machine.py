"""Random traffic through the real walk, over a scripted upstream and in virtual time, judged by a model of the design.

Rules are what can happen from outside: requests (each with the answers that its attempts will meet), time, clients that
leave, an operator's clearing, a restart. Requests stay in flight from rule to rule, so that anything may meet anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from typing import Final, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.measuring import unmeasured
from tests.proxy.walk_answers import Answer
from tests.proxy.walk_model import WALK_S
from tests.proxy.walk_stage import CHAINS, Stage
from tests.virtual import VirtualLoop

T = TypeVar("T")
TICK_S: Final = 1 / 512
"""Passes between any two requests, so that no two begin at the same moment."""
COMMON: Final = (Answer.ERROR, Answer.RATE, Answer.HANG, Answer.OK)
QUICK: Final = (Answer.ERROR, Answer.RATE, Answer.UNAUTHORIZED)
WAITS_S: Final = st.sampled_from([0.1, 0.75, 3.1, 11.7])
MODELS: Final = st.sampled_from(list(CHAINS))
ANSWERS: Final = st.tuples(st.sampled_from(COMMON) | st.sampled_from(Answer), WAITS_S)


class Traffic(RuleBasedStateMachine):
    """Three members on two providers with two accounts each."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.stage = self.play(self.build())

    async def build(self) -> Stage:
        return Stage()

    def play(self, scene: Coroutine[object, object, T]) -> T:
        return self.loop.run_until_complete(scene)

    def teardown(self) -> None:
        self.play(self.stage.restart())
        self.loop.close()

    async def ask(self, model: str, answers: Sequence[tuple[Answer, float]], *, stream: bool) -> None:
        self.stage.ask(model, answers, stream=stream)
        await asyncio.sleep(TICK_S)

    @rule(model=MODELS, answers=st.lists(ANSWERS, max_size=8), stream=st.booleans())
    def a_request(self, model: str, answers: list[tuple[Answer, float]], stream: bool) -> None:
        self.play(self.ask(model, answers, stream=stream))

    @rule(
        model=MODELS,
        answer=st.sampled_from(Answer),
        wait_s=WAITS_S,
        requests=st.integers(2, 4),
        stream=st.booleans(),
    )
    def a_storm(self, model: str, answer: Answer, wait_s: float, requests: int, stream: bool) -> None:
        """Every attempt of several requests at once meets the same."""
        for _ in range(requests):
            self.play(self.ask(model, [(answer, wait_s)] * 8, stream=stream))

    @rule(answers=st.lists(ANSWERS, min_size=1, max_size=3), stream=st.booleans())
    def an_outage_and_a_probe(self, answers: list[tuple[Answer, float]], stream: bool) -> None:
        """A circuit opens, its wait passes, and the probe is not alone."""
        for _ in range(2):
            self.play(self.ask("alpha/m1", [(Answer.ERROR, 0.1)] * 2, stream=stream))
        self.play(asyncio.sleep(32.0))
        for given in (answers, []):
            self.play(self.ask("alpha/m1", given, stream=stream))

    @rule(
        before=st.sampled_from([Answer.OK, Answer.ERROR]),
        slow=st.sampled_from(COMMON[:2]) | st.just(Answer.UNKNOWN_FIELD),
        quick=st.lists(st.sampled_from(QUICK), min_size=2, max_size=2),
    )
    def a_crossing(self, before: Answer, slow: Answer, quick: list[Answer]) -> None:
        """One request waits for its answer while another changes the state of the same pairs."""
        self.play(self.ask("alpha/m1", [(before, 0.1)], stream=True))
        self.play(asyncio.sleep(0.2))
        self.play(self.ask("alpha/m1", [(slow, 0.75)], stream=True))
        self.play(self.ask("alpha/m1", [(answer, 0.1) for answer in quick], stream=True))
        self.play(asyncio.sleep(1.0))

    @rule(limit=st.sampled_from([Answer.RATE, Answer.RATE_HINT]), then=ANSWERS)
    def a_limit_that_ends(self, limit: Answer, then: tuple[Answer, float]) -> None:
        self.play(self.ask("beta/m2", [(limit, 0.1)], stream=False))
        self.play(asyncio.sleep(20.2))
        self.play(self.ask("beta/m2", [then], stream=False))

    @rule(seconds=st.sampled_from([0.5, 1.0, 2.5, 6.0, 13.0, 31.0, 125.0, 301.0]))
    def time_passes(self, seconds: float) -> None:
        self.play(asyncio.sleep(seconds))
        self.play(asyncio.sleep(TICK_S))

    @precondition(lambda self: self.stage.requests)
    @rule(which=st.integers(0, 20))
    def a_client_leaves(self, which: int) -> None:
        requests = self.stage.requests
        requests[which % len(requests)].left.set()
        self.play(asyncio.sleep(TICK_S))

    @rule(
        key=st.sampled_from(
            [
                (None, None, None),
                ("alpha", None, None),
                ("alpha", "alpha#A", None),
                ("alpha", None, "m1"),
                ("alpha", "alpha#B", "m1"),
                ("beta", "beta#A", None),
            ]
        )
    )
    def an_operator_clears(self, key: tuple[str | None, str | None, str | None]) -> None:
        self.play(self.clear(*key))

    async def clear(self, *key: str | None) -> None:
        self.stage.health.clear(*key)

    @rule()
    def a_restart(self) -> None:
        self.play(self.stage.restart())

    @rule()
    def quiet(self) -> None:
        """Whatever is on its way ends by its own deadlines."""
        self.play(asyncio.sleep(2 * WALK_S))
        assert not [request for request in self.stage.requests if not request.task.done()]

    @invariant()
    def all_is_as_the_design_has_it(self) -> None:
        assert self.play(self.look()) == []

    async def look(self) -> list[str]:
        return list(self.stage.look())


@pytest.fixture(autouse=True)
def _not_measured() -> Iterator[None]:
    with unmeasured():
        yield


Traffic.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestTraffic = Traffic.TestCase
