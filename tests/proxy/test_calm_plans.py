"""What is kept between plans changes no plan: with it and without it they are equal, whoever is ill meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeClock
from tests.proxy.auto_desk import AutoDesk
from tests.proxy.planning import AUDIO, IMAGE, TOOL
from tests.proxy.rig import combo, provider
from tests.routing.builders import model
from troyproxy.catalog.combos import STRATEGY_NAMES, Combo
from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import Provider
from troyproxy.errors import TroyError
from troyproxy.proxy import trees
from troyproxy.proxy.call import Call
from troyproxy.proxy.draft import Draft
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.resilience.classes import ErrorClass
from troyproxy.routing.candidates import candidate_of
from troyproxy.routing.context import RouteContext
from troyproxy.routing.strategies import DRAWING, FIXED, STRATEGIES

MAYBE = st.none() | st.booleans()
SPECS = tuple(f"p{at}/{name}" for at in range(3) for name in ("m", "n"))
NAMES = st.sampled_from([*["c"] * 6, SPECS[0], "default", "default", "auto"])


@st.composite
def providers(draw: st.DrawFn) -> list[Provider]:
    """Three providers with two models each; capabilities, windows and accounts as it comes."""
    found = []
    for at in range(3):
        models = [
            model(
                name,
                context=draw(st.sampled_from([60, None, 4_000])),
                output=draw(st.sampled_from([None, 20])),
                tools=draw(MAYBE),
                vision=draw(MAYBE),
            )
            for name in ("m", "n")
        ]
        made = provider(f"p{at}", *models, accounts=draw(st.sampled_from(["A", "AB"])))
        off = tuple(replace(account, active=draw(st.booleans())) for account in made.accounts)
        found.append(replace(made, accounts=off) if draw(st.booleans()) else made)
    return found


@st.composite
def combos(draw: st.DrawFn) -> list[Combo]:
    """A combo, and one that may be inside it."""
    members = st.lists(st.sampled_from([*SPECS, "nosuch/x"]), max_size=4)
    strategies = st.sampled_from(STRATEGY_NAMES)
    inner = combo("inner", *draw(members), strategy=draw(strategies))
    nested = draw(st.sampled_from([(), ("inner",)]))
    return [combo("c", *draw(members), *nested, strategy=draw(strategies)), inner]


@dataclass(frozen=True)
class Ask:
    """One request."""

    name: str
    fields: dict[str, object]
    globs: tuple[str, ...]
    route: str
    ill: str | None
    """Whose models fail before it."""


ASKS = st.builds(
    Ask,
    name=NAMES,
    fields=st.fixed_dictionaries(
        {},
        optional={
            "tools": st.just([TOOL]),
            "messages": st.sampled_from([IMAGE, AUDIO, [{"role": "user", "content": "long " * 60}]]),
            "max_tokens": st.sampled_from([5, 10_000]),
            "response_format": st.just({"type": "json_schema"}),
            "session_id": st.just("s"),
        },
    ),
    globs=st.sampled_from([(), (), (), (), ("c",), ("p0/*",), ("p0/m", "p1/*")]),
    route=st.sampled_from([*["/v1/chat/completions"] * 4, "/v1/embeddings"]),
    ill=st.sampled_from([*[None] * 9, "p0"]),
)


def restless(desk: AutoDesk, *, deny_unknown: bool = False) -> Planner:
    """A planner of its own with the health of *desk*."""
    return Planner(
        health=desk.health,
        measuring=desk.measuring,
        auto=desk.auto,
        clock=desk.clock,
        policy=WalkPolicy(deny_unknown=deny_unknown),
        observer=desk.observer,
    )


def asked(desk: AutoDesk, ask: Ask) -> Call:
    key = Key("k", "k", b"", models=ask.globs) if ask.globs else None
    call = desk.call(ask.name, key=key, **ask.fields)  # type: ignore[arg-type]  # fields of the payload
    call.route, call.seed = ask.route, 7
    return call


def told(planner: Planner, call: Call) -> tuple[object, ...] | str:
    """All that a plan says: the draft, then what came of it."""
    try:
        draft = planner.draft(call)
    except TroyError as error:
        return repr(error)
    try:
        planner.plan(call)
    except TroyError as error:
        return (*_parts(draft), str(error))
    return _parts(draft)


def _parts(draft: Draft) -> tuple[object, ...]:
    left_out = draft.run.left_out if draft.run is not None else None
    return draft.root, draft.plan, draft.remember, draft.skips, left_out


@given(providers(), combos(), st.lists(ASKS, min_size=2, max_size=6), st.booleans())
def test_a_plan_with_what_is_kept_is_the_plan_without(
    some: list[Provider], others: list[Combo], asks: list[Ask], deny_unknown: bool
) -> None:
    desk = AutoDesk(FakeClock(), *some, *others)
    keeping, general = (restless(desk, deny_unknown=deny_unknown) for _ in range(2))
    for ask in asks:
        if ask.ill is not None:
            desk.fail(desk.snapshot.providers[ask.ill], "m", ErrorClass.RATE)
        with patch.object(HealthKeeper, "calm", return_value=False):
            expected = told(general, asked(desk, ask))
        assert told(keeping, asked(desk, ask)) == expected
        desk.clock.move(40.0)


def test_a_long_request_is_not_planned_by_what_a_short_one_left(clock: FakeClock) -> None:
    desk = AutoDesk(clock, provider("p0", model("m", context=60)), provider("p1", "m"), combo("c", "p0/m", "p1/m"))
    long = [{"role": "user", "content": "long " * 60}]
    assert [desk.order("c"), desk.order("c", messages=long), desk.order("c")] == [["p0", "p1"], ["p1"], ["p0", "p1"]]


@pytest.mark.parametrize("strategy", sorted(FIXED))
def test_a_calm_plan_of_a_saved_order_is_made_once(clock: FakeClock, strategy: str) -> None:
    desk = AutoDesk(clock, provider("p0", "m"), provider("p1", "m"), combo("c", "p0/m", "p1/m", strategy=strategy))
    drafts = [desk.planner.draft(desk.call("c")) for _ in range(2)]
    assert drafts[0] is drafts[1]


def test_what_one_tree_keeps_is_bounded(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "MOST", 1)
    desk = AutoDesk(clock, provider("p0", "m"), provider("p1", "m"))
    keys = [Key("k", "k", b"", models=globs) for globs in (("p0/*",), ("p0/m", "p1/*"), ("p0/*",))]
    drafts = [desk.planner.draft(desk.call("default", key=key)) for key in keys]
    assert (drafts[0] == drafts[2], drafts[0] is drafts[2]) == (True, False)


class Undrawn(Random):
    """Nobody may draw from it."""

    def random(self) -> float:
        raise AssertionError

    def getrandbits(self, k: int, /) -> int:
        raise AssertionError(k)


@pytest.mark.parametrize("name", sorted(STRATEGIES.keys() - DRAWING))
def test_a_strategy_that_is_not_said_to_draw_does_not(name: str) -> None:
    members = [candidate_of(provider(f"p{at}", "m"), "m", weight=at) for at in range(4)]
    assert len(STRATEGIES[name](members, RouteContext(0.0, Undrawn())).members) == 4


@pytest.mark.parametrize("name", sorted(DRAWING & STRATEGIES.keys()))
def test_a_strategy_that_is_said_to_draw_does(name: str) -> None:
    members = [candidate_of(provider(f"p{at}", "m"), "m", weight=at) for at in range(4)]
    with pytest.raises(AssertionError):
        STRATEGIES[name](members, RouteContext(0.0, Undrawn()))
