"""The text of one choice that is not yet released, with its canonical copy. It decides nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from troyproxy.leaks.formats import canonical


@dataclass(slots=True)
class Held:
    """*raw* begins at offset *base* of the content; *canon* is made from it one to one."""

    base: int = 0
    raw: str = ""
    canon: str = ""
    _more: list[str] = field(default_factory=list)
    _more_chars: int = 0

    def __len__(self) -> int:
        return len(self.raw) + self._more_chars

    @property
    def end(self) -> int:
        """The offset behind the last character that was taken."""
        return self.base + len(self)

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

    def release(self, until: int) -> str:
        """Let go of the text before offset *until*, of gathered text; return its last character, if it has one."""
        count = until - self.base
        if count <= 0:
            return ""
        last = self.raw[count - 1]
        self.raw, self.canon, self.base = self.raw[count:], self.canon[count:], until
        return last
