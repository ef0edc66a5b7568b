from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.leaks.grammars.cursor import Cursor, NotThis, TextEnded
from troyproxy.leaks.grammars.python_text import MAX_CHARS, MAX_DEPTH, python_value, read_arguments


def read(text: str) -> dict[str, object]:
    """Read what stands behind the opening parenthesis."""
    return read_arguments(Cursor(text, text, frozenset()))


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        *(("3", 3), ("-3", -3), ("2.5", 2.5), ("-.5", -0.5), ("1e3", 1000.0), ("1e-3", 0.001), ("0", 0), ("00", 0)),
        *(
            ("'x'", "x"),
            ('"it\'s"', "it's"),
            ("'a' 'b'", "ab"),
            ('"""a\n"b"""', 'a\n"b'),
            ("'''it's'''", "it's"),
            ("''", ""),
        ),
        *(("True", True), ("False", False), ("None", None), ("true", True), ("false", False), ("null", None)),
        *(
            ("[1, 'a', [2]]", [1, "a", [2]]),
            ("(1, 2)", [1, 2]),
            ("()", []),
            ("(1)", 1),
            ("{'k': {'j': 1}}", {"k": {"j": 1}}),
        ),
        *(
            ("'\\n'", "\n"),
            ("'\\u00e9'", "é"),
            ("'C:\\dir'", "C:\\dir"),
            ("'\\\\d'", "\\d"),
            ("'\\101'", "A"),
            ("'\\777'", "\\777"),
        ),
        ("-1" + "0" * 400, -(10**400)),
        *(("')'", ")"), ("'é'", "é"), ('{"a": true}', {"a": True})),
    ],
)
def test_a_literal_is_read(literal: str, value: object) -> None:
    assert read(f"k={literal})") == {"k": value}


def test_python_s_keywords_may_be_parameters() -> None:
    assert read("from=1, class = 'x', k0=2, lambda=None)") == {"from": 1, "class": "x", "k0": 2, "lambda": None}


def test_zero_padded_integers_are_integers() -> None:
    assert read("n=007, m=[-010], x=0.50)") == {"n": 7, "m": [-10], "x": 0.5}


def test_the_first_of_doubled_parameters_wins() -> None:
    assert read("a=1, a=2)") == {"a": 1}


def test_no_arguments_are_an_empty_object() -> None:
    assert read(")") == {}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "1)",
            "'a')",
            "a)",
            "a=b)",
            "a=b())",
            "a=1 + 2)",
            "a=-True)",
            "a=--1)",
            "a=f'x')",
            "a=b'x')",
            "a=1j)",
            "a=0x1f)",
        ),
        *(
            "a=1_000)",
            "a=1if)",
            "a=...)",
            "a={1: 2})",
            "a={1, 2})",
            "a={'k'})",
            "a=[1][0])",
            "a='x'.y)",
            "*a)",
            "**a)",
            "a=1e999)",
        ),
        *(
            "a==1)",
            "a=b=1)",
            "a='x\ny')",
            "a='\\x4')",
            "a=1 2)",
            "a=(1])",
            "a=[1)]",
            "a=lambda: 1)",
            "a={**b})",
            "a=1;",
            "a=@)",
        ),
        *(
            "a=" + "[" * MAX_DEPTH + ")",
            "a='" + "x" * MAX_CHARS + "')",
            "a='\\u12')",
            "a='\ud800')",
        ),
        *("a='\x00')", "a=" + "9" * 5000 + ")", "a=1.2.3)", "()())", "a='x'())", "[a=1])"),
    ],
)
def test_anything_but_literals_by_keyword_is_refused(text: str) -> None:
    with pytest.raises(NotThis):
        read(text)


@pytest.mark.parametrize(
    "text", ["", "a", "a ", "a=", "a='x", "a='x\\", 'a="""x"', "a='''", "a=Tru", "a=[1", "a=3", "a={'k':", "a='x',"]
)
def test_a_cut_text_is_unfinished(text: str) -> None:
    with pytest.raises(TextEnded):
        read(text)


def test_half_of_a_triple_quoted_text_is_never_a_whole_one() -> None:
    text = 'a="""x")""" + "y")'
    for cut in range(len(text) - 7):
        with pytest.raises(TextEnded):
            read(text[:cut])


literals = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(literals)
def test_what_python_prints_is_read_back(value: object) -> None:
    assert python_value(repr(value)) == ast.literal_eval(repr(value))


@pytest.mark.parametrize("text", ["", "f()", "1)", "1, w=2", "1) ", "x", "'a"])
def test_more_or_less_than_one_literal_is_no_value(text: str) -> None:
    with pytest.raises(ValueError, match=r"^"):
        python_value(text)


@given(st.text(alphabet="abk=()[]{}'\"\\,:.0179eE-+ \n"))
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        found: object = read(text)
    except (NotThis, TextEnded):
        found = {}
    assert isinstance(found, dict)
