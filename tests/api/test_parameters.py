"""What stands behind the question mark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.api.admin.parameters import MANY, Parameter, moment, one_of, read_query, text, whole
from troyproxy.errors import ValidationFailed

LIMIT = whole("limit", "How many.", 1, 500).otherwise(100)
SINCE = moment("since", "From when.").optional()
ORDER = one_of("order", "Which first.", ["new", "old"]).otherwise("new")
NAME = text("name", "Whose.", 5).optional()
ALL = (LIMIT, SINCE, ORDER, NAME)


def wrong(query: bytes, declared: tuple[Parameter[object], ...] = ALL) -> list[tuple[str, str]]:  # type: ignore[assignment]  # read only
    """Return the fields that are refused, with why."""
    with pytest.raises(ValidationFailed) as caught:
        read_query(query, declared)
    details = caught.value.details
    assert isinstance(details, list)
    return [(each["field"], each["message"]) for each in details]


def test_what_is_not_given_has_its_default() -> None:
    assert read_query(b"", ALL) == {"limit": 100, "since": None, "order": "new", "name": None}


def test_what_is_given_has_its_type() -> None:
    found = read_query(b"limit=7&since=12.5&order=old&name=a%20b", ALL)
    assert found == {"limit": 7, "since": 12.5, "order": "old", "name": "a b"}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        (b"limit=0", "limit"),
        (b"limit=501", "limit"),
        (b"limit=", "limit"),
        (b"limit=1.0", "limit"),
        (b"limit=+1", "limit"),
        (b"limit=%D9%A1", "limit"),
        (b"limit=" + b"9" * 5000, "limit"),
        (b"since=-1", "since"),
        (b"since=nan", "since"),
        (b"since=inf", "since"),
        (b"since=1_0", "since"),
        (b"since=1e300", "since"),
        (b"since=today", "since"),
        (b"since=%D9%A1", "since"),
        (b"order=NEW", "order"),
        (b"order=", "order"),
        (b"name=", "name"),
        (b"name=abcdef", "name"),
        (b"name=a%00", "name"),
        (b"name=a%0A", "name"),
        (b"other=1", "other"),
        (b"=1", ""),
    ],
)
def test_what_is_not_allowed_is_named(query: bytes, field: str) -> None:
    assert [name for name, _ in wrong(query)] == [field]


def test_a_parameter_that_is_not_declared_is_told_which_are() -> None:
    assert wrong(b"limits=1") == [("limits", "is no parameter here; allowed: limit, since, order, name")]


def test_where_nothing_is_declared_nothing_is_allowed() -> None:
    assert wrong(b"limit=1", ()) == [("limit", "is no parameter here; allowed: none")]


def test_a_parameter_may_not_be_given_twice() -> None:
    assert wrong(b"limit=1&limit=1") == [("limit", "is given more than once")]


def test_a_required_parameter_is_missed() -> None:
    assert wrong(b"", (text("who", "Who."),)) == [("who", "is required")]  # type: ignore[arg-type]  # read only


def test_every_problem_is_named_at_once() -> None:
    assert [name for name, _ in wrong(b"limit=0&order=x&y=1")] == ["limit", "order", "y"]


def test_a_query_of_very_many_parameters_is_refused() -> None:
    assert wrong(b"&".join([b"limit=1"] * (MANY + 1)))[0][0] == ""


def test_a_long_name_is_not_repeated_whole() -> None:
    assert len(wrong(b"x" * 5000 + b"=1")[0][0]) == 100


def test_a_default_stands_in_the_schema() -> None:
    assert LIMIT.schema == {"type": "integer", "minimum": 1, "maximum": 500, "default": 100}


@given(st.binary(max_size=60))
def test_any_query_is_read_or_refused(query: bytes) -> None:
    try:
        found = read_query(query, ALL)
    except ValidationFailed:
        return
    assert found.keys() == {"limit", "since", "order", "name"}
