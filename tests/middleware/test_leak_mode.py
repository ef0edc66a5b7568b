"""Whose word on the leak mode counts: header, key, combo, serving provider, setting."""

from __future__ import annotations

import pytest

from troyproxy.catalog.combos import Combo
from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import NO_AUTH, Provider
from troyproxy.catalog.snapshot import Snapshot, build
from troyproxy.errors import InvalidRequest
from troyproxy.leaks.gate import LeakMode
from troyproxy.middleware.leak_mode import ModeChoice
from troyproxy.proxy.call import Call
from troyproxy.routing.names import NameKind, Resolution

OFF, SUPPRESS = LeakMode.OFF, LeakMode.SUPPRESS


def snapshot(**modes: str | None) -> Snapshot:
    return build([Provider(id=name, auth=NO_AUTH, app="inner", leak=mode) for name, mode in modes.items()])


def chosen(
    *,
    header: str | None = None,
    key: dict[str, object] | None = None,
    combo: object = None,
    provider: str | None = None,
    setting: LeakMode = SUPPRESS,
) -> LeakMode:
    """Return the mode for an answer of provider ``alpha`` when the five say what is given."""
    call = Call(request_id="r", at=0, started=0, route="/", snapshot=snapshot(alpha=provider))
    call.headers = ((b"x-troy-leak-mode", header.encode()),) if header is not None else ()
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


def test_a_locked_key_ignores_the_header() -> None:
    assert chosen(header="off", key={"locked": True, "mode": "suppress"}, setting=OFF) is SUPPRESS


def test_a_locked_key_without_a_mode_leaves_it_to_the_others() -> None:
    assert chosen(header="off", key={"locked": True}) is SUPPRESS


def test_an_empty_header_says_nothing() -> None:
    assert chosen(header=" ") is SUPPRESS


def test_a_stored_mode_that_this_version_does_not_know_breaks_no_request() -> None:
    assert chosen(key={"mode": "repair"}, combo="repair", provider="repair") is SUPPRESS


def test_a_wrong_header_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="unknown leak mode 'repair'"):
        chosen(header="repair")


@pytest.mark.parametrize(
    ("setting", "provider", "always_off"),
    [(OFF, None, True), (OFF, "off", True), (OFF, "suppress", False), (SUPPRESS, "off", False)],
)
def test_a_call_is_left_alone_only_when_no_provider_is_under_guard(
    setting: LeakMode, provider: str | None, always_off: bool
) -> None:
    call = Call(request_id="r", at=0, started=0, route="/", snapshot=snapshot(alpha=provider, beta=None))
    assert ModeChoice(call, setting).always_off is always_off


def test_an_answer_of_an_unknown_provider_follows_the_setting() -> None:
    call = Call(request_id="r", at=0, started=0, route="/", snapshot=snapshot(alpha="off"))
    assert ModeChoice(call, SUPPRESS).of("gone") is SUPPRESS
