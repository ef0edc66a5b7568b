from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.leaks import openers
from troyproxy.leaks.asked import Asked
from troyproxy.leaks.formats import canonical
from troyproxy.leaks.scanner import scan
from troyproxy.leaks.table import Look, Row, Sort, Table, Tier
from troyproxy.leaks.tables import CLASSIC, INNER, TAIL, is_unsigned, spelled, tables

ALL = tables()
UNSIGNED = (
    *("get_weather", "assistant", "call:", "functions.", "print", "tool_code", "commentary to=", ">>>", "json"),
    *(" ", "\n", "\n\n", ":", "=", "~~~", '"city": "Oslo"', "}", ")", "The lamp ", ">", "|", "\uff5c", "\u2581"),
)


@pytest.mark.parametrize("table", [ALL.prose, ALL.lead, INNER, TAIL, CLASSIC])
def test_no_spelling_is_a_strict_prefix_of_another_so_the_first_full_match_is_final(table: Table) -> None:
    assert [(a, b) for a, b in permutations(table.rows, 2) if b.startswith(a)] == []


def test_spellings_are_written_in_canonical_form() -> None:
    assert [text for text in (*ALL.lead.rows, *INNER.rows, *TAIL.rows) if canonical(text) != text] == []


def test_every_format_that_has_a_marker_has_an_opener() -> None:
    formats = {row.format for row in (*openers.openers(), *openers.leading())}
    # found by what follows: F04, F07, F10, F12, F18, F23; without a marker: F08, F28, F29, F47
    assert formats == {f"F{n:02}" for n in range(1, 47)} - {
        "F04",
        "F07",
        "F08",
        "F10",
        "F12",
        "F18",
        "F23",
        "F28",
        "F29",
    }


def test_what_is_held_to_recognise_an_opener_is_short() -> None:
    assert max(len(row.text) for row in openers.openers()) <= 43


def test_openers_of_special_tokens_are_of_tier_s() -> None:
    special = {row.text for row in openers.openers() if row.tier is Tier.SPECIAL}
    assert {row.text for row in openers.openers() if "|" in row.text or "antml" in row.text} <= special


def test_every_spelling_that_counts_has_a_sign_by_which_a_text_without_any_is_passed() -> None:
    rows = [*ALL.lead.rows.values(), *TAIL.rows.values(), *CLASSIC.rows.values()]
    assert [row.text for row in rows if is_unsigned(row.text) and row.sort is not Sort.ROLE] == []


@given(st.lists(st.sampled_from(UNSIGNED), max_size=9).map("".join), st.booleans())
def test_a_text_without_a_sign_is_no_leak(text: str, structured: bool) -> None:
    assert is_unsigned(text)
    assert scan(text, Asked(names=frozenset({"get_weather", "json"})), structured=structured) is None


def test_the_search_in_prose_finds_every_spelling_and_every_beginning_of_one() -> None:
    for text in (*ALL.prose.rows, "<ACME:invoke name=", "<x:tool_call>", "\uff1cTool\u2581Call\uff1e"):
        missed = [end for end in range(1, len(text) + 1) if not ALL.first.search("prose " + text[:end])]
        assert (text, missed) == (text, [])


@pytest.mark.parametrize(
    "text", ["plain", "a < b", "<p>", "</div> ", "[x] ", "a[0] ", "]] ", "<br/>", "`x`\n", "<b>bold</b>"]
)
def test_the_search_in_prose_passes_ordinary_text(text: str) -> None:
    assert ALL.first.search(text) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<tool_call>", "F03"),
        ("<x:invoke name=", "F43"),
        ("<x:tool_calls>", "F43"),
        ("<tool_", Look.MORE),
        ("<abc", Look.MORE),
        ("<abc:inv", Look.MORE),
        ("<abc:x", Look.NO),
        ("<abc>", Look.NO),
        ("<abcdefghijklmnop", Look.NO),
        ("<toolcall>", Look.NO),
        ("<TOOLCALL>", "F37"),
        ("[x]", Look.NO),
    ],
)
def test_a_spelling_is_there_or_not_or_not_yet(text: str, found: str) -> None:
    row = spelled(ALL.prose, canonical(text), 0, text)
    assert (row.format if isinstance(row, Row) else row) == found


def test_an_operators_openers_are_folded_and_may_begin_with_any_character() -> None:
    own = tables(("Call: ", ""))
    assert own.prose.at("call: x", 0) == Row("call: ", Sort.OPENER, "extra")
    assert own.first.search("so Call: x")
    assert own.first.search("so c")


def test_a_row_that_is_there_twice_keeps_its_first_meaning() -> None:
    assert Table((Row("a", Sort.STOP), Row("a", Sort.MARK))).rows["a"].sort is Sort.STOP
