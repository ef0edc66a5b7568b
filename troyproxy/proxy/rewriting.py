"""Changes to what is stored that read it first: whoever named no version gets the last word, not a refusal.

Within a process writes take turns. Another process may write between our reading and our writing; the repository sees
that, and the change is made anew on what is there by then. A caller who named a version hears of it instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from troyproxy.errors import Conflict, PreconditionFailed

_T = TypeVar("_T")

TRIES: Final = 20
"""Others would have to come between so often: each process writes once at a time."""


async def rewritten(change: Callable[[], Awaitable[_T]], expected_version: int | None) -> _T:
    """Return what *change* does; it reads, and names to the repository the version that it has read.

    Raises PreconditionFailed when *expected_version* is not stored, Conflict when others never let us, and as *change*.
    """
    for _ in range(TRIES):
        try:
            return await change()
        except PreconditionFailed:
            if expected_version is not None:
                raise
    raise Conflict("others keep changing it; try again")
