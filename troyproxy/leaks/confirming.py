"""A call has begun: is it a leak, is it text, or is more needed?

    HEAD   behind the opener, up to the tool's name                          512 characters
    JSON   the name is in JSON, perhaps behind the arguments                 256 KiB; else 64 KiB
    HOLD   whether it is a leak depends on what follows the call             64 KiB
    ECHO   it is a call, but so far a repetition of an input message         64 KiB

A bound that is reached means text, and so does the end of the effort (`effort.py`). Each decision is made on a prefix
whose length does not depend on how the text was cut; held text is read again only when it has grown by a quarter, and
a long one when it has doubled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from troyproxy.leaks.dialects import dialect
from troyproxy.leaks.evidence import Position, Suspect
from troyproxy.leaks.heads import Head
from troyproxy.leaks.held import Held
from troyproxy.leaks.json_head import JsonHead
from troyproxy.leaks.judging import Judge
from troyproxy.leaks.lead import head_of, shell_end
from troyproxy.leaks.names import is_declared, plain, spelling
from troyproxy.leaks.table import Follow, Look, Tier
from troyproxy.leaks.tables import Tables

_FIRST_LOOK: Final = 64  # characters of a call that is looked at whole for the first time
_GROWTH: Final = 4
_LONG: Final = 1024  # characters from which on a call is looked at again only when it has doubled


class Say(StrEnum):
    """WAIT = more text is needed; LEAK; TEXT = no call; SHELL = an empty one, the content starts behind it."""

    WAIT = "wait"
    LEAK = "leak"
    TEXT = "text"
    SHELL = "shell"


@dataclass(frozen=True, slots=True)
class Answer:
    """With TEXT and SHELL, *until*: no call begins before this offset."""

    say: Say
    until: int = 0


_WAIT, _LEAK = Answer(Say.WAIT), Answer(Say.LEAK)


class Confirming:
    """One per suspicion."""

    def __init__(self, suspect: Suspect, judge: Judge, tables: Tables) -> None:
        """*judge* knows the request."""
        self.suspect: Final = suspect
        self._judge, self._tables = judge, tables
        self._asked, self._options = judge.asked, judge.options
        self._step: Callable[[Confirming, Held, str], Answer] = Confirming._head
        self._json, self._shape = JsonHead(), ""
        self._wake = _FIRST_LOOK
        self._quoted_at = 0
        row = suspect.row
        self._is_code = row is not None and row.follow is Follow.CODE and self._at_start

    def step(self, held: Held, text: str) -> Answer:
        """Take *text*, which was just added to *held*."""
        return self._step(self, held, text)

    def leaks(self, held: Held) -> bool:
        """Whether it is a leak, now that the text has ended."""
        text = held.raw[self.suspect.at - held.base :]
        if self._step is Confirming._hold:
            return self._judge.leaks(self.suspect, text)
        begun = self._is_code and self._step is not Confirming._echo and bool(text[len(self._marker) :].strip())
        return begun and self._named("", " code") and not self._judge.is_echo(text)

    @property
    def _at_start(self) -> bool:
        return self.suspect.position is Position.START and not self.suspect.fence

    @property
    def _marker(self) -> str:
        return self.suspect.row.text if self.suspect.row else ""

    def _text(self, length: int = 1) -> Answer:
        return Answer(Say.TEXT, self.suspect.at + length)

    # --- HEAD ---

    def _head(self, held: Held, text: str) -> Answer:
        del text
        held.gather()
        begin = self.suspect.at - held.base
        stop = begin + self._options.header_chars
        head = head_of(self.suspect, held.raw[begin:stop], held.canon[begin:stop], self.suspect.at, self._asked.names)
        if head.json_at >= 0:
            return self._begin_json(held, head)
        if head.look is Look.MORE and len(held.raw) < stop and self._may_be(head.name):
            return _WAIT
        if head.look is Look.YES:
            return self._confirm(held, head.name, head.shape)
        if self._is_code:
            return self._confirm(held, "", " code")
        return self._no_call(held) if head.look is Look.NO else self._text()

    def _no_call(self, held: Held) -> Answer:
        end = shell_end(self.suspect, held.canon, held.base, self._tables) if self._at_start else None
        if end is None:
            return self._text()
        return _WAIT if end < 0 else Answer(Say.SHELL, held.base + end)

    # --- JSON ---

    def _begin_json(self, held: Held, head: Head) -> Answer:
        keyed = self.suspect.row is not None and self._keyed
        self._json = JsonHead(strict=self.suspect.row is None, keyed=keyed, effort=self._judge.effort)
        self._shape = head.shape
        self._step = Confirming._in_json
        return self._in_json(held, held.raw[self.suspect.at - held.base + head.json_at :])

    @property
    def _keyed(self) -> bool:
        return self._marker == "<|tools_prefix|>"

    def _in_json(self, held: Held, text: str) -> Answer:
        long = self._at_start and self.suspect.row is not None
        bound = self._options.call_chars if long else self._options.whole_chars
        look = self._json.feed(text[: bound - self._json.read])
        if look is Look.MORE and self._json.read < bound:
            return _WAIT
        self._judge.effort.read(self._json.read)
        held.gather()
        if look is Look.YES:
            return self._confirm(held, self._json.name, self._shape)
        return self._confirm(held, "", self._shape) if self._is_code else self._text()

    # --- the name is known ---

    def _may_be(self, name: str) -> bool:
        """Whether a call of this tool can be a leak here; the empty name is one that is not yet known."""
        if not name or is_declared(name, self._asked.names):
            return True
        special = self.suspect.tier is Tier.SPECIAL and self._at_start
        return special and not self._asked.known_only

    def _named(self, name: str, shape: str) -> bool:
        """Note what was found; False where that is not looked for."""
        suspect, row = self.suspect, self.suspect.row
        declared = spelling(name, self._asked.names)
        suspect.name, suspect.declared = declared or plain(name), declared is not None
        suspect.format = dialect(row, shape, name) if row else shape
        allowed = self._may_be(name) and (bool(name) or not self._asked.known_only)
        return allowed and self._options.looks_for(suspect.format)

    def _confirm(self, held: Held, name: str, shape: str) -> Answer:
        if not self._named(name, shape):
            return self._text()
        if not (self._at_start and self.suspect.row is not None):
            self._step = Confirming._hold
        elif self._options.echo_check:
            self._step = Confirming._echo
        else:
            return _LEAK
        return self._step(self, held, "")

    # --- HOLD ---

    def _hold(self, held: Held, text: str) -> Answer:
        del text
        begin, bound = self.suspect.at - held.base, self._options.whole_chars
        while held.end - self.suspect.at >= self._wake:
            held.gather()
            cleared = self._judge.cleared(self.suspect, held.raw[begin : begin + self._wake])
            if cleared is None and self._wake >= bound:
                cleared = bound
            if cleared is not None or self._judge.effort.over:
                return self._text(cleared or 1)
            self._wake = min(bound, self._wake + self._wake // (_GROWTH if self._wake < _LONG else 1))
        return _WAIT

    # --- ECHO ---

    def _echo(self, held: Held, text: str) -> Answer:
        del text
        held.gather()
        begin, bound = self.suspect.at - held.base, self._options.whole_chars
        block, inputs = held.raw[begin : begin + bound], self._asked.inputs.text()
        trimmed = block.rstrip()
        if not inputs.startswith(trimmed, self._quoted_at):
            self._quoted_at = inputs.find(trimmed, self._quoted_at)
        if self._quoted_at >= 0:
            return _WAIT if len(block) < bound else self._text(bound)
        echoed = self._judge.calls_end(block[: _common(block, inputs)])
        return self._text(echoed) if echoed else _LEAK


def _common(block: str, inputs: str) -> int:
    """Return the length of the longest part at the start of *block* that, trimmed, stands in *inputs*."""
    low, high = 0, len(block)  # the part of length *low* stands there, that of length *high* does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if block[:middle].rstrip() in inputs else (low, middle)
    return low
