"""Finds the tool's name in a JSON call, by the piece, without keeping the call.

It is no JSON parser: it follows nesting and strings, and says *no* as soon as the text cannot be the head of an object
whose keys are quoted. The name may stand behind the arguments, so nothing is stored but the current key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from troyproxy.leaks.effort import Effort
from troyproxy.leaks.table import Look

_NAME_KEYS: Final = frozenset({"name", "function", "tool_name"})
_CALL_KEYS: Final = _NAME_KEYS | {
    *("arguments", "parameters", "args", "type", "id", "tool_call_id", "call_id", "index", "tool_calls"),
}
_TYPES: Final = frozenset({"function", "tool_call", "tool_use", "function_call"})
_STRING: Final = 2  # steps
_TOKEN_CHARS: Final = 256  # a longer string is neither a key of ours nor a name
_PLAIN: Final = {
    '"': re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL),
    "'": re.compile(r"[^'\\]*+(?:\\.[^'\\]*+)*+", re.DOTALL),
}
_ESCAPED: Final = re.compile(r"\\.", re.DOTALL)
_BLANKS: Final = re.compile(r"\s++")
_SCALAR: Final = re.compile(r"[\s\w+.-]++")
_DEEP: Final = re.compile(r"[\s\w+.:,-]++")
"""What is gone over outside of strings: before a key, in a value, and in what is nested in a value."""


@dataclass(slots=True)
class JsonHead:
    """Feed it from the first bracket on. *strict*: an object with a key that no call has is none."""

    strict: bool = False
    keyed: bool = False
    """The first key is the name, and its value the arguments."""
    name: str = ""
    look: Look = Look.MORE
    read: int = 0
    """How many characters were read; those behind a decision are not."""
    effort: Effort = field(default_factory=Effort)
    _depth: int = 0
    _homes: list[int] = field(default_factory=list)  # depths of the objects whose keys count, innermost last
    _key: str = ""
    _is_value: bool = False
    _quote: str = ""
    _escaped: bool = False
    _token: str = ""

    def feed(self, text: str) -> Look:
        """Take the next piece of the original text; the first answer that is not MORE is final."""
        index = 0
        while index < len(text) and self.look is Look.MORE:
            index = self._in_string(text, index) if self._quote else self._outside(text, index)
        self.read += index
        return self.look

    def _in_string(self, text: str, index: int) -> int:
        if self._escaped:
            self._escaped = False
            return index + 1
        plain = _PLAIN[self._quote].match(text, index)
        end = plain.end() if plain else index
        if self._at_home:
            self._add(text[index:end])
        if end == len(text):
            return end
        if text[end] == "\\":  # the last character of this piece
            self._escaped = True
            self._add("\\")
        else:
            self._quote = ""
            self._string_ended()
        return end + 1

    def _add(self, text: str) -> None:
        """Note more of a string; what is escaped is left out: no name of ours has it."""
        if len(self._token) < _TOKEN_CHARS:
            self._token = (self._token + _ESCAPED.sub(r"\\", text[: 2 * _TOKEN_CHARS]))[:_TOKEN_CHARS]

    def _outside(self, text: str, index: int) -> int:
        passed = self._uneventful.match(text, index)
        if passed:
            return passed.end()
        if text[index] in "{[":
            self._open(text[index])
        else:
            self._inside(text[index])
        return index + 1

    @property
    def _uneventful(self) -> re.Pattern[str]:
        if not self._at_home:
            return _DEEP if self._homes else _BLANKS
        return _SCALAR if self._is_value else _BLANKS

    def _inside(self, char: str) -> None:
        if not self._homes:
            self.look = Look.NO
        elif char in "}]":
            self._close()
        elif char in "\"'":
            self._quote, self._token = char, ""
            self._count(_STRING)
        elif char in ":,":  # at home: deeper ones were gone over
            self._is_value = char == ":"
            self._count()
        else:
            self.look = Look.NO

    @property
    def _at_home(self) -> bool:
        return bool(self._homes) and self._depth == self._homes[-1]

    @property
    def _key_expected(self) -> bool:
        return self._at_home and not self._is_value

    def _string_ended(self) -> None:
        if not self._at_home:
            return
        if not self._is_value:
            self._key_read()
        elif self._key in _NAME_KEYS:
            self._found(self._token)
        elif self.strict and self._key == "type" and self._token not in _TYPES:
            self.look = Look.NO

    def _key_read(self) -> None:
        self._key = self._token
        if self.keyed and self._key not in _CALL_KEYS:
            self._found(self._key)
        elif self.strict and self._key not in _CALL_KEYS:
            self.look = Look.NO

    def _found(self, name: str) -> None:
        self.name, self.look = name, Look.YES

    def _count(self, steps: int = 1) -> None:
        self.effort.left -= steps
        if self.effort.left <= 0:
            self.look = Look.NO

    def _open(self, char: str) -> None:
        self._count()
        if self._key_expected:
            self.look = Look.NO
            return
        nested = bool(self._homes) and self._key in ("function", "tool_calls") and self._is_value
        near = nested and self._depth - self._homes[-1] == (self._key == "tool_calls")
        self._depth += 1
        if char == "{" and (not self._homes or near):
            self._homes.append(self._depth)
            self._key, self._is_value = "", False

    def _close(self) -> None:
        if self._at_home:
            self._homes.pop()
            if not self._homes:  # the call object is over and gave no name
                self.look = Look.NO
            self._key, self._is_value = "", True
        self._depth -= 1
