"""The three answers of every part of the detector."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """*Need more* is an answer of its own: a *no* to an unfinished marker is how leaks slip through."""

    PENDING = "pending"
    CLEAN = "clean"
    LEAK = "leak"
