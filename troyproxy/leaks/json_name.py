"""Finds the tool's name in a JSON call, one character at a time, without keeping the call.

It is no JSON parser: it follows nesting and strings, and says *clean* as soon as the text cannot be the head of an
object whose keys are quoted. The name may stand behind the arguments, so nothing is stored but the current key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from troyproxy.leaks.formats import WHOLE_CHARS
from troyproxy.leaks.names import is_declared
from troyproxy.leaks.verdict import Verdict

_NAME_KEYS: Final = frozenset({"name", "function", "tool_name"})
_TOKEN_CHARS: Final = 256  # a longer string is neither a key of ours nor a name


@dataclass(slots=True)
class JsonName:
    """Leak when a name key of the call object (or of its ``function`` object) holds a declared name."""

    format: str
    names: frozenset[str]
    limit: int = WHOLE_CHARS
    depth: int = 0
    base: int = 0  # depth of the call object; 0 = not yet open
    home: int = 0  # depth of the object whose keys count: the call object or its "function"
    key: str = ""
    is_value: bool = False
    quote: str = ""
    escaped: bool = False
    token: str = ""

    def step(self, raw: str, canon: str) -> Verdict:
        """Take one character; *canon* is its canonical form."""
        if self.quote:
            return self._in_string(raw)
        if canon.isspace():
            return Verdict.PENDING
        if raw in "{[":
            return self._open(raw)
        return self._inside(raw) if self.base else Verdict.CLEAN

    def _inside(self, raw: str) -> Verdict:
        if raw in "}]":
            return self._close()
        if raw in "\"'":
            self.quote, self.token = raw, ""
        elif raw in ":,":
            self._separate(raw)
        elif self._key_expected() or not (raw.isalnum() or raw in "+-."):
            return Verdict.CLEAN
        return Verdict.PENDING

    def _in_string(self, raw: str) -> Verdict:
        if self.escaped:
            self.escaped = False
        elif raw == "\\":
            self.escaped = True
        elif raw == self.quote:
            self.quote = ""
            return self._string_ended()
        if len(self.token) < _TOKEN_CHARS:
            self.token += raw
        return Verdict.PENDING

    def _string_ended(self) -> Verdict:
        if self.depth != self.home:
            return Verdict.PENDING
        if not self.is_value:
            self.key = self.token
        elif self.key in _NAME_KEYS:
            return Verdict.LEAK if is_declared(self.token, self.names) else Verdict.CLEAN
        return Verdict.PENDING

    def _open(self, raw: str) -> Verdict:
        if self._key_expected():
            return Verdict.CLEAN
        named = self.depth == self.home and self.key == "function"
        self.depth += 1
        if raw == "{" and (not self.base or named):
            self.base = self.base or self.depth
            self.home, self.key, self.is_value = self.depth, "", False
        return Verdict.PENDING

    def _close(self) -> Verdict:
        if self.depth == self.base:
            return Verdict.CLEAN  # the call object is over and gave no name
        if self.depth == self.home:
            self.home, self.key, self.is_value = self.base, "", True
        self.depth -= 1
        return Verdict.PENDING

    def _separate(self, raw: str) -> None:
        if self.depth == self.home:
            self.is_value = raw == ":"

    def _key_expected(self) -> bool:
        return self.base > 0 and self.depth == self.home and not self.is_value
