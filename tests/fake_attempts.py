"""The fake of `ports.SharedAttempts`; the others are in `fakes` and `fake_store`."""

from __future__ import annotations

from collections.abc import Sequence

from troyproxy.accounting.finished import Finished
from troyproxy.errors import StoreUnavailable


class FakeSharedAttempts:
    """One instance's way to a list in memory; *beside* is another's to the same. *down*: it cannot be reached."""

    def __init__(self, beside: FakeSharedAttempts | None = None) -> None:
        self.told: list[tuple[FakeSharedAttempts, Finished]] = [] if beside is None else beside.told
        self.down = False
        self.opened = self.closed = 0
        self._at = 0

    def _check(self) -> None:
        if self.down:
            raise StoreUnavailable("down")

    async def open(self) -> None:
        self._check()
        self.opened += 1

    async def exchange(self, mine: Sequence[Finished]) -> Sequence[Finished]:
        self._check()
        new, self._at = self.told[self._at :], len(self.told) + len(mine)
        self.told.extend((self, finished) for finished in mine)
        return [finished for who, finished in new if who is not self]

    async def close(self) -> None:
        self.closed += 1
