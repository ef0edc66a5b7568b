"""The stages of the detector: each takes one character and answers with a verdict or with the next stage.

Working by the character makes every split of the text give the same verdict, by construction. No stage keeps more
than a marker or a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from troyproxy.leaks.formats import CLOSERS, HEADER_CHARS, INNER, OPENERS, Grammar, Marker
from troyproxy.leaks.json_name import JsonName
from troyproxy.leaks.names import is_declared
from troyproxy.leaks.verdict import Verdict

_AFTER_NAME: Final = ">{(<[)/"  # the spellings seen: `N>`, `N {`, `N({`, `N)`, `N<arg_key>`, `N/>`
_BESIDE_NAME: Final = "\"',"


class Stage(Protocol):
    """One state; *format* is what a leak found here is called, *limit* how many characters may have been read."""

    format: str

    @property
    def limit(self) -> int: ...

    def step(self, raw: str, canon: str) -> Verdict | Stage:
        """Take one character; *canon* is its canonical form."""
        ...


@dataclass(slots=True)
class Lead:
    """Before the content: blanks are skipped, then a marker must begin."""

    names: frozenset[str]
    format: str = ""
    limit: ClassVar[int] = HEADER_CHARS

    def step(self, raw: str, canon: str) -> Verdict | Stage:
        """Stay while blank, then hand over."""
        return self if canon.isspace() else Spelling(self.names, (*OPENERS, *CLOSERS)).step(raw, canon)


@dataclass(slots=True)
class Spelling:
    """Inside a marker: as long as one of *markers* can still be spelled out.

    No marker is a strict prefix of another (tested), so the first full match is final.
    """

    names: frozenset[str]
    markers: tuple[Marker, ...]
    seen: str = ""
    format: str = ""
    limit: ClassVar[int] = HEADER_CHARS

    def step(self, raw: str, canon: str) -> Verdict | Stage:
        """Narrow the candidates by one character."""
        del raw  # names begin behind the marker
        self.seen += canon
        self.markers = tuple(marker for marker in self.markers if marker.text.startswith(self.seen))
        if not self.markers:
            return Verdict.CLEAN
        first = self.markers[0]
        return _STAGES[first.grammar](first.format, self.names) if first.text == self.seen else self


@dataclass(slots=True)
class Anything:
    """Behind a special token: whatever is said is a call."""

    format: str
    limit: ClassVar[int] = HEADER_CHARS

    def step(self, raw: str, canon: str) -> Verdict | Stage:
        """Blanks alone decide nothing."""
        del raw
        return self if canon.isspace() else Verdict.LEAK


@dataclass(slots=True)
class Name:
    """Reading a tool name, bare or quoted, and the character that shows that a call goes on behind it."""

    format: str
    names: frozenset[str]
    raw: str = ""
    ended: bool = False
    limit: ClassVar[int] = HEADER_CHARS

    def step(self, raw: str, canon: str) -> Verdict | Stage:
        """Take one character of the original text."""
        if not self.ended and (raw.isalnum() or raw in "_.:-"):
            self.raw += raw
            return self
        if canon.isspace() or raw in _BESIDE_NAME:
            self.ended = bool(self.raw)
            return self
        fits = canon in _AFTER_NAME and is_declared(self.raw, self.names)
        return Verdict.LEAK if fits else Verdict.CLEAN


@dataclass(slots=True)
class Wrapper:
    """Behind `<tool_call>`: JSON, an inner marker, or a bare name, after blanks."""

    format: str
    names: frozenset[str]
    limit: ClassVar[int] = HEADER_CHARS

    def step(self, raw: str, canon: str) -> Verdict | Stage:
        """Look at the first character that is not blank; it also names the format."""
        if canon.isspace():
            return self
        if canon == "<":
            return Spelling(self.names, INNER).step(raw, canon)
        if raw in "{[":
            scan = JsonName("F03" if raw == "{" else "F13", self.names)
            scan.step(raw, canon)
            return scan
        return Name("F23", self.names).step(raw, canon)


_STAGES: Final[Mapping[Grammar, Callable[[str, frozenset[str]], Stage]]] = {
    Grammar.NAME: Name,
    Grammar.WRAPPER: Wrapper,
    Grammar.ANYTHING: lambda format_id, _: Anything(format_id),
    Grammar.RESTART: lambda _, names: Lead(names),
}
