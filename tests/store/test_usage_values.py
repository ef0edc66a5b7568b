"""What is stored of a usage row: the quick way gives what the rules of `encoding` give."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.store.test_requests import BARE, FULL
from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.store.encoding import maybe_short, plain
from troyproxy.store.tables import USAGE_ROWS
from troyproxy.store.usage_values import NAMES, json_text, values_of

TEXTS = st.text(st.characters(), max_size=40) | st.sampled_from(["plain", "a\0b", "\ud800", "x" * 1200, "é"])
FLOATS = st.floats() | st.none()
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.sampled_from([{1, 2}, object]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.integers(), inner, max_size=3),
    max_leaves=8,
)
USAGES = st.builds(Usage, st.integers(0, 10**12), st.integers(0, 9), estimated=st.booleans()) | st.none()
ATTEMPTS = st.builds(
    AttemptRecord,
    *(TEXTS, TEXTS, TEXTS, st.sampled_from(["ok", "rate"]), st.sampled_from([200, 429, None])),
    *(st.floats(0, 2e9), st.floats(), TEXTS, FLOATS, USAGES),
    leak=st.sampled_from(["", "F01;repaired"]),
)
ROWS = st.builds(
    replace,
    st.sampled_from([BARE, FULL]),
    request_id=TEXTS,
    key_name=TEXTS | st.none(),
    requested_model=TEXTS,
    model=TEXTS | st.none(),
    attempts=st.lists(ATTEMPTS, max_size=4).map(tuple),
    skipped=st.lists(st.tuples(TEXTS, TEXTS), max_size=2).map(tuple),
    needs=st.dictionaries(TEXTS, TREES, max_size=3),
    usage=USAGES,
    wasted=USAGES,
)


def stored(row: UsageRow) -> dict[str, object]:
    return dict(zip(NAMES, values_of(row), strict=True))


@given(ROWS)
def test_texts_are_cleaned_and_cut_and_trees_are_json(row: UsageRow) -> None:
    found = stored(row)
    for name in ("request_id", "route", "key_id", "key_name", "requested_model", "combo", "model", "trail", "adapted"):
        assert found[name] == maybe_short(getattr(row, name))
    for name in ("attempts", "skipped", "needs"):
        assert json.loads(str(found[name])) == plain(getattr(row, name))
    assert (None if found["wasted"] is None else json.loads(str(found["wasted"]))) == plain(row.wasted)


@given(TREES)
def test_whatever_comes_is_json_without_a_nul(tree: object) -> None:
    text = json_text(tree)
    assert json.loads(text) == plain(tree)
    assert "\\u0000" not in text


def test_every_column_has_its_value() -> None:
    columns = [column.name for column in USAGE_ROWS.columns]
    assert (list(NAMES), len(values_of(FULL))) == (columns, len(columns))


@pytest.mark.parametrize(
    ("providers", "leaked", "expected"),
    [("", (), (0, 0, 0)), ("a", (), (1, 0, 0)), ("a", (0,), (1, 0, 1)), ("abb", (1, 2), (3, 1, 2))],
)
def test_attempts_failovers_and_leaks_are_counted(
    providers: str, leaked: tuple[int, ...], expected: tuple[int, int, int]
) -> None:
    attempts = tuple(
        AttemptRecord(provider, "m", "A", "ok", 200, 1.0, 2.0, leak="F01;repaired" if place in leaked else "")
        for place, provider in enumerate(providers)
    )
    found = stored(replace(FULL, attempts=attempts))
    assert (found["tries"], found["failovers"], found["leaks"]) == expected


def test_what_nobody_reported_is_unknown_and_no_zero() -> None:
    found = stored(BARE)
    assert [found[name] for name in NAMES if name.endswith(("_tokens", "_estimated")) and name != "est_tokens"] == (
        [None] * 6
    )
