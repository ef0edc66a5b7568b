"""Where instances tell each other of the attempts that have ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from troyproxy.accounting.finished import Finished


class SharedAttempts(Protocol):
    """No request waits for it. Methods but `close` raise StoreUnavailable within a few seconds, and are cancel-safe."""

    async def open(self) -> None:
        """Connect. What the others tell from the first time on is heard, also across a short outage."""

    async def exchange(self, mine: Sequence[Finished]) -> Sequence[Finished]:
        """Tell the others of *mine*, and return what they have told since the last time; a bounded number."""

    async def close(self) -> None:
        """Disconnect; safe to call twice, and when nothing was opened."""
