"""One response under watch: a detector per choice, and the answer to "must this be held back?".

Gate and suppressor both read it, so they cannot disagree. It holds no frames and changes nothing.

    undecided choice with a marker begun     everything is held (order is kept)
    undecided choice with blanks only        held until something else is said; blanks are harmless
    decided, or nothing said yet             nothing is held

Structured tool calls beside undecided text: only markers = residue of the server's parser, a leak; else clean.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from troyproxy.leaks.detector import Detector, Verdict
from troyproxy.leaks.formats import residue
from troyproxy.leaks.pieces import Piece, is_error, pieces

# A header of 512 characters may arrive one character per frame of some 250 bytes; beyond this the text goes out.
MAX_HELD_FRAMES: Final = 1024
MAX_HELD_BYTES: Final = 256 * 1024
MAX_CHOICES: Final = 128  # OpenAI's bound on `n`; an upstream that invents more is not watched there


class LeakAction(StrEnum):
    """What was done about a leak; the label `action` of `tool_leaks_total`."""

    SUPPRESSED = "suppressed"


@dataclass(frozen=True, slots=True)
class Leak:
    """One leak, for operators: choice index, format id, and what was done."""

    choice: int
    format: str
    action: LeakAction = LeakAction.SUPPRESSED


@dataclass(slots=True)
class _Choice:
    detector: Detector
    structured: bool = False
    spoke: bool = False
    verdict: Verdict = Verdict.PENDING


@dataclass(slots=True)
class Watch:
    """The state of one response; *names* are the declared tools."""

    names: frozenset[str]
    leaks: list[Leak] = field(default_factory=list)
    holding: bool = False
    decided: bool = False  # something was said, or found to be a leak
    _choices: dict[int, _Choice] = field(default_factory=dict)
    _frames: int = 0
    _bytes: int = 0

    @property
    def leaked(self) -> frozenset[int]:
        """The indexes of the choices whose content is dropped."""
        return frozenset(leak.choice for leak in self.leaks)

    def settled(self, choices: int) -> bool:
        """Whether *choices* choices were seen and all of them turned out clean."""
        seen = self._choices.values()
        return len(seen) >= choices and all(state.verdict is Verdict.CLEAN for state in seen)

    def see(self, event: object, size: int = 0, part: str = "delta") -> bool:
        """Take one decoded event of *size* bytes; return whether it (and what is held) must be held back."""
        said = False
        for piece in pieces(event, part):
            size = max(size, len(piece.text))
            said |= self._piece(piece)
        if is_error(event):
            return self.end()
        self.decided |= said
        self.holding = self._undecided(said_otherwise=said) and self._within_bounds(size)
        if not self.holding:
            self._frames = self._bytes = 0
        return self.holding

    def end(self) -> bool:
        """End of the response: what is undecided is settled. Returns False: nothing is held any more."""
        for index, state in self._choices.items():
            self._settle(index, state)
        self.decided, self.holding = True, False
        return False

    def _piece(self, piece: Piece) -> bool:
        """Take one choice of an event; return whether it says something that needs no verdict."""
        state = self._choices.get(piece.index)
        if state is None:
            if len(self._choices) >= MAX_CHOICES:
                return True
            state = self._choices[piece.index] = _Choice(Detector(self.names))
        if piece.text and state.verdict is Verdict.PENDING:
            state.spoke = True
            self._decide(piece.index, state, state.detector.feed(piece.text), state.detector.format)
        state.structured |= piece.structured
        if piece.finished or (piece.structured and state.detector.suspicious):
            self._settle(piece.index, state)
        return piece.other or piece.finished or (bool(piece.text) and state.verdict is Verdict.CLEAN)

    def _settle(self, index: int, state: _Choice) -> None:
        if state.verdict is not Verdict.PENDING:
            return
        left = residue(state.detector.head) if state.structured else None
        self._decide(index, state, Verdict.LEAK if left else state.detector.finish(), left)

    def _decide(self, index: int, state: _Choice, verdict: Verdict, name: str | None) -> None:
        state.verdict = verdict
        self.decided |= verdict is not Verdict.PENDING
        if verdict is Verdict.LEAK and name:
            self.leaks.append(Leak(index, name))

    def _undecided(self, *, said_otherwise: bool) -> bool:
        open_ones = [state for state in self._choices.values() if state.spoke and state.verdict is Verdict.PENDING]
        return any(state.detector.suspicious for state in open_ones) or (bool(open_ones) and not said_otherwise)

    def _within_bounds(self, size: int) -> bool:
        self._frames += 1
        self._bytes += size
        if self._frames <= MAX_HELD_FRAMES and self._bytes <= MAX_HELD_BYTES:
            return True
        return self.end()
