"""Blocks of options, laid over each other."""

from __future__ import annotations

import pytest

from troyproxy.leaks.blocks import merged, options_of
from troyproxy.leaks.options import Options, Scope, Validate


def test_a_later_block_wins_option_by_option_and_limit_by_limit() -> None:
    first = {"scope": "start", "limits": {"header": 100, "call": 200}}
    found = merged([first, None, {"echo_check": False, "limits": {"call": 300}}])
    assert found == {"scope": "start", "echo_check": False, "limits": {"header": 100, "call": 300}}


def test_blocks_are_not_changed() -> None:
    first = {"limits": {"header": 100}}
    merged([first, {"limits": {"header": 1}}])
    assert first == {"limits": {"header": 100}}


def test_all_formats_override_a_list() -> None:
    assert options_of(merged([{"formats": ["F01"]}, {"formats": "all"}])).formats == "all"


@pytest.mark.parametrize(
    "block",
    [
        {},
        {"mode": "auto", "locked": True},
        {"scope": 3, "limits": 7, "formats": 1, "echo_check": "no", "validate": None},
        {"limits": {"header": "many", "other": 3}},
    ],
)
def test_what_is_no_option_counts_as_not_given(block: dict[str, object]) -> None:
    assert options_of(block) == Options()


def test_words_become_their_meaning() -> None:
    assert options_of({"repair_scope": "anywhere"}).repair_scope is Scope.ANYWHERE


@pytest.mark.parametrize("off", ["off", False])
def test_a_bare_off_of_yaml_is_the_word(off: object) -> None:
    assert options_of({"validate": off}).validate is Validate.OFF
    assert options_of({"scope": False}) == Options()
