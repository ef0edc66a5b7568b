"""Any events in any order: nothing clean is lost, moved or changed."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.leaks.chunks import LEAK, USAGE, Client, Event, chunk
from troyproxy.leaks.asked import Asked
from troyproxy.leaks.modes import LeakMode
from troyproxy.leaks.policy import Leak

NO_DEADLINE: Final = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
EVENTS: Final = st.one_of(
    st.builds(chunk, st.text(alphabet="<function=tol_cagwher>| \n{", max_size=9), st.integers(0, 2)),
    st.builds(lambda text, index: chunk(index=index, reasoning=text), st.text("a<|>tool_c", max_size=9), st.just(0)),
    st.builds(lambda index: chunk(index=index, finish="stop"), st.integers(0, 2)),
    st.builds(lambda index: chunk(index=index, role="assistant"), st.integers(0, 2)),
    st.just(USAGE),
)


@NO_DEADLINE
@given(st.lists(EVENTS, max_size=25))
def test_without_a_leak_the_client_receives_every_event_in_order(events: list[Event]) -> None:
    client = Client(LeakMode.AUTO, Asked(names=frozenset({"absent"})))
    client.run(list(events))
    if not client.told:
        assert client.sent == events


@NO_DEADLINE
@given(st.lists(st.integers(0, len(LEAK)), max_size=9), st.lists(EVENTS, max_size=12), st.randoms())
def test_a_leak_in_one_choice_costs_the_others_nothing(cuts: list[int], others: list[Event], rng: Random) -> None:
    leak = [chunk(LEAK[a:b], index=7) for a, b in pairwise([0, *sorted(cuts), len(LEAK)])]
    places = sorted(rng.randint(0, len(others)) for _ in leak)
    events = list(others)
    for place, event in reversed(list(zip(places, leak, strict=True))):
        events.insert(place, event)
    client = Client(LeakMode.SUPPRESS)
    rest = [event for event in client.run(events) if event not in leak]
    if [told.choice for told in client.told] == [7]:
        assert (client.content(7), rest) == ("", others)
    assert Leak(7, "F01") in client.told
