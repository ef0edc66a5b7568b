"""A table in the order of use."""

from __future__ import annotations

from troyproxy.proxy.bounds import use


def test_what_is_used_is_found_again() -> None:
    table: dict[str, list[str]] = {}
    use(table, "a", list, 2).append("x")
    assert use(table, "a", list, 2) == ["x"]


def test_what_was_not_used_for_longest_goes_at_the_bound() -> None:
    table: dict[str, list[str]] = {}
    for key in ("a", "b", "a", "c"):
        use(table, key, list, 2)
    assert list(table) == ["a", "c"]


def test_a_large_table_loses_an_eighth_at_once() -> None:
    table: dict[int, list[str]] = {}
    for key in range(17):
        use(table, key, list, 16)
    assert list(table) == list(range(2, 17))
