from __future__ import annotations

from tests.fakes import FakeClock
from troyproxy.proxy.learned import BOUND, REMEMBER_S, LearnedParameters


def test_parameters_of_one_model_add_up(clock: FakeClock) -> None:
    learned = LearnedParameters(clock)
    learned.learn("alpha", "m1", "a")
    learned.learn("alpha", "m1", "b")
    assert (learned.of("alpha", "m1"), learned.of("alpha", "m2")) == (frozenset({"a", "b"}), frozenset())


def test_they_are_forgotten_after_an_hour(clock: FakeClock) -> None:
    learned = LearnedParameters(clock)
    learned.learn("alpha", "m1", "a")
    clock.move(REMEMBER_S + 1)
    assert learned.of("alpha", "m1") == frozenset()


def test_the_memory_is_bounded(clock: FakeClock) -> None:
    learned = LearnedParameters(clock)
    for number in range(BOUND + 1):
        learned.learn("alpha", f"m{number}", "a")
    assert learned.of("alpha", "m0") == frozenset()


def test_what_is_learned_again_lasts_from_then_on(clock: FakeClock) -> None:
    learned = LearnedParameters(clock)
    learned.learn("alpha", "m1", "a")
    learned.learn("alpha", "m2", "b")
    clock.move(REMEMBER_S / 2)
    learned.learn("alpha", "m1", "c")
    clock.move(REMEMBER_S / 2 + 1)
    learned.learn("alpha", "m3", "d")
    assert [sorted(learned.of("alpha", name)) for name in ("m1", "m2", "m3")] == [["a", "c"], [], ["d"]]
