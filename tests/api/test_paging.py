"""Pages and cursors."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.api.admin.paging import CURSOR, cursor_for, cut, limit, page, page_schema
from troyproxy.api.admin.parameters import read_query
from troyproxy.api.admin.schemas import TEXT
from troyproxy.errors import ValidationFailed


def walk(entries: list[str], most: int) -> list[list[Any]]:
    """Return the pages that a client sees who follows the cursors."""
    pages: list[list[Any]] = []
    after: str | None = None
    while True:
        found: Any = cut(entries, str, str.upper, after, most)
        pages.append(found["data"])
        if found["next_cursor"] is None:
            return pages
        value = read_query(f"cursor={found['next_cursor']}".encode(), (CURSOR,))["cursor"]
        assert isinstance(value, str)
        after = value


def test_a_list_is_walked_page_by_page() -> None:
    assert walk(["a", "b", "c"], 2) == [["A", "B"], ["C"]]


def test_a_full_last_page_says_that_it_is_the_last() -> None:
    assert walk(["a", "b"], 2) == [["A", "B"]]


def test_an_empty_list_is_one_empty_page() -> None:
    assert walk([], 2) == [[]]


@given(st.lists(st.text(st.characters(exclude_categories=["C"]), min_size=1), unique=True), st.integers(1, 5))
def test_every_entry_comes_once_and_in_order(entries: list[str], most: int) -> None:
    pages = walk(sorted(entries), most)
    assert [name for each in pages for name in each] == [name.upper() for name in sorted(entries)]


def test_a_removed_entry_does_not_move_the_next_page() -> None:
    first: Any = cut(["a", "b", "c"], str, str, None, 2)
    after = read_query(f"cursor={first['next_cursor']}".encode(), (CURSOR,))["cursor"]
    assert cut(["a", "c"], str, str, str(after), 2)["data"] == ["c"]


def test_without_a_cursor_the_list_starts_at_its_begin() -> None:
    assert read_query(b"", (CURSOR,))["cursor"] is None


@pytest.mark.parametrize(
    "cursor",
    [
        "!",
        "a",
        "%FF",
        "YQ==YQ",
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        base64.urlsafe_b64encode(b"a\0b").decode(),
        "YWJj" * 600,
    ],
)
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(ValidationFailed):
        read_query(f"cursor={cursor}".encode(), (CURSOR,))


@given(st.text(st.characters(exclude_categories=["C"]), max_size=200))
def test_a_cursor_gives_back_its_key(key: str) -> None:
    assert read_query(f"cursor={cursor_for(key)}".encode(), (CURSOR,))["cursor"] == key


def test_a_page_of_the_database_names_the_key_of_its_end() -> None:
    assert page([1], "k") == {"data": [1], "next_cursor": cursor_for("k")}


def test_the_limit_has_a_default_and_a_bound() -> None:
    assert limit(5, 50).schema == {"type": "integer", "minimum": 1, "maximum": 50, "default": 5}


def test_the_schema_of_a_page_holds_its_entries() -> None:
    properties: Any = page_schema(TEXT)["properties"]
    assert properties["data"] == {"type": "array", "items": TEXT}
