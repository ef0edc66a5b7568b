"""Where the fields of a ``multipart/form-data`` body lie, and how one value is replaced with every other byte kept.

It reads no file and decodes no value; what a field means is not known here. Pure: the whole body is at hand.

Strict on purpose. The next reader decides by the same body which model it runs, so a body that two readers could
understand differently is refused (`MalformedMultipart`) instead of interpreted: line ends other than CRLF around a
boundary, a boundary inside a part, folded or odd part headers, parameters that stand twice, ``name*``; and, of a field
that is asked for, a part of that name in another case or with a file name (``filename=""`` is a field to some). No
client that follows RFC 7578 writes any of these. Of fields that are there twice the last one counts, as in JSON; a
replacement goes into all of them, so that whoever reads the first sees the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

MAX_PARTS: Final = 1000
MAX_HEADERS: Final = 16 * 1024
"""Bytes of the headers of one part."""

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_PARAMETER: Final = re.compile(
    rb"[ \t]*;[ \t]*(" + _TOKEN + rb')[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))', re.DOTALL
)
_END_OF_PARAMETERS: Final = re.compile(rb"[ \t]*;?[ \t]*\Z")
_HEADER: Final = re.compile(rb"(" + _TOKEN + rb"):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_BOUNDARY: Final = re.compile(rb"[\x20-\x5b\x5d-\x7e]{0,199}[\x21-\x5b\x5d-\x7e]")
_AFTER: Final = re.compile(rb"(--)?[ \t]*(\r\n|\Z)")
_NAME: Final = re.compile(rb'(?:[^\\]|\\["\\])*', re.DOTALL)
_ESCAPE: Final = re.compile(rb'\\(["\\])')
_PLAIN: Final = frozenset({b"7bit", b"8bit", b"binary"})


class MalformedMultipart(ValueError):
    """The text is no form, or one that two readers might read differently. The message says why."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part; its value is ``body[start:end]``."""

    name: str
    is_file: bool
    """It has a file name, and so is no field."""
    coded: bool
    """Its value stands in a transfer encoding, which some readers undo and others do not."""
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Form:
    """A body with the places of its parts."""

    body: bytes = field(repr=False)
    boundary: bytes
    parts: tuple[Part, ...]

    def text(self, name: str) -> str | None:
        """Return the value of the field *name*, of several the last; None without one.

        Raises MalformedMultipart when it is not UTF-8 as it stands, would be a boundary once it is cut to its end, or
        could be found elsewhere by another reader.
        """
        fields = self._fields(name)
        if len(fields) not in {0, sum(part.name.casefold() == name.casefold() for part in self.parts)}:
            raise MalformedMultipart(f"the field {name!r} is there as a file too, or in another spelling")
        if any(part.coded for part in fields):
            raise MalformedMultipart(f"the field {name!r} is in a transfer encoding; send it as it is")
        value = self.body[fields[-1].start : fields[-1].end] if fields else b""
        if b"--" + self.boundary in value:
            raise MalformedMultipart(f"the field {name!r} holds the boundary")
        try:
            return value.decode() if fields else None
        except UnicodeDecodeError:
            raise MalformedMultipart(f"the field {name!r} is no UTF-8") from None

    def with_text(self, name: str, value: str) -> Form:
        """Return the form with *value* in the field *name*, wherever it stands, and every other byte as it was."""
        text, fields = value.encode(), self._fields(name)
        if all(self.body[part.start : part.end] == text for part in fields):
            return self
        view, pieces, parts = memoryview(self.body), list[bytes | memoryview](), list[Part]()
        at = moved = 0
        for part in self.parts:
            start = part.start + moved
            if part in fields:
                pieces += (view[at : part.start], text)
                at = part.end
                moved = start + len(text) - part.end
            parts.append(replace(part, start=start, end=part.end + moved))
        return Form(b"".join((*pieces, view[at:])), self.boundary, tuple(parts))

    def _fields(self, name: str) -> list[Part]:
        return [part for part in self.parts if part.name == name and not part.is_file]


def boundary_of(content_type: bytes) -> bytes:
    """Return the boundary that a header value like ``multipart/form-data; boundary=x`` names.

    Raises MalformedMultipart without one, or with one that cannot be: longer than 200 bytes, not printable ASCII.
    """
    _, semicolon, rest = content_type.partition(b";")
    parameters = _parameters(semicolon + rest)
    boundary = parameters.get(b"boundary")
    if boundary is None or any(name.startswith(b"boundary*") for name in parameters):
        raise MalformedMultipart("the content-type names no boundary")
    if not _BOUNDARY.fullmatch(boundary):
        raise MalformedMultipart("the boundary in the content-type is not 1 to 200 printable ASCII characters")
    return boundary


