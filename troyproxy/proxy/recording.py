"""Writes attempts into the ledger and tells the observer: one record per attempt, whatever became of it; and skips."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from troyproxy.accounting.records import AttemptRecord
from troyproxy.accounting.usage import Usage
from troyproxy.proxy.call import Call
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.outcome import Broken, Target
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.classify import Failure, Verdict, classify
from troyproxy.routing.eligibility import Skip, SkipReason
from troyproxy.routing.members import Candidate

OK: Final = "ok"
CANCELLED: Final = str(ErrorClass.CANCELLED)


class Recorder:
    """The ledger's pen for one request."""

    __slots__ = ("_began", "_call", "_gear")

    def __init__(self, gear: Gear, call: Call) -> None:
        self._gear, self._call = gear, call
        self._began = 0.0

    @property
    def policy(self) -> WalkPolicy:
        """What the walk goes by."""
        return self._gear.policy

    @contextmanager
    def attempt(self, target: Target, *, handoff: bool = False) -> Iterator[None]:
        """Record what happens within as an attempt."""
        self.began(target, handoff=handoff)
        whole = False
        try:
            yield
            whole = True
        finally:
            self.ended(target, whole=whole)

    def began(self, target: Target, *, handoff: bool = False) -> None:
        """Open the record of an attempt; it says `cancelled` until something better is known. `ended` follows."""
        self._began = self._gear.clock.monotonic()
        ledger, provider, account = self._call.ledger, target.provider.id, target.account.name
        ledger.attempts.append(
            AttemptRecord(
                provider, target.candidate.model, account, CANCELLED, None, target.started_at, 0.0, handoff=handoff
            )
        )
        ledger.running = True
        if ledger.told:
            what = "hand-off: ask" if handoff else "try"
            ledger.say(f"{what} {target.candidate.spec} #{account}{' (probe)' if target.probe else ''}")
        self._gear.measuring.began(target)

    def ended(self, target: Target, *, whole: bool) -> None:
        """Close the record and tell of it, however the attempt went. Not *whole*: it was given up."""
        call, gear = self._call, self._gear
        call.ledger.running = False
        record = call.ledger.attempts[-1]
        record.duration_ms = (gear.clock.monotonic() - self._began) * 1000
        gear.measuring.ended(target, record, whole=whole, remember=() if record.handoff else call.remember)
        if call.tool_turn and not record.handoff:
            self._note_turn(target, record)
        gear.observer.attempt_finished(record)

    def passed_over(self, candidate: Candidate, reason: SkipReason) -> None:
        """Note that a member is not tried; once it was, a circuit that opened meanwhile is no reason of its own."""
        provider, ledger = candidate.provider.id if candidate.provider is not None else "", self._call.ledger
        mine = (a for a in ledger.attempts if a.provider == provider and a.model == candidate.model)
        if all(attempt.handoff for attempt in mine) and ledger.skip(Skip.of(candidate, reason)):
            self._gear.observer.skipped(provider, reason)

    def verdict(self, failure: Failure) -> Verdict:
        """Return what a failure means."""
        policy = self._gear.policy
        return classify(
            failure,
            now=self._gear.clock.now(),
            cap_s=policy.max_cooldown_s,
            retry_timeouts=policy.retry_timeouts,
        )

    def served(self, status: int) -> None:
        """The commit point: the attempt is good from here on."""
        record = self._call.ledger.attempts[-1]
        record.outcome, record.status = OK, status

    def broken(self, broken: Broken) -> Verdict:
        """Write down a failure before the commit point and return its verdict."""
        verdict = self.verdict(broken.failure)
        self._write(verdict, broken.failure, broken.usage)
        return verdict

    def cut(self, failure: Failure, usage: Usage | None) -> Verdict:
        """Write down a failure after the commit point and return its verdict."""
        verdict = self.verdict(failure)
        self._write(verdict, failure, usage)
        return verdict

    def usage(self, usage: Usage | None) -> None:
        """Attach what the upstream reported to the current attempt, and to the answer if that is where it is from."""
        ledger = self._call.ledger
        ledger.attempts[-1].usage = usage
        if ledger.served:
            ledger.usage = usage

    def _note_turn(self, target: Target, record: AttemptRecord) -> None:
        """Count a finished tool turn for the leak rate; one that failed otherwise says nothing about its model."""
        leaked = bool(record.leak) or record.outcome == ErrorClass.LEAK
        if leaked or record.outcome == OK:
            self._gear.leak_rates.note(target.provider.id, target.candidate.model, leaked=leaked)

    def _write(self, verdict: Verdict, failure: Failure, usage: Usage | None) -> None:
        ledger = self._call.ledger
        record = ledger.attempts[-1]
        record.outcome, record.status, record.usage = str(verdict.error_class), failure.status, usage
        record.reason, record.hint_s, record.cooldown_s = verdict.reason, verdict.hint_s, verdict.cooldown_s
        if ledger.told:
            hint = f", wait {verdict.hint_s:g} s" if verdict.hint_s is not None else ""
            what = f"{verdict.error_class} after {self._lasted_ms():.0f} ms"
            ledger.say(f"  {what}: {verdict.reason}{hint} -> {verdict.step}")

    def _lasted_ms(self) -> float:
        return (self._gear.clock.monotonic() - self._began) * 1000
