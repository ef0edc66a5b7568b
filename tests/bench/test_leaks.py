"""One short run of the leak guard's benchmark: every kind of answer is there, and was scanned as what it is."""

from __future__ import annotations

from tests.bench.leaks import ASKED, EVENTS, SIZE, Scanned, answers, bench, table
from troyproxy.leaks.scanner import scan


def test_every_answer_fills_all_events() -> None:
    assert {len(text) for text in answers().values()} == {EVENTS * SIZE}


def test_only_the_leak_is_one() -> None:
    assert [name for name, text in answers().items() if scan(text, ASKED)] == ["leak"]


def test_a_run_measures_both_sides_and_the_table_has_a_row_for_each_answer() -> None:
    rows = bench(1)
    assert all(row.decode_us > 0 and row.scan_us > 0 for row in rows)
    assert len(table(rows).split("\n")) == len(answers()) + 2


def test_the_ratio_is_scanning_over_decoding() -> None:
    assert Scanned("prose", 0.5, 1.0).ratio == 2.0