def scan(body: bytes, boundary: bytes) -> Form:
    """Return the form in *body*. Raises MalformedMultipart."""
    marks = list(_marks(body, b"--" + boundary))
    if not marks or not marks[-1].last:
        raise MalformedMultipart("the closing boundary is missing")
    parts = (_part(body, mark.end, following.start) for mark, following in pairwise(marks))
    return Form(body, boundary, tuple(parts))


@dataclass(frozen=True, slots=True)
class _Mark:
    """One delimiter, from the line end before it to behind its own."""

    start: int
    end: int
    last: bool


def _marks(body: bytes, line: bytes) -> Iterator[_Mark]:
    """Yield the delimiters in order; the one that closes is the last, or nothing is."""
    if b"\r" + line in body:
        raise MalformedMultipart("a boundary stands behind a bare carriage return")
    closed = False
    for count, at in enumerate(_lines(body, line)):
        if closed:
            raise MalformedMultipart("there is a boundary behind the closing one")
        if count > MAX_PARTS:
            raise MalformedMultipart(f"there are more than {MAX_PARTS} parts")
        after = _AFTER.match(body, at + len(line))
        closed = after is not None and after[1] is not None
        if after is None or not (closed or after[2]):
            raise MalformedMultipart("a line begins with the boundary and goes on; choose another boundary")
        yield _Mark(max(0, at - 2), after.end(), closed)


def _lines(body: bytes, line: bytes) -> Iterator[int]:
    """Yield where *line* stands at the beginning of a line."""
    if body.startswith(line):
        yield 0
    at = body.find(b"\n" + line)
    while at >= 0:
        if body[at - 1 : at] != b"\r":
            raise MalformedMultipart("a boundary stands behind a bare line feed; lines end with CR LF")
        yield at + 1
        at = body.find(b"\n" + line, at + 1)


def _part(body: bytes, start: int, end: int) -> Part:
    """Return the part between two delimiters."""
    blank = body.find(b"\r\n\r\n", start, min(end, start + MAX_HEADERS))
    if blank < 0:
        raise MalformedMultipart(f"a part has no headers and empty line within its first {MAX_HEADERS} bytes")
    headers = _headers(body[start:blank])
    disposition = headers.get(b"content-disposition", b"")
    kind, semicolon, rest = disposition.partition(b";")
    parameters = _parameters(semicolon + rest)
    if kind.strip().lower() != b"form-data" or b"name" not in parameters or b"name*" in parameters:
        raise MalformedMultipart('a part has no header like: Content-Disposition: form-data; name="model"')
    coded = headers.get(b"content-transfer-encoding", b"binary").strip().lower() not in _PLAIN
    is_file = not parameters.keys().isdisjoint({b"filename", b"filename*"})
    return Part(_name(parameters[b"name"]), is_file, coded, blank + 4, end)


def _headers(block: bytes) -> Mapping[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for line in block.split(b"\r\n"):
        header = _HEADER.fullmatch(line)
        if header is None:
            raise MalformedMultipart("a part has a line that is no header")
        name = header[1].lower()
        if name in found:
            raise MalformedMultipart("a part has a header twice")
        found[name] = header[2]
    return found


def _parameters(text: bytes) -> Mapping[bytes, bytes]:
    """Return the parameters in ``; a=b; c="d"``, names in lower case, values as they are written."""
    found: dict[bytes, bytes] = {}
    at = 0
    while parameter := _PARAMETER.match(text, at):
        name = parameter[1].lower()
        if name in found:
            raise MalformedMultipart("a header has a parameter twice")
        found[name] = parameter[2] if parameter[2] is not None else parameter[3]
        at = parameter.end()
    if not _END_OF_PARAMETERS.match(text, at):
        raise MalformedMultipart("the parameters of a header cannot be read")
    return found


def _name(written: bytes) -> str:
    if not _NAME.fullmatch(written):
        raise MalformedMultipart("the name of a part has a backslash that escapes nothing")
    return _ESCAPE.sub(rb"\1", written).decode("utf-8", "replace")
