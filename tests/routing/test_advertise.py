from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.routing.builders import combo, model, provider, snapshot
from troyproxy.catalog.models import Capabilities, Limits, Model
from troyproxy.routing.advertise import Advert, advertise, advertise_auto
from troyproxy.routing.eligibility import shortfall
from troyproxy.routing.members import expand, leaves
from troyproxy.routing.needs import Needs

FLAGS = st.none() | st.booleans()
SIZES = st.none() | st.integers(1, 100)
MODELS = st.builds(
    lambda tools, vision, context, output: model("m", tools=tools, vision=vision, context=context, output=output),
    FLAGS,
    FLAGS,
    SIZES,
    SIZES,
)


def advert(*models: Model) -> Advert:
    """What a combo of these models, each at its own provider, advertises."""
    providers = [provider(f"p{i}", m) for i, m in enumerate(models)]
    root = combo("c", *(f"{p.id}/{m.id}" for p, m in zip(providers, models, strict=True)))
    return advertise(root, snapshot(*providers))


@pytest.mark.parametrize(
    ("one", "two", "both"),
    [
        (True, True, True),
        (True, False, False),
        (False, None, False),
        (True, None, None),
        (None, None, None),
    ],
)
def test_a_capability_is_advertised_only_if_every_member_has_it(
    one: bool | None, two: bool | None, both: bool | None
) -> None:
    assert advert(model("m", reasoning=one), model("m", reasoning=two)).capabilities.reasoning is both


def test_limits_are_the_minimum_of_those_known() -> None:
    found = advert(model("m", context=9), model("m", context=5, output=3), model("m"))
    assert found.limits == Limits(5, 3)


def test_members_of_nested_combos_count_and_lost_ones_do_not() -> None:
    house = snapshot(provider("alpha", model("m1", tools=True), model("m2", tools=False)), combo("in", "alpha/m2"))
    assert advertise(combo("c", "alpha/m1", "nosuch/x"), house).capabilities.tools is True
    assert advertise(combo("c", "alpha/m1", "combo:in"), house).capabilities.tools is False


def test_a_combo_of_nobody_knows_nothing() -> None:
    assert advert() == Advert(Capabilities(), Limits())


@pytest.mark.parametrize(
    ("one", "two", "either"), [(True, False, True), (None, True, True), (False, None, None), (False, False, False)]
)
def test_auto_advertises_the_strongest_of_its_pool(one: bool | None, two: bool | None, either: bool | None) -> None:
    house = snapshot(
        provider("alpha", model("m", tools=one, context=5)),
        provider("beta", model("m", tools=two, context=9, output=2)),
    )
    found = advertise_auto(house)
    assert (found.capabilities.tools, found.limits) == (either, Limits(9, 2))


def test_auto_without_connected_providers_knows_nothing() -> None:
    assert advertise_auto(snapshot(provider("alpha", "m", accounts=0))) == Advert(Capabilities(), Limits())


@given(st.lists(MODELS, min_size=1, max_size=4), st.integers(0, 100), st.integers(0, 100))
def test_a_request_within_what_is_advertised_has_only_eligible_members(
    models: list[Model], estimate: int, output: int
) -> None:
    said = advert(*models)
    estimate = min(estimate, said.limits.context or estimate)
    room = output if said.limits.context is None else said.limits.context - estimate
    output = min(output, room, said.limits.output or output)
    needs = Needs(
        tools=said.capabilities.tools is True,
        vision=said.capabilities.vision is True,
        est_tokens=estimate,
        max_output=output,
    )
    providers = [provider(f"p{i}", m) for i, m in enumerate(models)]
    root = expand(combo("c", *(f"{p.id}/m" for p in providers)), snapshot(*providers))
    assert {shortfall(leaf, needs, deny_unknown=True) for leaf in leaves(root)} == {None}
