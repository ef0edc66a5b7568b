"""How much work one answer may make: a text of nothing but openers must not keep every other stream waiting.

Work is counted, not timed, so that it is the same however the text was cut:

    1 step     a marker or a fence that is looked at in prose, a bracket of a call's head (a string there is two),
               a parameter, word, bracket or value of a call, 64 characters of a call that are read (again)
    8 steps    a call that is read
    16 steps   an opener behind which a call is looked for
"""

from __future__ import annotations

from typing import Final

MOST_STEPS: Final = 16 * 1024
"""Of one choice; behind what takes more it is text."""
REPAIR_STEPS: Final = 64 * 1024
"""Of one text that was captured to be repaired; one that takes more is not."""
SUSPECT: Final = 16
CALL: Final = 8
_CHARS: Final = 64


class Effort:
    """What is left of it."""

    __slots__ = ("left",)

    def __init__(self, steps: int = MOST_STEPS) -> None:
        self.left = steps

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self.left <= 0

    def spend(self, steps: int) -> None:
        """Count *steps*."""
        self.left -= steps

    def read(self, characters: int) -> None:
        """Count *characters* that are read in one go."""
        self.left -= characters // _CHARS
