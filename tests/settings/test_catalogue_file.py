"""The last good catalogue on disk."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from troyproxy.settings.catalogue_file import MAX_AGE_S, NAME, CatalogueFile, KeptCatalogue, pack
from troyproxy.settings.fetched_catalogue import MAX_BYTES

URL = "https://models.example/api.json?token=hush"
NOW = 1_800_000_000.0
KEPT = KeptCatalogue(NOW, '"v1"', pack(b'{"a": 1}'))


@pytest.fixture
def file(tmp_path: Path) -> CatalogueFile:
    written = CatalogueFile(tmp_path / "data", URL)
    written.write(KEPT)
    return written


def test_what_was_written_is_read(file: CatalogueFile) -> None:
    assert file.read(NOW + 5) == KEPT


def test_the_json_comes_back_as_it_was() -> None:
    assert KEPT.unpacked() == b'{"a": 1}'


def test_it_is_replaced_whole_and_leaves_no_draft(file: CatalogueFile) -> None:
    later = replace(KEPT, at=NOW + 9, etag=None)
    file.write(later)
    assert (file.read(NOW + 10), [path.name for path in file.path.parent.iterdir()]) == (later, [NAME])


def test_nobody_else_may_read_it_and_the_url_is_not_in_it(file: CatalogueFile) -> None:
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert b"hush" not in file.path.read_bytes()


def test_without_a_file_there_is_nothing(tmp_path: Path) -> None:
    assert CatalogueFile(tmp_path, URL).read(NOW) is None


@pytest.mark.parametrize("now", [NOW + MAX_AGE_S + 1, NOW - 1])
def test_one_that_is_too_old_or_from_the_future_is_left_alone(file: CatalogueFile, now: float) -> None:
    assert file.read(now) is None


def test_one_of_another_url_is_left_alone(file: CatalogueFile) -> None:
    assert CatalogueFile(file.path.parent, "https://elsewhere.example/").read(NOW) is None


@pytest.mark.parametrize("cut", [0, 1, 30, -1])
def test_a_file_that_was_cut_is_damaged(file: CatalogueFile, cut: int) -> None:
    file.path.write_bytes(file.path.read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"damaged|none of ours"):
        file.read(NOW)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(ValueError, match="cannot be read"):
        CatalogueFile(tmp_path, URL).read(NOW)


@pytest.mark.parametrize("packed", [b"", b"no gzip", KEPT.packed[:-3], pack(b" " * (MAX_BYTES + 1))])
def test_what_is_damaged_or_a_bomb_is_not_unpacked(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r"damaged|cut short"):
        KeptCatalogue(NOW, None, packed).unpacked()
