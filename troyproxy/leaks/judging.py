"""Is a call that has begun a leak, now that more of the text is known, or all of it?"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from troyproxy.leaks.asked import Asked
from troyproxy.leaks.calls import Reading, read_calls
from troyproxy.leaks.effort import Effort
from troyproxy.leaks.evidence import Suspect
from troyproxy.leaks.formats import canonical
from troyproxy.leaks.names import is_declared
from troyproxy.leaks.options import Options
from troyproxy.leaks.table import Tier
from troyproxy.leaks.tail import tail_fits, without_stops

_CLOSING: Final = {char: re.compile(rf"(?:\A|\n)[ \t]*({char}{{3,}})[ \t]*(?:\n|\Z)") for char in "`~"}


def is_wanted(suspect: Suspect, asked: Asked) -> bool:
    """Whether a call like *suspect* is looked for in the answer to this request."""
    if suspect.row is None or suspect.fence:
        return not (asked.only_special or (asked.json_answer and suspect.row is None))
    return suspect.tier is Tier.SPECIAL or not asked.only_special


@dataclass(frozen=True, slots=True)
class Judge:
    """The rules that need the text of the call; *asked* and *options* are those of the request.

    What reading takes is spent from *effort*; when it is over, nothing is a call any more.
    """

    asked: Asked
    options: Options
    effort: Effort = field(default_factory=Effort)

    def cleared(self, suspect: Suspect, text: str) -> int | None:
        """Return how much of *text*, which begins at the call, is clean whatever follows; None = not to be said yet."""
        body = _body(suspect, text, ended=False)
        if body is None:
            return 1
        reading = self._read(body)
        if reading.dangling:
            return None
        if not reading.calls:
            return 1
        return None if tail_fits(body, canonical(body), reading.end) else reading.end

    def leaks(self, suspect: Suspect, text: str) -> bool:
        """Whether *text*, which goes from the call to the end of the content, is a leak."""
        body = _body(suspect, text, ended=True)
        if body is None:
            return False
        reading = self._read(body)
        if self.is_echo(body if reading.dangling else body[: reading.end]):
            return False
        if suspect.whole:
            return self._only_calls(reading, body)
        fits = bool(reading.calls) and tail_fits(body, canonical(body), reading.end)
        return reading.dangling or fits

    def is_echo(self, block: str) -> bool:
        """Whether the model repeats what it was given to read."""
        return self.options.echo_check and (self.asked.quoted(block) or self.asked.quoted(without_stops(block)))

    def calls_end(self, text: str) -> int:
        """Return where the calls at the start of *text* end; 0 = there is no whole one."""
        reading = self._read(text)
        return reading.end if reading.calls else 0

    def _only_calls(self, reading: Reading, body: str) -> bool:
        known = all(is_declared(call.name, self.asked.names) for call in reading.calls)
        ended = bool(reading.calls) and not reading.dangling
        return ended and known and tail_fits(body, canonical(body), reading.end)

    def _read(self, text: str) -> Reading:
        return read_calls(text, self.asked.names, extra=self.options.extra_openers, effort=self.effort)


def _body(suspect: Suspect, text: str, *, ended: bool) -> str | None:
    """Return the text without its fence; None when more than the fence is there, or (*ended*) it is not closed."""
    if not suspect.fence:
        return text
    inside = text[suspect.inner :]
    for closing in _CLOSING[suspect.fence[0]].finditer(inside):
        if len(closing[1]) >= len(suspect.fence):
            return None if inside[closing.end() :].strip() else inside[: closing.start()]
    return None if ended else inside.rstrip("`~ \t\n")
