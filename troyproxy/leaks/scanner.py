"""Is the text of one choice, or a part of it, a tool call? It knows no chunks, frames or modes.

    START    nothing but blanks, stray headers and empty shells was read    held
    THINK    inside a think block                                           released
    PROSE    anything else; openers outside of code are looked for          released, but for a begun opener
    CALL     a call has begun (`confirming.py`)                             held
    OPEN     nothing is looked for any more                                 released

Any split of a text gives the same verdict, and the text that is not a leak is released whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from troyproxy.leaks.asked import Asked
from troyproxy.leaks.captured import Captured
from troyproxy.leaks.confirming import Confirming, Say
from troyproxy.leaks.effort import SUSPECT, Effort
from troyproxy.leaks.ending import orphans, shell
from troyproxy.leaks.evidence import Evidence, Position, Suspect
from troyproxy.leaks.formats import canonical
from troyproxy.leaks.held import Held
from troyproxy.leaks.judging import Judge, is_wanted
from troyproxy.leaks.lead import Turn, read_classic, read_lead, read_thoughts
from troyproxy.leaks.options import Options, Scope, Strictness
from troyproxy.leaks.prose import Prose
from troyproxy.leaks.table import Look, Row, Sort, Tier
from troyproxy.leaks.tables import Ends, ends, tables

__all__ = ["Evidence", "Position", "Scanner", "Tier", "scan"]

_DEFAULT: Final = Options()
_MOST_PASSED: Final = 1024  # pieces


class Scanner:
    """One per choice of one response. *leak* is final once set: from `leak.block_start` on the text is swallowed."""

    def __init__(self, asked: Asked, options: Options = _DEFAULT) -> None:
        """*asked* is what the request told, *options* what the operator did."""
        self.leak: Evidence | None = None
        self.effort = Effort()
        self._asked, self._options = asked, options
        self._tables = tables(options.extra_openers)
        self._first, self._firsts = self._tables.first, self._tables.firsts
        self._held, self._prose = Held(), Prose(self._tables, self.effort)
        self._classic = options.strictness is Strictness.MARKERS
        self._state: Callable[[Scanner, str], bool] = Scanner._markers if self._classic else Scanner._start
        self._lead_at = 0
        self._ends: Ends  # of the state `_in_thoughts`
        self._call: Confirming  # of the state `_in_call`
        self._captured: Captured | None = None
        self._easy = False
        """Nothing is held, and only what `_first` finds can change anything."""
        self._clean = 0
        self._passed: list[str] = []
        """Clean text since then; prose reads it when it has to."""
        self._tail = ""
        """The end of the text, not read yet, where one of prose's spellings may begin; nothing else is held then."""

    @property
    def holding(self) -> bool:
        """Whether some text is undecided."""
        return self.leak is None and (len(self._held) > 0 or bool(self._tail))

    @property
    def overflowed(self) -> bool:
        """Whether more than `call_chars` were captured; the rest of the call is gone."""
        return self._captured is not None and self._captured.overflowed

    @property
    def captured(self) -> str:
        """The original text from the call's own beginning on, at most `call_chars` of it; empty without a leak."""
        return "" if self._captured is None else self._captured.text

    def feed(self, text: str) -> int:
        """Take the next piece of content; return how many characters of all the content are certainly clean."""
        if (self._easy or self._tail) and self._state is Scanner._in_prose:
            return self._glance(text)
        return self._clean if self.skim(text) else self._read(text)

    def skim(self, text: str) -> bool:
        """Take the next piece of content if one look shows that it is clean; otherwise nothing of it was read."""
        if not self._easy:
            return False
        for first in self._firsts:
            if first in text:
                if self._first.search(text):
                    return False
                break
        self._pass(text)
        return True

    def finish(self, *, structured: bool = False) -> int:
        """End of the choice: all is decided now. *structured* = the upstream delivered real tool calls in it.

        Text that is fed afterwards is clean, or swallowed if there was a leak. Calling it twice does no harm.
        """
        if self._tail:
            tail, self._tail = self._tail, ""
            self._read(tail)
        self._settle_passed()
        self._held.gather()
        if self.leak is None and len(self._held):
            self._settle(structured=structured)
        if self.leak is None:
            self._held.release(self._held.end)
        self._state, self._easy, self._clean = Scanner._open, False, self._held.gone
        return self._clean

    def _pass(self, text: str) -> None:
        self._passed.append(text)
        self._clean += len(text)
        if len(self._passed) > _MOST_PASSED:
            self._settle_passed()

    def _glance(self, text: str) -> int:
        """Take the next piece of prose when nothing but a tail is held: most of them come to nothing, as in HTML."""
        if self._tail:
            text, self._tail = self._tail + text, ""
        found = self._first.search(text)
        if found is None:
            self._easy = True
        elif found.end() < len(text):
            return self._read(text)
        else:
            start = found.start()
            text, self._tail, self._easy = text[:start], text[start:], False
        if text:
            self._pass(text)
        return self._clean

    def _read(self, text: str) -> int:
        if self._captured is not None:
            self._captured.take(text)
            return self._clean
        self._settle_passed()
        self._held.take(text)
        while self._state(self, text) and self.leak is None:
            text = ""
            if self.effort.left <= 0:
                self._state = Scanner._open
        idle = not len(self._held) and self.leak is None
        self._easy = idle and self._state in (Scanner._in_prose, Scanner._in_thoughts, Scanner._open)
        self._clean = self._held.gone
        return self._clean

    def _settle_passed(self) -> None:
        if text := canonical("".join(self._passed)):
            self._held.passed(len(text))
            if self._state is Scanner._in_prose:
                self._prose.passed(text)
        self._passed = []

    # --- states: each takes the new text, which is held already, and returns whether another one goes on ---

    def _open(self, text: str) -> bool:
        del text
        self._held.gather()
        self._held.release(self._held.end)
        self._firsts = ()  # from here on one look is enough
        return False

    def _markers(self, text: str) -> bool:
        """The rule of the older guard: seven markers at the start, and no further check."""
        del text
        self._held.gather()
        found = read_classic(self._held.canon, self._options)
        if found is Look.MORE:
            return False
        if isinstance(found, Suspect):
            self._leaked(found)
            return False
        self._state = Scanner._open
        return True

    def _start(self, text: str) -> bool:
        del text
        held = self._held
        held.gather()
        held.trim()
        lead = read_lead(held.raw, held.canon, self._lead_at - held.base, held.base, self._tables)
        if lead.at >= self._options.header_chars:
            return self._to_prose(held.base)
        if lead.turn is Turn.WAIT:
            return False
        if lead.turn is Turn.THINK and lead.row is not None:
            self._ends = ends(lead.row.ends)
            self._release(held.base + lead.end)
            self._state = Scanner._in_thoughts
        elif lead.turn is Turn.THOUGHT and not self._prose.thought:
            self._thought(held.base + lead.end)
        elif lead.suspect is not None and is_wanted(lead.suspect, self._asked):
            self._begin(lead.suspect)
        else:
            self._to_prose(held.base if lead.suspect is None else lead.suspect.at + 1)
        return True

    def _in_thoughts(self, text: str) -> bool:
        del text
        held = self._held
        held.gather()
        index, row = read_thoughts(held.canon, held.gone - held.base, self._ends, self.effort)
        if isinstance(row, Row):
            self._thought(held.base + index + (len(row.text) if row.sort is Sort.THOUGHT else 0))
            return True
        self._release(held.base + index)
        return self.effort.left <= 0

    def _in_prose(self, text: str) -> bool:
        del text
        held = self._held
        held.gather()
        keep = self._prose.read(held.raw, held.canon, held.base)
        if self.effort.left <= 0:
            return True
        if self._prose.restart:
            self._thought(self._prose.at)
            return True
        suspect, self._prose.suspect = self._prose.suspect, None
        if suspect is None:
            self._prose.let_go(held.end)
            self._release(keep if self._prose.closers_at >= 0 else self._prose.at)
            return False
        self._release(suspect.begin)
        if self._options.scope is Scope.ANYWHERE and is_wanted(suspect, self._asked):
            self._begin(suspect)
        else:
            self._prose.skip = suspect.at + 1
        return True

    def _in_call(self, text: str) -> bool:
        call = self._call
        answer = call.step(self._held, text)
        if answer.say is Say.WAIT:
            return False
        self._held.gather()
        if answer.say is Say.LEAK:
            self._leaked(call.suspect)
        elif answer.say is Say.SHELL:
            self._lead_at, self._state = answer.until, Scanner._start
        elif call.suspect.position is Position.START:
            self._to_prose(answer.until)
        else:
            self._prose.skip, self._state = answer.until, Scanner._in_prose
        return True

    # --- from state to state ---

    def _begin(self, suspect: Suspect) -> None:
        self.effort.spend(SUSPECT)
        self._call = Confirming(suspect, Judge(self._asked, self._options, self.effort), self._tables)
        self._state = Scanner._in_call

    def _to_prose(self, skip: int) -> bool:
        self._prose.restarted(self._held.base)
        self._prose.skip, self._state = skip, Scanner._in_prose
        return True

    def _thought(self, at: int) -> None:
        self._prose.thought = True
        self._release(at)
        self._prose.restarted(at)
        self._lead_at, self._state = at, Scanner._start

    def _release(self, until: int) -> None:
        self._prose.before = self._held.release(until) or self._prose.before

    # --- the end ---

    def _settle(self, *, structured: bool) -> None:
        if structured:
            found = shell(self._held)
        elif self._state is Scanner._in_call:
            found = self._call.suspect if self._call.leaks(self._held) else None
        elif self._classic or self._asked.only_special:
            found = None
        else:
            found = orphans(self._held, self._prose, self._options, started=self._state is not Scanner._start)
        if found is not None:
            self._leaked(found)

    def _leaked(self, suspect: Suspect) -> None:
        self.leak = suspect.evidence()
        self._captured = Captured(self._options.call_chars)
        self._captured.take(self._held.raw[suspect.at - self._held.base :])
        self._held = Held(suspect.begin, gone=suspect.begin)


def scan(text: str, asked: Asked, options: Options = _DEFAULT, *, structured: bool = False) -> Evidence | None:
    """Return the leak in a whole text, if there is one: the verdict that any split of it gives."""
    scanner = Scanner(asked, options)
    scanner.feed(text)
    scanner.finish(structured=structured)
    return scanner.leak
