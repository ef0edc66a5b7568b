from __future__ import annotations

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.fuzz_leaks import CALL, WORDS, check
from tests.leaks.scanning import GENERIC, cut, run, whole

QUICK = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
PIECES = st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=8).map("".join)


@QUICK
@given(st.binary(min_size=12, max_size=60))
@example(b"")
@example(b"\0" * 12 + b"\xf0\x05hello")
def test_what_is_fuzzed_holds_for_any_bytes(data: bytes) -> None:
    assert check(data).released >= 0


@QUICK
@given(PIECES, st.lists(st.integers(0, 200), max_size=10))
def test_no_set_of_cuts_changes_the_verdict_or_what_is_released(text: str, places: list[int]) -> None:
    assert run(cut(text, (min(place, len(text)) for place in places))) == whole(text)


@QUICK
@given(st.text(alphabet="<>|{}[]():,=\"'`~ \n/_aefilnoptcmud", max_size=60))
def test_text_of_marker_characters_is_split_safe_and_loses_nothing(text: str) -> None:
    seen = whole(text, GENERIC)
    assert run(text, GENERIC) == seen
    assert seen.released == (seen.leak.block_start if seen.leak else len(text))


@QUICK
@given(st.text(alphabet="abc `\n>~.", max_size=40))
def test_a_call_behind_any_prose_is_a_leak_or_masked_whatever_the_cuts(prose: str) -> None:
    seen = whole(prose + CALL)
    assert run(prose + CALL) == seen
    assert seen.leak is not None or set(prose) & set("`>~")
