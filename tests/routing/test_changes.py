from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from troyproxy.routing.changes import Changes, dropping, setting

KEYS = st.sampled_from("abc")
PAYLOADS = st.dictionaries(KEYS, st.integers(0, 3))


@st.composite
def changes(draw: st.DrawFn) -> Changes:
    """Any changes that set and drop different keys."""
    dropped = draw(st.frozensets(KEYS))
    return Changes({k: v for k, v in draw(PAYLOADS).items() if k not in dropped}, dropped)


def test_only_present_keys_are_dropped() -> None:
    assert dropping({"a": 1}, "a", "b") == Changes(drop=frozenset("a"), adapted=("-a",))


def test_setting_what_is_there_is_no_change() -> None:
    assert setting({"a": 1}, "a", 1, "a=1") == Changes()
    assert setting({"a": 1}, "a", 2, "a=2") == Changes({"a": 2}, adapted=("a=2",))


def test_applying_keeps_keys_in_their_place_and_appends_new_ones() -> None:
    made = Changes({"b": 9, "d": 4}, frozenset("a"))
    assert list(made.applied({"a": 1, "b": 2, "c": 3}).items()) == [("b", 9), ("c", 3), ("d", 4)]


@given(PAYLOADS, changes(), changes())
def test_two_changes_in_one_equal_one_after_the_other(payload: dict[str, int], one: Changes, two: Changes) -> None:
    assert one.then(two).applied(payload) == two.applied(one.applied(payload))


@given(changes(), changes())
def test_no_key_is_set_and_dropped(one: Changes, two: Changes) -> None:
    both = one.then(two)
    assert not both.drop & both.set.keys()
