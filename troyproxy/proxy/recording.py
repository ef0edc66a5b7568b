"""Writes attempts into the ledger and tells the observer: one record per attempt, whatever became of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from troyproxy.accounting.records import AttemptRecord
from troyproxy.accounting.usage import Usage
from troyproxy.proxy.call import Call
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.outcome import Broken, Target
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.classify import Failure, Verdict, classify

OK: Final = "ok"


class Recorder:
    """The ledger's pen for one request."""

    def __init__(self, gear: Gear, call: Call) -> None:
        self._gear, self._call = gear, call
        self._began = 0.0

    @property
    def policy(self) -> WalkPolicy:
        """What the walk goes by."""
        return self._gear.policy

    @contextmanager
    def attempt(self, target: Target, *, handoff: bool = False) -> Iterator[None]:
        """Open the record of an attempt; it says `cancelled` until something better is known."""
        self._began = self._gear.clock.monotonic()
        ledger = self._call.ledger
        ledger.attempts.append(
            AttemptRecord(
                provider=target.provider.id,
                model=target.candidate.model,
                account=target.account.name,
                outcome=str(ErrorClass.CANCELLED),
                status=None,
                started_at=target.started_at,
                duration_ms=0.0,
                handoff=handoff,
            )
        )
        ledger.running = True
        what = "hand-off: ask" if handoff else "try"
        ledger.say(f"{what} {target.candidate.spec} #{target.account.name}{' (probe)' if target.probe else ''}")
        measuring, whole = self._gear.measuring, False
        measuring.began(target)
        try:
            yield
            whole = True
        finally:
            ledger.running = False
            self._change(duration_ms=self._lasted_ms())
            remember = () if handoff else self._call.remember
            measuring.ended(target, ledger.attempts[-1], whole=whole, remember=remember)
            if self._call.tool_turn and not handoff:
                self._note_turn(target, ledger.attempts[-1])
            self._gear.observer.attempt_finished(ledger.attempts[-1])

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
        self._change(outcome=OK, status=status)

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
        """Attach what the upstream reported to the current attempt."""
        self._change(usage=usage)

    def _note_turn(self, target: Target, record: AttemptRecord) -> None:
        """Count a finished tool turn for the leak rate; one that failed otherwise says nothing about its model."""
        leaked = bool(record.leak) or record.outcome == ErrorClass.LEAK
        if leaked or record.outcome == OK:
            self._gear.leak_rates.note(target.provider.id, target.candidate.model, leaked=leaked)

    def _write(self, verdict: Verdict, failure: Failure, usage: Usage | None) -> None:
        self._change(
            outcome=str(verdict.error_class),
            status=failure.status,
            reason=verdict.reason,
            hint_s=verdict.hint_s,
            cooldown_s=verdict.cooldown_s,
            usage=usage,
        )
        hint = f", wait {verdict.hint_s:g} s" if verdict.hint_s is not None else ""
        what = f"{verdict.error_class} after {self._lasted_ms():.0f} ms"
        self._call.ledger.say(f"  {what}: {verdict.reason}{hint} -> {verdict.step}")

    def _lasted_ms(self) -> float:
        return (self._gear.clock.monotonic() - self._began) * 1000

    def _change(self, **changes: object) -> None:
        attempts = self._call.ledger.attempts
        attempts[-1] = replace(attempts[-1], **changes)  # type: ignore[arg-type]  # fields by name
