"""A queue with a bound that drops its oldest entries and counts them. No waiting, no database."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from troyproxy.accounting.records import UsageRow

Columns = dict[str, object]
"""One row, ready to be inserted."""
Item = UsageRow | Columns
"""What waits: the usage row of a request, or a state event."""


class BoundedQueue:
    """What waits for the writer. Entries that were taken count as waiting until they are settled."""

    __slots__ = ("_bound", "_items", "_taken", "dropped")

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._items: deque[Item] = deque()
        self._taken = 0
        self.dropped = 0
        """Entries lost, at the bound or otherwise."""

    def __len__(self) -> int:
        return len(self._items) + self._taken

    def append(self, item: Item) -> bool:
        """Add *item*; at the bound the oldest entry goes. Return whether it is the first that is not taken."""
        items = self._items
        first = not items
        if len(items) >= self._bound:
            items.popleft()
            self.dropped += 1
        items.append(item)
        return first

    def take(self, limit: int) -> list[Item]:
        """Take the oldest entries, at most *limit*; `settle` says what became of them."""
        batch = [self._items.popleft() for _ in range(min(limit, len(self._items)))]
        self._taken = len(batch)
        return batch

    def settle(self, unwritten: Sequence[Item] = ()) -> None:
        """End what `take` began: *unwritten* entries go back to the front as far as the bound allows."""
        self._taken = 0
        room = max(0, self._bound - len(self._items))
        kept = unwritten[len(unwritten) - room :] if room < len(unwritten) else unwritten
        self.dropped += len(unwritten) - len(kept)
        self._items.extendleft(reversed(kept))

    def abandon(self) -> int:
        """Drop and count everything, and return how many entries that were."""
        lost = len(self._items)
        self._items.clear()
        self.dropped += lost
        return lost
