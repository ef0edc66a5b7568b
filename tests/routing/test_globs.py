from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.routing.globs import allowed, matches, pool_limited


@pytest.mark.parametrize(
    ("glob", "name", "opens"),
    [
        ("*", "alpha/x/y", True),
        ("alpha/*", "alpha/x/y", True),
        ("alpha/*", "beta/x", False),
        ("alpha/m?", "alpha/m1", True),
        ("alpha?m1", "alpha/m1", True),
        ("daily", "daily", True),
        ("daily", "Daily", False),
        ("a[b]c", "a[b]c", True),
        ("a[b]c", "abc", False),
        ("auto/*", "auto", True),
        ("auto/*", "auto/coding", True),
        ("auto/*", "default", False),
        ("auto", "auto/coding", False),
    ],
)
def test_a_glob_opens_canonical_names(glob: str, name: str, *, opens: bool) -> None:
    assert allowed([glob], name) is opens


def test_a_key_without_globs_opens_everything() -> None:
    assert allowed([], "anything")


@pytest.mark.parametrize(
    ("globs", "canonical", "limited"),
    [
        (["alpha/*"], "auto", True),
        (["alpha/*"], "auto/coding", True),
        (["alpha/*"], "default", True),
        (["alpha/*"], "daily", False),
        (["gamma/*"], "auto", False),
        (["auto", "alpha/*"], "auto", False),
        ([], "auto", False),
    ],
)
def test_a_pool_is_limited_to_the_specs_that_match(globs: list[str], canonical: str, *, limited: bool) -> None:
    assert pool_limited(globs, canonical, ["alpha/m1", "beta/m2"]) is limited


@given(st.text(), st.text())
def test_a_prefix_glob_matches_exactly_what_starts_with_it(prefix: str, name: str) -> None:
    literal = prefix.replace("*", "").replace("?", "")
    assert matches(f"{literal}*", name) is name.startswith(literal)
