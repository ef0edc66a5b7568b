"""The strict YAML reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.errors import ConfigError
from troyproxy.settings.yamlfile import MAX_BYTES, read_yaml


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"", None),
        (b"# only a comment\n", None),
        (b"\xef\xbb\xbfa: 1", {"a": 1}),
        (b"a: off\nb: [1, {c: null}]", {"a": False, "b": [1, {"c": None}]}),
        ("name: 模型".encode(), {"name": "模型"}),
    ],
)
def test_plain_yaml_is_read(raw: bytes, value: object) -> None:
    assert read_yaml(raw, "f.yaml") == value


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"a: 1\nb: 2\na: 3", "line 3, column 1: the key a stands here and in line 1"),
        (b"x:\n  - {k: 1, k: 2}", "line 2, column 12: the key k"),
        (b"a: &x 1\nb: *x", "aliases"),
        (b"a: {1: x}", "a key is no text"),
        (b"on: x", "a key is no text"),
        (b"? [a]\n: x", "a key is no text"),
        (b"a: [1", "line 1"),
        (b"a: b: c", "mapping values are not allowed here"),
        (b"\ta: 1", "cannot start any token"),
        (b"a: !!python/object:os.system {}", "could not determine a constructor"),
        (b"a: 1\n---\nb: 2", "but found another document"),
        (b"[" * 5000, "nested too deeply"),
        (b"a: \x00", "refuses"),
        (b"a: 2024-13-45", "refuses"),
        (b"a: " + b"9" * 5000, "refuses"),
        (b"a: \xff", r"not UTF-8 text \(byte 3\)"),
        (b" " * (MAX_BYTES + 1), "larger than"),
        (b"a: %", "line 1"),
    ],
)
def test_everything_else_is_refused_with_its_place(raw: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=r"^f\.yaml: ") as caught:
        read_yaml(raw, "f.yaml")
    caught.match(message)


@pytest.mark.parametrize("raw", [b'api_key: "sk-hush', b"api_key: sk-hush: x", b"- sk-hush\nx", b"k: sk-hush\x07"])
def test_an_error_does_not_quote_the_line(raw: bytes) -> None:
    with pytest.raises(ConfigError) as caught:
        read_yaml(raw, "f.yaml")
    assert "hush" not in str(caught.value)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_in_our_own_words(raw: bytes) -> None:
    try:
        read_yaml(raw, "f.yaml")
    except ConfigError as error:
        assert str(error).startswith("f.yaml: ")  # noqa: PT017 -- reading is fine as well
