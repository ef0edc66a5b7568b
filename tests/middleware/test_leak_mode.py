"""Whose word on the leak mode counts: header, key, combo, serving provider, setting."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.middleware.apps import TOOLS
from troyproxy.catalog.combos import Combo
from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import NO_AUTH, Provider
from troyproxy.catalog.snapshot import Snapshot, build
from troyproxy.errors import InvalidRequest
from troyproxy.leaks.modes import LeakMode
from troyproxy.leaks.options import Exhausted, Options, Scope
from troyproxy.middleware.leak_mode import Calm, ModeChoice
from troyproxy.proxy.call import Call
from troyproxy.routing.names import NameKind, Resolution

OFF, SUPPRESS = LeakMode.OFF, LeakMode.SUPPRESS


def snapshot(**modes: str | dict[str, object] | None) -> Snapshot:
    return build([Provider(id=name, auth=NO_AUTH, app="inner", leak=mode) for name, mode in modes.items()])


def chosen(
    *,
    header: str | None = None,
    key: dict[str, object] | None = None,
    combo: object = None,
    provider: str | dict[str, object] | None = None,
    setting: LeakMode = SUPPRESS,
) -> LeakMode:
    """Return the mode for an answer of provider ``alpha`` when the five say what is given."""
    headers = ((b"x-troy-leak-mode", header.encode()),) if header is not None else ()
    call = Call(request_id="r", at=0, started=0, route="/", headers=headers, snapshot=snapshot(alpha=provider))
    call.key = Key(id="k", name="k", digest=b"", leak=key) if key is not None else None
    named = Combo(id="c", name="c", members=(), config={"leak": combo} if combo is not None else {})
    call.resolution = Resolution(NameKind.COMBO, "c", "c", combo=named)
    return ModeChoice(call, setting).of("alpha")


@pytest.mark.parametrize("low", [OFF, SUPPRESS])
def test_each_rank_overrules_those_below_it(low: LeakMode) -> None:
    high = OFF if low is SUPPRESS else SUPPRESS
    ranks: list[dict[str, object]] = [
        {"provider": str(low)},
        {"combo": str(low)},
        {"key": {"mode": str(low)}},
        {"header": str(low)},
    ]
    said: dict[str, object] = {"setting": high}
    for rank in ranks:
        flipped = {name: high if name == "setting" else _flip(value, high) for name, value in said.items()}
        assert chosen(**flipped, **rank) is low  # type: ignore[arg-type]
        said |= rank


def _flip(value: object, mode: LeakMode) -> object:
    return {"mode": str(mode)} if isinstance(value, dict) else str(mode)


def test_the_setting_holds_where_nobody_says_otherwise() -> None:
    assert (chosen(), chosen(setting=OFF)) == (SUPPRESS, OFF)


def test_a_combo_may_spell_its_mode_as_a_block() -> None:
    assert chosen(combo={"mode": "off"}) is OFF


@pytest.mark.parametrize("said", [False, {"mode": False}])
def test_a_bare_off_of_yaml_is_the_mode_off(said: object) -> None:
    assert chosen(combo=said) is OFF


def test_a_locked_key_ignores_the_header() -> None:
    assert chosen(header="off", key={"locked": True, "mode": "suppress"}, setting=OFF) is SUPPRESS


def test_a_locked_key_without_a_mode_leaves_it_to_the_others() -> None:
    assert chosen(header="off", key={"locked": True}) is SUPPRESS


def test_an_empty_header_says_nothing() -> None:
    assert chosen(header=" ") is SUPPRESS


def test_a_stored_mode_that_this_version_does_not_know_breaks_no_request() -> None:
    assert chosen(key={"mode": "mend"}, combo="mend", provider={"mode": "mend"}) is SUPPRESS


def test_a_wrong_header_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="unknown leak mode 'mend'"):
        chosen(header="mend")


@pytest.mark.parametrize(
    ("setting", "provider", "never"),
    [(OFF, None, True), (OFF, "off", True), (OFF, "suppress", False), (SUPPRESS, "off", False)],
)
def test_a_call_is_left_alone_only_when_no_provider_is_under_guard(
    setting: LeakMode, provider: str | None, never: bool
) -> None:
    call = Call(request_id="r", at=0, started=0, route="/", snapshot=snapshot(alpha=provider, beta=None))
    call.payload = {"tools": TOOLS}
    assert ModeChoice(call, setting).never is never


def test_an_answer_of_an_unknown_provider_follows_the_setting() -> None:
    call = Call(request_id="r", at=0, started=0, route="/", snapshot=snapshot(alpha="off"))
    assert ModeChoice(call, SUPPRESS).of("gone") is SUPPRESS


def options(call: Call, provider: str | None = "alpha") -> Options:
    """Return the options for an answer of *provider* to *call*, which offers tools."""
    call.payload = {"tools": TOOLS}
    policy = ModeChoice(call, SUPPRESS).policy(provider)
    assert policy is not None
    return policy.options


def test_options_lie_over_each_other_one_by_one() -> None:
    provider = {"mode": "repair", "scope": "start", "on_exhausted": "repair", "limits": {"call": 100}}
    pictured = build(
        [Provider(id="alpha", auth=NO_AUTH, app="inner", leak=provider)],
        leak={"scope": "anywhere", "echo_check": False, "limits": {"header": 70}},
    )
    call = Call(request_id="r", at=0, started=0, route="/", snapshot=pictured)
    call.key = Key(id="k", name="k", digest=b"", leak={"locked": True, "on_exhausted": "error"})
    found = options(call)
    assert (found.scope, found.on_exhausted, found.echo_check) == (Scope.START, Exhausted.ERROR, False)
    assert (found.header_chars, found.call_chars) == (70, 100)


def test_without_a_block_the_options_of_the_layer_hold() -> None:
    call = Call(request_id="r", at=0, started=0, route="/", payload={"tools": TOOLS})
    mine = Options(scope=Scope.START)
    policy = ModeChoice(call, SUPPRESS, mine).policy(None)
    assert policy is not None
    assert policy.options is mine


def test_an_answer_in_mode_off_has_no_policy() -> None:
    call = Call(request_id="r", at=0, started=0, route="/", snapshot=snapshot(alpha="off"), payload={"tools": TOOLS})
    assert ModeChoice(call, SUPPRESS).policy("alpha") is None


HISTORY = [
    {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "get_weather", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c", "content": "sunny"},
]


@pytest.mark.parametrize(
    ("block", "never"), [(None, True), ({"scrub_with_history": True}, False), ({"scrub_with_history": False}, True)]
)
def test_a_history_of_calls_is_guarded_only_where_somebody_wants_it(
    block: dict[str, object] | None, never: bool
) -> None:
    call = Call(request_id="r", at=0, started=0, route="/", snapshot=snapshot(alpha=block))
    call.payload = {"messages": HISTORY}
    modes = ModeChoice(call, SUPPRESS)
    assert modes.never is never
    assert (modes.policy("alpha") is None) is never


SAID: Final = st.sampled_from([None, {"scrub_with_history": True}, {"scrub_with_history": False}, {"mode": "off"}])


@given(
    tools=st.sampled_from([{}, {"tools": []}, {"tools": TOOLS}, {"functions": TOOLS}, {"messages": []}]),
    provider=SAID,
    whole=SAID,
    key=SAID,
    combo=SAID,
    header=st.sampled_from([None, "off", "auto"]),
    layer=st.booleans(),
)
def test_who_is_told_at_once_that_nobody_wants_anything_would_be_told_so_anyway(
    *,
    tools: dict[str, object],
    provider: dict[str, object] | None,
    whole: dict[str, object] | None,
    key: dict[str, object] | None,
    combo: dict[str, object] | None,
    header: str | None,
    layer: bool,
) -> None:
    pictured = build([Provider(id="alpha", auth=NO_AUTH, app="inner", leak=provider)], leak=whole)
    headers = ((b"x-troy-leak-mode", header.encode()),) if header is not None else ()
    call = Call("r", 0, 0, "/", headers=headers, snapshot=pictured, payload=dict(tools))
    call.key = Key(id="k", name="k", digest=b"", leak=key or {})
    named = Combo(id="c", name="c", members=(), config={"leak": combo} if combo is not None else {})
    call.resolution = Resolution(NameKind.COMBO, "c", "c", combo=named)
    options = Options(scrub_with_history=layer)
    modes = ModeChoice(call, SUPPRESS, options)
    assert modes.never or not Calm(options).about(call)


def test_most_requests_are_told_at_once_and_after_a_reload_by_the_new_snapshot() -> None:
    calm, call = Calm(Options()), Call("r", 0, 0, "/", snapshot=snapshot(alpha=None))
    before = calm.about(call)
    call.snapshot = snapshot(alpha={"scrub_with_history": True})
    assert (before, calm.about(call)) == (True, False)


@pytest.mark.parametrize("header", ["nonsense", "off"])
def test_a_header_is_always_read(header: str) -> None:
    call = Call("r", 0, 0, "/", headers=((b"x-troy-leak-mode", header.encode()),))
    assert not Calm(Options()).about(call)
