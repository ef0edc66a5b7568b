"""The page of the field cases and the tests that they name: neither lacks what the other has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "field-cases.md"
CASES: Final = (
    *(f"SSE-{number:02}" for number in (1, 2, 4, 5, 7, 8, 10, 11, 12)),
    *(f"SF-{number:02}" for number in (2, 3, 5, 6, 8, 9, 10, 12)),
    *(f"SO-{number:02}" for number in (2, 3, 5, 6)),
    *(f"RA-{number:02}" for number in (1, 3, 4, 6, 7, 9)),
    *(f"EC-{number:02}" for number in (1, 2, 4, 5, 7, 8, 10, 11, 12, 14)),
    *(f"HD-{number:02}" for number in (1, 3, 4, 6, 7, 8)),
    *(f"AU-{number:02}" for number in (1, 2, 4)),
    *(f"MN-{number:02}" for number in (1, 3, 4)),
    *(f"BM-{number:02}" for number in (1, 3, 4, 6)),
    *(f"BE-{number:02}" for number in (1, 3, 4, 5, 7, 8)),
    *(f"CO-{number:02}" for number in (1, 2, 4, 5, 6)),
    *(f"RE-{number:02}" for number in (1, 3, 4, 5, 7, 8)),
    *(f"TL-{number:02}" for number in (1, 3, 4, 6, 7, 8, 10, 11, 13)),
)
_ROW: Final = re.compile(r"^\| ([A-Z]+-\d\d) \| (.+?) \| (.+?) \|$", re.MULTILINE)
_LINK: Final = re.compile(r"\[[^\]]+\]\(\.\./([^)]+)\)")
_TEST: Final = re.compile(r"^(?:async )?def (test_([a-z]+)_(\d\d)_\w+)\(", re.MULTILINE)
ROWS: Final = _ROW.findall(PAGE.read_text(encoding="utf-8"))


def cases_of(path: Path) -> set[str]:
    """Return the ids of the cases that the tests in *path* are named by."""
    found = _TEST.findall(path.read_text(encoding="utf-8"))
    return {f"{kind.upper()}-{number}" for _, kind, number in found}


def test_every_case_has_one_row_in_order() -> None:
    assert [case for case, _, _ in ROWS] == list(CASES)


@pytest.mark.parametrize(("case", "tests", "ruling"), ROWS, ids=[case for case, _, _ in ROWS])
def test_the_test_of_a_row_exists_and_its_ruling_is_said(case: str, tests: str, ruling: str) -> None:
    assert f"`test_{case.lower().replace('-', '_')}_*`" in tests
    assert any(case in cases_of(ROOT / path) for path in _LINK.findall(tests))
    assert ruling.endswith(".")


def test_every_file_of_a_case_is_in_its_row() -> None:
    linked = {case: {ROOT / path for path in _LINK.findall(tests)} for case, tests, _ in ROWS}
    files = sorted((ROOT / "tests" / "e2e" / "cases").glob("test_*.py"))
    missing = [(case, path.name) for path in files for case in cases_of(path) if path not in linked.get(case, set())]
    assert missing == []
