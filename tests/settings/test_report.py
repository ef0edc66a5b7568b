"""Problems and how they are said."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from troyproxy.errors import ConfigError
from troyproxy.settings.report import Report, below, kind, nearest, shown


@pytest.mark.parametrize(
    ("path", "key", "expected"),
    [
        ("", "a", "a"),
        ("a", "b-c", "a.b-c"),
        ("a", 1, "a[1]"),
        ("models", "groq/x", 'models["groq/x"]'),
        ("", "a b", '["a b"]'),
    ],
)
def test_a_path_is_written_as_it_would_be_looked_up(path: str, key: str | int, expected: str) -> None:
    assert below(path, key) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x", '"x"'),
        (7, '"7"'),
        ("y" * 99, '"' + "y" * 60 + '…"'),
        (["hush"], "a list"),
        ({"k": "hush"}, "a mapping"),
        (None, "nothing"),
    ],
)
def test_only_scalars_are_shown_and_only_their_beginning(value: object, expected: str) -> None:
    assert shown(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, "on/off"), (1.5, "a number"), ("", "a text"), (datetime(2030, 1, 1, tzinfo=UTC), "a date")],
)
def test_the_kind_of_a_value_does_not_show_it(value: object, expected: str) -> None:
    assert kind(value) == expected


def test_a_near_name_is_hinted_at() -> None:
    assert nearest("acounts", ["accounts", "models"]) == " (did you mean accounts?)"


def test_nothing_is_hinted_at_when_nothing_is_near() -> None:
    assert nearest("zzz", ["accounts"]) == ""


def test_without_a_problem_the_check_passes() -> None:
    report = Report()
    report.warn("a", "doubtful")
    report.check()
    assert report.warnings == ["a: doubtful"]


def test_one_problem_is_said_in_one_line() -> None:
    report = Report()
    report.wrong("a.b", "is wrong")
    with pytest.raises(ConfigError, match=r"^a\.b: is wrong$"):
        report.check()


def test_a_problem_of_the_whole_is_said_of_its_source() -> None:
    report = Report()
    report.wrong("", "is a list")
    with pytest.raises(ConfigError, match=r"^troyproxy\.yaml: is a list$"):
        report.check("troyproxy.yaml")


def test_all_problems_are_said_at_once() -> None:
    report = Report()
    report.wrong("a", "is wrong")
    report.wrong("b", "too")
    with pytest.raises(ConfigError) as caught:
        report.check("troyproxy.yaml")
    assert str(caught.value) == "troyproxy.yaml: 2 problems\n  a: is wrong\n  b: too"


def test_problems_are_data_for_the_api() -> None:
    report = Report()
    report.wrong("a", "is wrong")
    with pytest.raises(ConfigError) as caught:
        report.check()
    assert caught.value.details == [{"field": "a", "message": "is wrong"}]
