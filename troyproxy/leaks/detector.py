"""Is the text of one choice a tool call? A state machine over text; it does not know chunks, frames or modes.

It looks at the start of the content only. Undecided text belongs to the caller, who must not lose it: `finish` makes
a mere prefix clean.
"""

from __future__ import annotations

from troyproxy.leaks.formats import HEADER_CHARS, canonical
from troyproxy.leaks.stages import Lead, Stage
from troyproxy.leaks.verdict import Verdict

__all__ = ["Detector", "Verdict"]


class Detector:
    """One per choice of one response. A verdict other than PENDING is final; any split of the text gives the same."""

    def __init__(self, names: frozenset[str]) -> None:
        """*names* are the declared tools."""
        self._stage: Stage = Lead(names)
        self._verdict = Verdict.PENDING
        self._read = 0
        self._head = ""

    @property
    def format(self) -> str | None:
        """The id of the leaked format; None unless the verdict is LEAK."""
        return self._stage.format if self._verdict is Verdict.LEAK else None

    @property
    def head(self) -> str:
        """The undecided text, original spelling, cut at 512 characters and one (a longer one is no mere marker)."""
        return self._head

    @property
    def suspicious(self) -> bool:
        """Undecided, and more than blanks was read."""
        return self._verdict is Verdict.PENDING and bool(canonical(self._head).strip())

    def feed(self, text: str) -> Verdict:
        """Take the next piece of content and return the verdict so far."""
        if self._verdict is Verdict.PENDING:
            self._head += text[: HEADER_CHARS + 1 - len(self._head)]
            for raw in text:
                if self._step(raw) is not Verdict.PENDING:
                    break
        return self._verdict

    def finish(self) -> Verdict:
        """End of the content: what is still undecided is clean."""
        if self._verdict is Verdict.PENDING:
            self._verdict = Verdict.CLEAN
        return self._verdict

    def _step(self, raw: str) -> Verdict:
        self._read += 1
        step = self._stage.step(raw, canonical(raw))
        if isinstance(step, Verdict):
            self._verdict = step
        else:
            self._stage = step
        if self._verdict is Verdict.PENDING and self._read >= self._stage.limit:
            self._verdict = Verdict.CLEAN
        return self._verdict
