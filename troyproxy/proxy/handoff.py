"""The hand-off of `context-relay`: a long conversation goes on at a member that could not hold all of it.

When the history does not fit the next member, one call to ``config.handoff_model`` sums up the old part, and a system
message takes its place. Only for conversations that name their session. At most one such call per request, whatever
comes of it; later members share what it brought. Nothing is kept beyond the request.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

import msgspec

from troyproxy.catalog.combos import Combo
from troyproxy.proxy.accounts import accounts_of
from troyproxy.proxy.call import CHAT_PATH, Call
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.memory import session_of
from troyproxy.proxy.outcome import Target
from troyproxy.proxy.recording import Recorder
from troyproxy.proxy.summariser import Summariser
from troyproxy.resilience.breaker import Admission
from troyproxy.routing import handoff
from troyproxy.routing.eligibility import SkipReason, shortfall
from troyproxy.routing.handoff import Cut
from troyproxy.routing.lookup import find_model
from troyproxy.routing.members import Candidate, candidate_of
from troyproxy.routing.needs import Needs
from troyproxy.wire import summary

SUMMARY_S: Final = 20.0
"""Longest time that the summary may take."""
ADAPTED: Final = "messages=handoff"
"""What ``x-troy-adapted`` says of a member that got the summary."""

_BYTES_PER_TOKEN: Final = 4
_UNKNOWN_WINDOW: Final = 32_768
"""Tokens that a model is sent to sum up whose window nobody knows."""


class Relief:
    """Which members one call could be handed to although its history is too long for them. Asks nobody."""

    def __init__(self, call: Call) -> None:
        self._call = call

    @cached_property
    def summarist(self) -> Candidate | None:
        """The model that would sum up; None: nothing is handed over."""
        combo = self._combo
        if combo is None or self._call.route != CHAT_PATH or session_of(self._call) is None:
            return None
        name = combo.config.get("handoff_model")
        found = find_model(name, self._call.snapshot) if isinstance(name, str) else None
        return candidate_of(*found) if found is not None else None

    def cut(self, candidate: Candidate) -> Cut | None:
        """Return where the history would be cut for *candidate*; None when that does not help, or may not be."""
        return handoff.best(self._cuts, candidate, self.needs)

    def after(self, reason: SkipReason | None, candidate: Candidate) -> SkipReason | None:
        """Return what is left of *reason* to skip *candidate*: a window that is too small is none with a hand-off."""
        relieved = reason is SkipReason.CONTEXT and self.cut(candidate) is not None
        return None if relieved else reason

    def short(self, candidate: Candidate) -> bool:
        """Whether the whole history is too long for *candidate*, and that is its only lack."""
        if self.summarist is None:
            return False
        return shortfall(candidate, self.needs, deny_unknown=False) is SkipReason.CONTEXT

    @property
    def needs(self) -> Needs:
        """What the whole request needs."""
        return self._call.needs or Needs()

    @property
    def _combo(self) -> Combo | None:
        combo = self._call.resolution.combo if self._call.resolution is not None else None
        return combo if combo is not None and handoff.hands_over(combo) else None

    @cached_property
    def _cuts(self) -> tuple[Cut, ...]:
        if self._combo is None or self.summarist is None:
            return ()
        return handoff.cuts(self._call.payload, handoff.turns_of(self._combo))


def expected(call: Call, candidate: Candidate) -> tuple[str, ...]:
    """Return what ``x-troy-adapted`` would say of a hand-off, for an explanation."""
    relief = Relief(call)
    return (ADAPTED,) if relief.short(candidate) and relief.cut(candidate) is not None else ()


def handoff_of(gear: Gear, call: Call, recorder: Recorder) -> Handoff | None:
    """Return the hand-off of a walk; None for the many whose combo has none, or that have no combo."""
    combo = call.resolution.combo if call.resolution is not None else None
    return Handoff(gear, call, recorder) if combo is not None and handoff.hands_over(combo) else None


class Handoff:
    """The hand-off of one walk: made when the first member needs it, then shared."""

    def __init__(self, gear: Gear, call: Call, recorder: Recorder) -> None:
        self._gear, self._call = gear, call
        self._relief = Relief(call)
        self._summariser = Summariser(gear, call, recorder)
        self._asked = False
        self._cut: Cut | None = None
        self._shortened: Call | None = None
        """The call as members get it that cannot hold the whole."""

    def due(self, candidate: Candidate) -> bool:
        """Whether *candidate* must be handed a summary that has not been asked for."""
        return not self._asked and self._relief.short(candidate)

    def lost(self, candidate: Candidate) -> bool:
        """Whether *candidate* must be handed a summary and there is none, or none that makes the request fit it."""
        if not self._asked or not self._relief.short(candidate):
            return False
        return self._cut is None or not self._cut.fits(candidate, self._relief.needs)

    def call_for(self, candidate: Candidate) -> Call:
        """Return the call as *candidate* gets it: the client's own wherever that fits."""
        shortened = self._shortened
        return shortened if shortened is not None and self._relief.short(candidate) else self._call

    def applies(self, candidate: Candidate) -> bool:
        """Whether *candidate* gets the summary."""
        return self.call_for(candidate) is not self._call

    async def make(self, candidate: Candidate, limit_s: Callable[[float], float]) -> None:
        """Ask for the summary that *candidate* needs, once. *limit_s* bounds a time by what the walk has left."""
        self._asked = True
        cut = self._relief.cut(candidate)
        target = self._target(limit_s(SUMMARY_S)) if cut is not None else None
        if cut is None or target is None:
            self._call.ledger.say("hand-off: no account of its model can be asked now")
            return
        old = handoff.old_part(self._call.payload, cut.at)
        text = await self._summariser.ask(target, _question(target.candidate, old))
        self._call.ledger.say(f"hand-off: {len(old)} messages {'summed up' if text else 'stay without a summary'}")
        if text:
            self._cut, self._shortened = cut, self._with(text, cut)

    def _with(self, text: str, cut: Cut) -> Call:
        """Return a copy of the call with the summary in it; the client's other bytes stay."""
        shortened = msgspec.structs.replace(self._call)
        shortened.edit({"messages": handoff.handed_over(self._call.payload, cut.at, text)})
        return shortened

    def _target(self, limit_s: float) -> Target | None:
        """Return the account to ask, or None when circuits and locks leave none. Leases the probe."""
        asked = self._relief.summarist
        provider = asked.provider if asked is not None else None
        if asked is None or provider is None:  # pragma: no cover -- nothing is due without a model
            return None
        health, now = self._gear.health, self._gear.clock.now()
        admission = health.admission(provider.id, asked.model)
        account = self._gear.desk.pick(
            provider,
            accounts_of(provider, asked.model, None, now),
            usable=lambda each: health.cooldown(provider.id, each.id, asked.model) is None,
        )
        if admission is Admission.DENY or account is None:
            return None
        probe = admission is Admission.PROBE
        seed = self._call.seed + len(self._call.ledger.attempts)
        target = Target(asked, provider, account, now, probe=probe, limit_s=limit_s, seed=seed)
        if probe:
            health.lease_probe(target)
        return target


def _question(model: Candidate, old: list[object]) -> bytes:
    """Return the request to *model*; the oldest of *old* is left out when not all of it fits nine tenths of it."""
    limits = model.facts.limits
    most = min(handoff.SUMMARY_TOKENS, limits.output or handoff.SUMMARY_TOKENS)
    room = (limits.context or _UNKNOWN_WINDOW) * 9 // 10 - most
    text = summary.transcript_of(old, max(0, room * _BYTES_PER_TOKEN - summary.OVERHEAD))
    return summary.question(model.model, text, max_tokens=most, as_json=model.facts.capabilities.json is True)
