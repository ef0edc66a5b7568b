"""The reader of ``.env`` files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.errors import ConfigError
from troyproxy.settings.dotenv import MAX_BYTES, parse_dotenv, read_dotenv


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("# nothing\n\n", {}),
        ("A=1", {"A": "1"}),
        ("A = 1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("export A=1", {"A": "1"}),
        ("\ufeffA=1", {"A": "1"}),
        ("A=", {"A": ""}),
        ("A= # empty", {"A": ""}),
        ("A=b c # note", {"A": "b c"}),
        ("A=b#c", {"A": "b#c"}),
        ("A=b=c", {"A": "b=c"}),
        ("A='b # \\n c' # note", {"A": "b # \\n c"}),
        (r'A="b\n\"c\" \\ # d" # note', {"A": 'b\n"c" \\ # d'}),
        ("A=1\nA=2", {"A": "2"}),
        ("A=x\u2028y", {"A": "x\u2028y"}),
    ],
)
def test_variables_are_read(text: str, expected: dict[str, str]) -> None:
    assert parse_dotenv(text) == expected


@pytest.mark.parametrize("text", ["A", "1A=x", "A B=x", "=x", "A='hush", 'A="hush', "A='hush' x", 'A="hush\\"'])
def test_a_broken_line_is_named_by_its_number_and_not_shown(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^\.env: line 2 ") as caught:
        parse_dotenv("OK=1\n" + text)
    assert "hush" not in str(caught.value)


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1).filter(
        lambda s: s[0] not in "#'\""
    )
)
def test_a_plain_value_comes_back(value: str) -> None:
    assert parse_dotenv(f"A={value}")["A"] == value


def test_a_missing_file_has_no_variables(tmp_path: Path) -> None:
    assert read_dotenv(tmp_path / ".env") == {}


def test_a_folder_called_env_has_no_variables(tmp_path: Path) -> None:
    assert read_dotenv(tmp_path) == {}


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\n")
    assert read_dotenv(tmp_path / ".env") == {"A": "1"}


@pytest.mark.parametrize(("raw", "message"), [(b"A=\xff", "UTF-8"), (b"#" * (MAX_BYTES + 1), "larger")])
def test_a_file_that_cannot_be_meant_is_refused(tmp_path: Path, raw: bytes, message: str) -> None:
    (tmp_path / ".env").write_bytes(raw)
    with pytest.raises(ConfigError, match=message):
        read_dotenv(tmp_path / ".env")


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_dotenv(tmp_path / "file" / ".env")
