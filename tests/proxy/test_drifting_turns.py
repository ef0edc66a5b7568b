"""Models whose tool calls came as text lately: asked last on tool turns of ``default`` and ``auto``, nowhere else."""

from __future__ import annotations

from typing import Final

import pytest

from tests.fakes import FakeClock
from tests.proxy.auto_desk import AutoDesk, priced
from tests.proxy.rig import combo
from troyproxy.catalog.combos import Combo
from troyproxy.catalog.providers import Provider
from troyproxy.leaks.leak_rate import LeakRates
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.policy import WalkPolicy

TOOLS: Final = [{"type": "function", "function": {"name": "f"}}]
LATER: Final = {"x-troy-wants-tools": "1"}
PARTS: Final[tuple[Provider | Combo, ...]] = (
    *(priced(f"p{at}", 1.0 + at) for at in range(3)),
    combo("saved", "p0/m", "p1/m", "p2/m"),
    combo("known", "p0/m", "p1/m", strategy="lkgp"),
    combo("scored", "p0/m", "p1/m", "p2/m", strategy="auto"),
)


class Drifting(AutoDesk):
    """A desk whose planner reads leak rates that the test writes."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock, *PARTS)
        self.rates = LeakRates()
        self.planner = Planner(
            health=self.health,
            measuring=self.measuring,
            auto=self.auto,
            clock=clock,
            policy=WalkPolicy(),
            observer=self.observer,
            drifting=self.rates.late,
        )

    def leak(self, provider: str, *, times: int = 3) -> None:
        for _ in range(times):
            self.rates.note(provider, "m", leaked=True)

    def providers(self, model: str, **given: object) -> list[str]:
        """Plan a request and return the providers in the order to try."""
        plan = self.plan(model, **given).plan
        assert plan is not None
        return [candidate.spec.partition("/")[0] for candidate in plan.candidates]


@pytest.fixture
def desk(clock: FakeClock) -> Drifting:
    return Drifting(clock)


@pytest.mark.parametrize("model", ["default", "auto", "auto/cheap", "scored"])
@pytest.mark.parametrize("wanted", ["now", "later"])
def test_who_drifts_is_last_on_a_tool_turn(desk: Drifting, model: str, wanted: str) -> None:
    before = desk.providers(model)
    desk.leak("p0")
    turn: dict[str, object] = {"tools": TOOLS} if wanted == "now" else {"headers": LATER}
    assert (before, desk.providers(model, **turn)) == (["p0", "p1", "p2"], ["p1", "p2", "p0"])


@pytest.mark.parametrize("model", ["default", "auto"])
def test_a_chat_does_not_mind(desk: Drifting, model: str) -> None:
    desk.leak("p0")
    assert desk.providers(model) == ["p0", "p1", "p2"]


@pytest.mark.parametrize(("model", "saved"), [("saved", ["p0", "p1", "p2"]), ("known", ["p0", "p1"]), ("p0/m", ["p0"])])
def test_a_saved_order_stays(desk: Drifting, model: str, saved: list[str]) -> None:
    desk.leak("p0")
    assert desk.providers(model, tools=TOOLS) == saved


@pytest.mark.parametrize("model", ["default", "auto"])
def test_two_leaks_are_not_enough(desk: Drifting, model: str) -> None:
    desk.leak("p0", times=2)
    assert desk.providers(model, tools=TOOLS) == ["p0", "p1", "p2"]


@pytest.mark.parametrize("model", ["default", "auto"])
def test_good_turns_bring_it_back(desk: Drifting, model: str) -> None:
    desk.leak("p0")
    for _ in range(20):
        desk.rates.note("p0", "m", leaked=False)
    assert desk.providers(model, tools=TOOLS) == ["p0", "p1", "p2"]


@pytest.mark.parametrize("model", ["default", "auto"])
def test_the_trace_says_who_goes_last_and_why(desk: Drifting, model: str) -> None:
    desk.leak("p0")
    call = desk.plan(model, tools=TOOLS)
    (line,) = (line for line in call.ledger.lines if "came as text" in line)
    assert "p0/m" in line
    assert "p1/m" not in line
