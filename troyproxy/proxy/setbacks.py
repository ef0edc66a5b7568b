"""What failed so far in one walk, and how the walk ends when nobody served: with a call that can still be rescued, with
the last failure, or with why nobody was asked.
"""

from __future__ import annotations

from troyproxy.ports import Failover
from troyproxy.proxy.call import Call
from troyproxy.proxy.client import Client
from troyproxy.proxy.ending import Ending
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.outcome import Broken, Target
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.rescuing import Rescuer
from troyproxy.resilience.classify import Verdict


class Setbacks:
    """Made when the first attempt failed, or when there is none to make."""

    def __init__(self, gear: Gear, planner: Planner, call: Call, client: Client) -> None:
        self._gear, self._call = gear, call
        self._ending = Ending(gear, planner, call, client)
        self._rescuer = Rescuer(gear, call, client)
        self._last: tuple[Target, Broken] | None = None
        self._verdicts: list[Verdict] = []

    def add(self, target: Target, broken: Broken, verdict: Verdict) -> None:
        """Keep the latest failure: it is the answer if nobody is left."""
        self._last = target, broken
        self._rescuer.failed(target, broken, verdict)
        self._verdicts.append(verdict)

    def go_on(self, target: Target) -> None:
        """Tell the observer when *target* is another provider than the one that has just failed."""
        before = self._last[0].provider.id if self._last is not None else target.provider.id
        if before != target.provider.id:
            error_class = str(self._verdicts[-1].error_class)
            self._gear.observer.failed_over(Failover(self._call.combo_name, before, target.provider.id, error_class))

    async def stop(self) -> None:
        """Answer with the latest failure, which another target would only repeat. Raises ClientGone.

        A call that can be rescued is better: whoever made it had nothing against the request.
        """
        if self._last is not None and not await self._rescuer.serve():
            target, broken = self._last
            await self._ending.stopped(broken, target, self._verdicts[-1])

    async def end(self) -> None:
        """Answer when nobody is left. Raises ClientGone."""
        if not await self._rescuer.serve():
            target, broken = self._last or (None, None)
            await self._ending.exhausted(broken, target, self._verdicts)
