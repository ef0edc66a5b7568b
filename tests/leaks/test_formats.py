from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from troyproxy.leaks.formats import CLASSIC_MARKERS, canonical, spellings


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text())
def test_the_canonical_copy_keeps_every_offset(text: str) -> None:
    assert len(canonical(text)) == len(text)


def test_the_canonical_copy_folds_ascii_case_bars_brackets_and_odd_blanks_only() -> None:
    assert canonical("AZ\uff5c\u2016\u2502\u2581\uff1c\uff1e\u00a0\u200b\ufeff\u0130") == "az|||_<>   \u0130"


def test_ascii_is_folded_like_any_other_text() -> None:
    ascii_text = "".join(map(chr, range(128)))
    assert canonical(ascii_text + "\u0130")[:-1] == canonical(ascii_text)


def test_the_classic_markers_are_canonical() -> None:
    assert [marker for marker in CLASSIC_MARKERS if canonical(marker) != marker] == []


def test_the_spellings_of_a_character_all_fold_to_it() -> None:
    assert spellings("|") == {"|", "\uff5c", "\u2016", "\u2502"}
    assert spellings("a") == {"a", "A"}
