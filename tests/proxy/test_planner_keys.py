"""What a key, a header or a kind of request leaves of the pool."""

from __future__ import annotations

import pytest

from tests.fakes import FakeClock
from tests.proxy.planning import Desk
from tests.proxy.rig import ALPHA, BETA, Rig, combo, model, provider, snapshot
from troyproxy.catalog.keys import Key
from troyproxy.errors import (
    InvalidRequest,
    ModelNotAllowed,
)
from troyproxy.proxy.call import Call

TOOL = {"type": "function", "function": {"name": "f"}}
IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]
AUDIO = [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}]}]


@pytest.fixture
def desk(clock: FakeClock) -> Desk:
    return Desk(clock)


def _members(call: Call) -> list[str]:
    assert call.plan is not None
    return [candidate.spec for candidate in call.plan.candidates]


# --- keys ---


def _key(*globs: str, **given: str) -> Key:
    return Key("k", "k", b"", models=globs, **given)  # type: ignore[arg-type]  # fields by name


def test_a_key_without_the_model_is_403(desk: Desk, rig: Rig) -> None:
    error = desk.refused(rig.call("alpha/m1", key=_key("beta/*")))
    assert (type(error), error.http_status) == (ModelNotAllowed, 403)


def test_a_matched_combo_opens_all_its_members(desk: Desk, rig: Rig) -> None:
    call = rig.call("two", key=_key("two"))
    desk.planner.plan(call)
    assert _members(call) == ["alpha/m1", "beta/m2"]


def test_default_is_limited_to_the_specs_that_a_key_matches(desk: Desk, rig: Rig) -> None:
    call = rig.call("default", key=_key("beta/*"))
    desk.planner.plan(call)
    assert (_members(call), "not-allowed" in call.ledger.skips) == (["beta/m2"], True)


def test_the_callers_provider_comes_first(desk: Desk, rig: Rig) -> None:
    calls = [rig.call("default", headers={"x-troy-provider": "gamma"}), rig.call("default", key=_key(provider="beta"))]
    for call in calls:
        desk.planner.plan(call)
    assert [_members(call)[0] for call in calls] == ["gamma/m4", "beta/m2"]


def test_an_unknown_preferred_provider_is_400(desk: Desk, rig: Rig) -> None:
    assert isinstance(desk.refused(rig.call("default", headers={"x-troy-provider": "nobody"})), InvalidRequest)


def test_a_layer_that_will_add_tools_can_say_so(desk: Desk, rig: Rig) -> None:
    rig.use(provider("alpha", model("m1", tools=False)), BETA)
    call = rig.call("default", headers={"x-troy-wants-tools": "1"})
    desk.planner.plan(call)
    assert _members(call) == ["beta/m2"]


# --- embeddings ---


def test_vectors_of_different_models_do_not_mix(desk: Desk, rig: Rig) -> None:
    rig.use(provider("alpha", "e1"), provider("beta", "v/e1", "e2"), combo("vec", "alpha/e1", "beta/v/e1", "beta/e2"))
    call = rig.call("vec", route="/v1/embeddings")
    desk.planner.plan(call)
    assert (_members(call), call.ledger.skips) == (["alpha/e1", "beta/v/e1"], "beta/e2=mixed-embeddings")


def test_mixed_vectors_can_be_allowed(desk: Desk, rig: Rig) -> None:
    mixed = combo("vec", "alpha/m1", "beta/m2", allow_mixed_embeddings=True)
    rig.use(ALPHA, BETA, mixed)
    call = rig.call("vec", route="/v1/embeddings")
    desk.planner.plan(call)
    assert len(_members(call)) == 2


def test_planning_needs_a_name_and_needs(desk: Desk) -> None:
    with pytest.raises(RuntimeError, match="resolved"):
        desk.planner.plan(Call("r", 0.0, 0.0, "/r", snapshot=snapshot(ALPHA)))
    with pytest.raises(RuntimeError, match="resolved"):
        desk.planner.members(Call("r", 0.0, 0.0, "/r", snapshot=snapshot(ALPHA)))
