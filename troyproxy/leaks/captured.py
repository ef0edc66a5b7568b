"""The text of a call that leaked, kept for repair. It reads nothing."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Captured:
    """At most *room* more characters are kept."""

    room: int
    overflowed: bool = False
    """There was more; the rest of the call is gone."""
    _pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What was kept."""
        return "".join(self._pieces)

    def take(self, text: str) -> None:
        """Append *text*, as far as there is room."""
        self.overflowed = self.overflowed or len(text) > self.room
        kept = text[: self.room]
        self._pieces.append(kept)
        self.room -= len(kept)
