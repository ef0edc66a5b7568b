from __future__ import annotations

import re
import tracemalloc
from typing import Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from troyproxy.wire.multipart import MAX_HEADERS, MAX_PARTS, MalformedMultipart, scan

B = b"bnd"
FILE = b'Content-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav'
MODEL = b'Content-Disposition: form-data; name="model"'


def form(*parts: tuple[bytes, bytes], boundary: bytes = B, before: bytes = b"", after: bytes = b"\r\n") -> bytes:
    """Return a body of (headers, value) parts."""
    lines = [b"--%b\r\n%b\r\n\r\n%b\r\n" % (boundary, head, value) for head, value in parts]
    return before + b"".join(lines) + b"--" + boundary + b"--" + after


def field(name: str, more: bytes = b"") -> bytes:
    """Return the headers of a field."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return b'Content-Disposition: form-data; name="%b"%b' % (escaped.encode(), more)


# --- what is read ---


def test_a_field_is_read_wherever_it_stands() -> None:
    assert scan(form((FILE, b"\x00\xff\r\n--x"), (MODEL, b"whisper"), (field("a"), b"")), B).text("model") == "whisper"


def test_a_field_that_is_not_there_is_none() -> None:
    assert scan(form((FILE, b"x")), B).text("model") is None


def test_a_form_without_parts_has_no_field() -> None:
    assert scan(b"--bnd--", B).parts == ()


def test_of_fields_that_are_there_twice_the_last_counts() -> None:
    assert scan(form((MODEL, b"one"), (MODEL, b"two")), B).text("model") == "two"


FILES: Final = (b'; filename="model"', b"; filename*=UTF-8''m", b'; filename=""', b"; filename=x")


@pytest.mark.parametrize("more", FILES)
def test_a_file_is_no_field(more: bytes) -> None:
    assert scan(form((MODEL + more, b"m2")), B).text("model") is None


@pytest.mark.parametrize("other", [*(MODEL + more for more in FILES), MODEL.replace(b"model", b"Model")])
@pytest.mark.parametrize("first", [True, False])
def test_a_field_that_another_reader_may_find_elsewhere_is_refused(other: bytes, first: bool) -> None:
    parts = [(MODEL, b"m1"), (other, b"m2")]
    with pytest.raises(MalformedMultipart, match="as a file too"):
        scan(form(*(parts if first else reversed(parts))), B).text("model")


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Disposition: form-data; name=model",
        b'content-disposition:form-data;name="model"',
        b'CONTENT-DISPOSITION: FORM-DATA ; NAME = "model" ;',
        b'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name="model"',
        b'Content-Disposition: form-data; name="model"\r\nContent-Transfer-Encoding: 8BIT',
        b'Content-Disposition: form-data; x="a;\\" b"; name="model"',
        b'Content-Disposition: form-data; name="model"\r\nX-Odd: \xc3\xa9',
    ],
)
def test_a_head_may_be_written_in_several_ways(head: bytes) -> None:
    assert scan(form((head, b"m")), B).text("model") == "m"


def test_a_preamble_and_an_epilogue_are_left_alone() -> None:
    body = form((MODEL, b"a"), before=b"for old readers --bnd\r\n", after=b" \t\r\nthe end --bnd")
    read = scan(body, B)
    assert (read.text("model"), read.with_text("model", "bc").body) == ("a", body.replace(b"\r\na\r\n", b"\r\nbc\r\n"))


def test_a_delimiter_may_be_followed_by_blanks() -> None:
    body = b"--bnd \t\r\n" + MODEL + b"\r\n\r\nm\r\n--bnd-- "
    assert scan(body, B).text("model") == "m"


def test_the_boundary_in_the_middle_of_a_line_is_content() -> None:
    read = scan(form((MODEL, b"m"), (FILE, b"x--bnd--\r\n-bnd\r\n --bnd")), B)
    assert [part.end - part.start for part in read.parts] == [1, 22]


@pytest.mark.parametrize("name", ['a"b', "a\\b", "é", "a;b", "model\\"])
def test_a_quoted_name_is_unquoted(name: str) -> None:
    assert scan(form((field(name), b"v")), B).text(name) == "v"


@pytest.mark.parametrize("head", [MODEL.replace(b"model", b"Model"), MODEL.replace(b"model", b" model")])
def test_only_model_is_model(head: bytes) -> None:
    assert scan(form((head, b"v")), B).text("model") is None


# --- what is replaced ---


def test_a_value_is_replaced_wherever_the_field_stands_and_nothing_else() -> None:
    parts = ((MODEL, b"one"), (FILE, b"one\r\n"), (MODEL, b""), (field("prompt"), b"one"))
    expected = ((MODEL, b"zw\xc3\xb6lf"), (FILE, b"one\r\n"), (MODEL, b"zw\xc3\xb6lf"), (field("prompt"), b"one"))
    assert scan(form(*parts), B).with_text("model", "zwölf").body == form(*expected)


def test_without_the_field_nothing_is_replaced() -> None:
    body = form((FILE, b"one"))
    assert scan(body, B).with_text("model", "x").body == body


# --- what is refused ---


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"--bnd",
        b"--bnd\r\n",
        form((MODEL, b"m"))[:-4],
        form((MODEL, b"m"))[:-6],
        form((MODEL, b"m")).replace(b"--bnd--", b"--bnd-"),
        form((MODEL, b"m")).replace(b"--bnd--", b"--bnd--x"),
        form((MODEL, b"m")).replace(b"\r\n", b"\n"),
        form((MODEL, b"m"), (FILE, b"a\n--bnd\nb")),
        form((MODEL, b"m"), (FILE, b"a\r--bnd\rb")),
        form((MODEL, b"m"), (FILE, b"a\r\n--bndx\r\nb")),
        form((MODEL, b"m"), (FILE, b"a\r\n--bnd x\r\nb")),
        form((MODEL, b"m"), after=b"\r\n--bnd\r\n"),
        form((MODEL, b"m"), after=b"\r\n--bnd--"),
        form((MODEL, b"m"), before=b"x\n"),
        b"--bnd\r\n--bnd--",
        b"--bnd\r\n\r\nvalue\r\n--bnd--",
        b"--bnd\r\n" + MODEL + b"\r\n--bnd--",
        b"--bnd\r\n" + MODEL + b"\r\n\r\n--bnd--",
    ],
    ids=repr,
)
def test_a_broken_form_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedMultipart):
        scan(body, B)


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Type: text/plain",
        b'Content-Disposition: attachment; name="model"',
        b"Content-Disposition: form-data",
        b'Content-Disposition: form-data; filename="x"',
        b"Content-Disposition: form-data; name*=utf-8''model",
        b"Content-Disposition: form-data; name=\"a\"; name*=utf-8''model",
        b'Content-Disposition: form-data; name="a"; name="model"',
        b'Content-Disposition: form-data; name="a"; NAME="model"',
        b'Content-Disposition: form-data; name="mod\\el"',
        b'Content-Disposition: form-data; name="model',
        b'Content-Disposition: form-data; name="model" x',
        b'Content-Disposition: form-data name="model"',
        b'Content-Disposition : form-data; name="model"',
        b' Content-Disposition: form-data; name="model"',
        b'Content-Disposition: form-data;\r\n name="model"',
        b'Content-Disposition: form-data; name="a"\nContent-Disposition: form-data; name="model"',
        b'Content-Disposition: form-data; name="a"\rContent-Disposition: form-data; name="model"',
        b'Content-Disposition: form-data; name="a"\r\nContent-Disposition: form-data; name="model"',
        b'Content-Disposition: form-data; name="mo\x00del"',
        b"no header at all",
    ],
    ids=repr,
)
def test_a_part_that_two_readers_may_read_differently_is_refused(head: bytes) -> None:
    with pytest.raises(MalformedMultipart):
        scan(form((MODEL, b"m"), (head, b"other")), B)


@pytest.mark.parametrize(
    "part",
    [
        (MODEL + b"\r\nContent-Transfer-Encoding: base64", b"bQ=="),
        (MODEL + b"\r\nContent-Transfer-Encoding: quoted-printable", b"=6d"),
        (MODEL, b"\xff"),
        (MODEL, b"alpha/--bnd--"),
    ],
)
def test_a_model_that_is_no_plain_text_is_refused(part: tuple[bytes, bytes]) -> None:
    with pytest.raises(MalformedMultipart):
        scan(form(part), B).text("model")


def test_a_field_that_nobody_asks_for_may_be_coded() -> None:
    assert scan(form((field("a", b"\r\nContent-Transfer-Encoding: base64"), b"eA==")), B).text("model") is None


def test_parts_are_counted() -> None:
    assert len(scan(form(*[(MODEL, b"m")] * MAX_PARTS), B).parts) == MAX_PARTS
    with pytest.raises(MalformedMultipart, match="more than"):
        scan(form(*[(MODEL, b"m")] * (MAX_PARTS + 1)), B)


def test_the_headers_of_a_part_are_bounded() -> None:
    with pytest.raises(MalformedMultipart):
        scan(form((MODEL + b"\r\nX: " + b"x" * MAX_HEADERS, b"m")), B)


# --- boundaries ---


# --- any form, any text ---

BOUNDARIES = st.from_regex(r"[0-9A-Za-z'()+_,./:=? -]{0,40}[0-9A-Za-z'()+_,./:=?-]", fullmatch=True).map(str.encode)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=12) | st.just("model")


@st.composite
def forms(draw: st.DrawFn) -> tuple[bytes, list[tuple[str, bool, bytes]]]:
    boundary = draw(BOUNDARIES)
    drawn = draw(st.lists(st.tuples(NAMES, st.booleans(), st.binary(max_size=200)), max_size=6))
    line = b"--" + boundary
    for _, _, value in drawn:
        assume(not any(end + line in b"\r\n" + value + b"\r\n" for end in (b"\r", b"\n")))
    return boundary, drawn


@given(forms(), st.text(st.characters(codec="utf-8"), max_size=20))
def test_what_a_client_puts_in_comes_out_and_nothing_else_moves(
    given_form: tuple[bytes, list[tuple[str, bool, bytes]]], new: str
) -> None:
    boundary, parts = given_form
    heads = [(field(name, b'; filename="f"' if is_file else b""), value) for name, is_file, value in parts]
    read = scan(form(*heads, boundary=boundary), boundary)
    found = [(part.name, part.is_file, read.body[part.start : part.end]) for part in read.parts]
    assert found == parts
    changed = [
        (head, new.encode() if (name, is_file) == ("model", False) else value)
        for (head, value), (name, is_file, _) in zip(heads, parts, strict=True)
    ]
    edited = read.with_text("model", new)
    assert (edited.body, edited) == (form(*changed, boundary=boundary), scan(edited.body, boundary))


PIECES = st.sampled_from(
    [b"--bnd", b"--", b"\r\n", b"\r", b"\n", b" ", MODEL, FILE, b'"', b";", b"x", b"\x00", b"name="]
)


@given(st.lists(PIECES | st.binary(max_size=3), max_size=30).map(b"".join))
def test_any_text_is_a_form_or_is_refused(text: bytes) -> None:
    try:
        read = scan(text, B)
    except MalformedMultipart:
        return
    assert all(0 <= part.start <= part.end <= len(text) for part in read.parts)
    assert len(re.findall(rb"(?:\A|[\r\n])--bnd", text)) == len(read.parts) + 1


def test_a_value_that_stays_costs_no_copy() -> None:
    read = scan(form((MODEL, b"a"), (FILE, b"x")), B)
    assert read.with_text("model", "a") is read


def test_a_replacement_copies_the_body_once() -> None:
    read = scan(form((MODEL, b"a"), (FILE, bytes(1 << 22))), B)
    tracemalloc.start()
    try:
        edited = read.with_text("model", "b")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(edited.body) < peak < 1.1 * len(read.body)
