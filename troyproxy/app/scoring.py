"""Makes the auto engine and lets it hear of every attempt."""

from __future__ import annotations

from troyproxy.ports import Clock, Observer
from troyproxy.proxy.auto_engine import AutoEngine
from troyproxy.proxy.boards import Boards
from troyproxy.proxy.measuring import Measuring
from troyproxy.proxy.memory import TargetMemory
from troyproxy.settings.fitness import load_fitness


def auto_engine(measuring: Measuring, clock: Clock, observer: Observer, *, exploration: float) -> AutoEngine:
    """Return the engine of this process; *exploration* is the setting's rate."""
    engine = AutoEngine(
        clock=clock,
        memory=TargetMemory(clock),
        boards=Boards(measuring.standing, load_fitness()),
        exploration=exploration,
        observer=observer,
    )
    measuring.health.watch(engine.memory.hear)
    measuring.tell(engine.attempted, of_others=engine.heard)
    return engine
