"""Waits for something that can be seen, never for time to pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

LOOK_S: Final = 0.02
LIMIT_S: Final = 20.0

Value = TypeVar("Value")


def until(look: Callable[[], Value], *, within_s: float = LIMIT_S) -> Value:
    """Return the first true value of *look*. Raises AssertionError with the last one after *within_s* seconds."""
    deadline = time.monotonic() + within_s
    while not (value := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s:g} s; last seen: {value!r}")
        time.sleep(LOOK_S)
    return value
