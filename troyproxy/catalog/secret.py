"""A string that must not be shown: not in a log, a repr, an error or an API answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Secret:
    """A credential. `reveal` is the one way to its text, so that a search finds every use."""

    _text: str

    def reveal(self) -> str:
        """Return the text, for the one place that sends it."""
        return self._text

    def __repr__(self) -> str:
        return "Secret('***')"

    __str__ = __repr__
