"""The reasoning of one choice, in one field: special tokens are taken out of it, and every other character stays.

It is not looked through for calls. A span that is unchanged is left alone, so that its event goes out byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass

from troyproxy.leaks.scrub import Scrub


@dataclass(slots=True)
class Thought:
    """The reasoning of one event; *instead* is what goes out for it, None = as it is."""

    index: int
    name: str
    text: str
    decided: bool = False
    instead: str | None = None


class Thoughts:
    """One per choice and field."""

    def __init__(self) -> None:
        self._scrub = Scrub()
        self.found: str | None = None
        """The format of the first special token that was taken out."""
        self._open: list[Thought] = []
        self._given = self._kept = ""
        """What came in and what was let out since the last thought that was decided."""

    def take(self, thought: Thought) -> None:
        """Read the reasoning of the next event."""
        self._open.append(thought)
        self._given += thought.text
        self._kept += self._scrub.feed(thought.text)
        self.found = self.found or self._scrub.found
        if self._given.startswith(self._kept):
            self._decide_unchanged()
        else:
            self._decide_changed()

    def finish(self) -> str:
        """End of the reasoning: all is decided. Return what no open thought is left to carry."""
        self._kept += self._scrub.finish()
        self.found, self._scrub = self.found or self._scrub.found, Scrub()
        if self._given == self._kept:
            self._decide_unchanged()
        left = "" if self._open else self._kept
        self._decide_changed()
        return left

    def _decide_unchanged(self) -> None:
        while self._open and len(self._open[0].text) <= len(self._kept):
            thought = self._open.pop(0)
            thought.decided = True
            size = len(thought.text)
            self._given, self._kept = self._given[size:], self._kept[size:]

    def _decide_changed(self) -> None:
        """Let the last thought carry what is left of all open ones."""
        for thought in self._open:
            thought.decided, thought.instead = True, ""
        if self._open:
            self._open[-1].instead = self._kept
        self._open, self._given, self._kept = [], "", ""
