"""What every process of every instance must do once: an operator's clearing, told through the database.

An order is a row of ``control_events`` and is looked for whenever the control row has moved. A process begins with
those of the last seconds before its start: what is older is in the journal that it replays, which is written a moment
later. A clearing carries its moment, so one that is heard late or a second time lifts nothing that was locked, and
forgets nothing that was counted, after it; and the health state carries out each once, be it its own, read back, or
one of which the other instances have told already.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from troyproxy.ports import Clock, Control, ControlEvent
from troyproxy.proxy.health import HealthKeeper
from troyproxy.resilience.events import Cleared, from_record, to_record
from troyproxy.resilience.shared import takes

CLEAR: Final = "clear"
RELOAD: Final = "reload"
"""Nothing to do beyond what the moved control row says already; the row tells that somebody asked for it."""
Obey = Callable[[Mapping[str, object]], None]
"""Carries an order out, given its payload; must not raise and must not wait."""
RECENT_S: Final = 10.0
"""How long the journal row of an order may be on its way, in seconds, with the differences between clocks."""
LOGGER: Final = logging.getLogger("troyproxy.config")


class Orders:
    """Gives orders, and carries out those of others. Every method that waits raises StoreUnavailable."""

    def __init__(self, control: Control, health: HealthKeeper, clock: Clock) -> None:
        self._control, self._health, self._clock = control, health, clock
        self._turn = asyncio.Lock()
        self._others: dict[str, Obey] = {}
        self._began_at: float | None = None
        self._seen: int | None = None
        self._revision: int | None = None

    async def clear(self, cleared: Cleared) -> int:
        """Tell every process what was cleared here, and return the new revision."""
        return await self._control.publish(CLEAR, to_record(cleared))

    async def reload(self) -> int:
        """Tell every process to load the configuration again, and return the new revision."""
        return await self._control.publish(RELOAD, {})

    async def give(self, kind: str, payload: Mapping[str, object]) -> int:
        """Tell every process an order of another *kind*, and return the new revision."""
        return await self._control.publish(kind, payload)

    def obey(self, kind: str, how: Obey) -> None:
        """Carry out orders of another *kind* by *how*; it hears this process's own orders, too."""
        self._others[kind] = how

    async def begin(self) -> None:
        """Leave alone what was ordered well before the first call of this; to be called before the journal is read."""
        async with self._turn:
            if self._began_at is None:
                self._began_at = self._clock.now()
            if self._seen is None:
                self._seen = await self._control.newest(self._began_at - RECENT_S)

    async def catch_up(self, revision: int) -> None:
        """Carry out what is new, each order once. *revision*: of the control row; unmoved, there is nothing new."""
        await self.begin()
        async with self._turn:
            if revision == self._revision:
                return
            while events := await self._control.since(self._seen or 0):
                for event in events:
                    self._seen = event.id
                    self._obey(event)
            self._revision = revision

    def _obey(self, event: ControlEvent) -> None:
        if event.kind in self._others:
            self._others[event.kind](event.payload)
        if event.kind != CLEAR:
            return
        try:
            cleared = from_record(event.payload)
        except ValueError as exc:
            LOGGER.warning("an order of another version is not understood: %s", exc)
            return
        if isinstance(cleared, Cleared) and takes(self._health.state, cleared, self._clock.now()):
            self._health.hear(cleared)
