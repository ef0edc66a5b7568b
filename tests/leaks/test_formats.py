from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from troyproxy.leaks.formats import CLOSERS, INNER, OPENERS, RESIDUE, Marker, canonical, residue


@pytest.mark.parametrize("table", [(*OPENERS, *CLOSERS), INNER], ids=["start", "inside a wrapper"])
def test_no_marker_is_a_strict_prefix_of_another_so_the_first_full_match_is_final(table: tuple[Marker, ...]) -> None:
    assert not [(a.text, b.text) for a, b in permutations(table, 2) if b.text.startswith(a.text)]


@pytest.mark.parametrize("marker", [*OPENERS, *INNER], ids=lambda marker: marker.text)
def test_markers_are_written_in_canonical_form(marker: Marker) -> None:
    assert canonical(marker.text) == marker.text


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text())
def test_the_canonical_copy_keeps_every_offset(text: str) -> None:
    assert len(canonical(text)) == len(text)


def test_the_canonical_copy_folds_ascii_case_bars_brackets_and_odd_blanks_only() -> None:
    assert canonical("AZ\uff5c\u2581\uff1c\uff1e\u00a0\u200b\ufeff\u0130") == "az|_<>   \u0130"


def test_a_longer_residue_stands_before_its_prefix() -> None:
    texts = [text for text, _ in RESIDUE]
    assert not [(a, b) for i, a in enumerate(texts) for b in texts[i + 1 :] if b.startswith(a)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<tool_call>\n</tool_call>", "F03"),
        ("<function", "F01"),
        (" <Tool_Call> ", "F03"),
        ("<", None),
        ("  ", None),
        ("", None),
        ("<tool_call> hello", None),
    ],
)
def test_residue_is_markers_and_blanks_and_nothing_else(text: str, found: str | None) -> None:
    assert residue(text) == found
