from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.store.encoding import clean, fold, maybe_short, plain, short


@dataclass(frozen=True, slots=True)
class Pair:
    left: object
    right: object


@pytest.mark.parametrize(("one", "other"), [("Straße", "STRASSE"), ("é", "e\u0301"), ("ǅ", "ǆ"), ("a", "A")])
def test_names_that_differ_by_case_or_form_fold_to_one(one: str, other: str) -> None:
    assert fold(one) == fold(other)


def test_different_names_stay_different() -> None:
    assert fold("a") != fold("ä")


@given(st.text(st.characters()))
def test_clean_text_can_be_stored_anywhere(text: str) -> None:
    cleaned = clean(text)
    assert "\0" not in cleaned
    assert cleaned.encode().decode() == cleaned


def test_short_text_is_cut_and_nothing_stays_nothing() -> None:
    assert len(short("x" * 5000)) == 1000
    assert maybe_short(None) is None
    assert maybe_short("x") == "x"


def test_trees_become_plain_json() -> None:
    tree = Pair({"a": (1, 2.5, True), 3: None}, [float("inf"), "\0", frozenset({1})])
    assert plain(tree) == {"left": {"a": [1, 2.5, True], "3": None}, "right": [None, "\ufffd", [1]]}


@given(st.recursive(st.none() | st.floats() | st.text() | st.binary() | st.integers(), st.lists))
def test_whatever_comes_is_json(tree: object) -> None:
    text = json.dumps(plain(tree), allow_nan=False)
    assert json.loads(text) == plain(tree)
