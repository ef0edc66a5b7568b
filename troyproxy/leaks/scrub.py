"""Takes the spellings of special tokens out of reasoning text. It looks for no calls; other text passes unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from troyproxy.leaks import openers
from troyproxy.leaks.formats import canonical
from troyproxy.leaks.table import Look, Row, Table, Tier
from troyproxy.leaks.tables import finder


def _special() -> Iterator[Row]:
    """Tokens one by one: of a row that is several of them, the first is found first, and so on."""
    yield from openers.parts()
    for row in (*openers.openers(), *openers.closers()):
        if row.tier is Tier.SPECIAL and not row.text.startswith("<|message_sep|>"):
            yield row


_SPECIAL: Final = Table(_special())
_FIRST: Final = finder(set(_SPECIAL.rows))


class Scrub:
    """One per reasoning field of one choice. It holds at most what may become a token."""

    def __init__(self) -> None:
        self.found: str | None = None
        """The format id of the first token that was taken out."""
        self._held = ""

    def feed(self, text: str) -> str:
        """Take the next piece; return what may go out now."""
        if not self._held and not _FIRST.search(text):
            return text
        raw, self._held = self._held + text, ""
        canon, kept, index = canonical(raw), [], 0
        while found := _FIRST.search(canon, index):
            start = found.start()
            row = _SPECIAL.at(canon, start)
            if row is Look.MORE:
                self._held, raw = raw[start:], raw[:start]
                break
            taken = isinstance(row, Row) and raw.startswith(row.exact, start)
            kept.append(raw[index : start + (not taken)])
            index = start + 1
            if isinstance(row, Row) and taken:
                self.found, index = self.found or row.format, start + len(row.text)
        kept.append(raw[index:])
        return "".join(kept)

    def finish(self) -> str:
        """End of the choice: return what was held; a mere beginning of a token is text."""
        held, self._held = self._held, ""
        return held
