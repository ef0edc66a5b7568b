"""The text of one choice that is not yet released, with its canonical copy. It decides nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from troyproxy.leaks.formats import canonical


@dataclass(slots=True)
class Held:
    """*raw* begins at offset *base* of the content; *canon* is made from it one to one.

    What is released may stay in *raw* for a while (`trim`): a long text that goes by the piece is not copied for each.
    """

    base: int = 0
    raw: str = ""
    canon: str = ""
    gone: int = 0
    """The text before this offset is released."""
    _more: list[str] = field(default_factory=list)
    _more_chars: int = 0

    def __len__(self) -> int:
        """Return the number of characters that are not released."""
        return self.end - self.gone

    @property
    def end(self) -> int:
        """The offset behind the last character that was taken."""
        return self.base + len(self.raw) + self._more_chars

    def take(self, text: str) -> None:
        """Append *text*; it is joined to the rest by `gather`, so that holding much by the piece stays cheap."""
        self._more.append(text)
        self._more_chars += len(text)

    def gather(self) -> None:
        """Bring *raw* and *canon* up to date."""
        if self._more:
            text = self._more[0] if len(self._more) == 1 else "".join(self._more)
            self.raw += text
            self.canon += canonical(text)
            self._more, self._more_chars = [], 0

    def passed(self, count: int) -> None:
        """Note that *count* characters went by without being held; nothing is."""
        self.base += count
        self.gone = self.base

    def release(self, until: int) -> str:
        """Let go of the text before offset *until*, of gathered text; return its last character, if it has one."""
        if until <= self.gone:
            return ""
        count = until - self.base
        last = self.raw[count - 1]
        self.gone = until
        if 2 * count >= len(self.raw):
            self.trim()
        return last

    def trim(self) -> None:
        """Drop what is released, so that *raw* begins with what is not."""
        count = self.gone - self.base
        if count:
            self.raw, self.canon, self.base = self.raw[count:], self.canon[count:], self.gone
