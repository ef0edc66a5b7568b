"""The boundary of a multipart body, as its content type names it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troyproxy.wire.multipart import MalformedMultipart, boundary_of


@pytest.mark.parametrize(
    ("header", "boundary"),
    [
        (b"multipart/form-data; boundary=x", b"x"),
        (b'multipart/form-data; charset=utf-8; Boundary="a b?=:/,()"', b"a b?=:/,()"),
        (b"multipart/form-data;boundary=----=_Part_1.2'3+4", b"----=_Part_1.2'3+4"),
        (b"multipart/form-data; boundary=" + b"x" * 200, b"x" * 200),
    ],
)
def test_a_boundary_is_read(header: bytes, boundary: bytes) -> None:
    assert boundary_of(header) == boundary


@pytest.mark.parametrize(
    "header",
    [
        b"multipart/form-data",
        b"multipart/form-data; boundary=",
        b'multipart/form-data; boundary=""',
        b'multipart/form-data; boundary="x "',
        b'multipart/form-data; boundary="a\\"b"',
        b"multipart/form-data; boundary=x; boundary=y",
        b"multipart/form-data; boundary=x; boundary*=y",
        b"multipart/form-data; boundary*0=x",
        b"multipart/form-data; boundary=\xff",
        b"multipart/form-data; boundary=" + b"x" * 201,
        b"multipart/form-data; boundary=x y",
    ],
)
def test_a_boundary_that_cannot_be_is_refused(header: bytes) -> None:
    with pytest.raises(MalformedMultipart):
        boundary_of(header)


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_header_names_a_boundary_or_is_refused(text: bytes) -> None:
    try:
        boundary = boundary_of(b"multipart/form-data; boundary=" + text)
    except MalformedMultipart:
        return
    assert boundary.isascii()
    assert boundary.decode().isprintable()
