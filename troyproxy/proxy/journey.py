"""The state of one walk: which pairs were tried, which were left for the second pass, what failed last."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

from troyproxy.catalog.providers import Account, Provider
from troyproxy.ports import Failover
from troyproxy.proxy.accounts import accounts_of
from troyproxy.proxy.attempt import Attempt
from troyproxy.proxy.bodies import MemberBody, learned_name, member_body
from troyproxy.proxy.call import Call
from troyproxy.proxy.client import Client, ClientGone
from troyproxy.proxy.ending import Ending
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.outcome import Broken, Served, Target
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.policy import attempt_limit_s
from troyproxy.proxy.recording import Recorder
from troyproxy.resilience.breaker import Admission
from troyproxy.resilience.classes import ErrorClass, NextStep
from troyproxy.resilience.classify import Verdict
from troyproxy.resilience.faults import Fault
from troyproxy.routing.eligibility import Skip, SkipReason
from troyproxy.routing.members import Candidate

FAULTS: Final = frozenset(Fault) - {Fault.EMPTY, Fault.NOT_A_COMPLETION, Fault.LEAK, Fault.SATURATED, Fault.CANCELLED}
"""Faults that speak of the provider's transport, whichever model was asked."""

Pair = tuple[str, str]


class Journey:
    """One request's way along its plan."""

    def __init__(self, gear: Gear, planner: Planner, call: Call, client: Client) -> None:
        self._gear, self._call, self._client = gear, call, client
        self._recorder = Recorder(gear, call)
        self._ending = Ending(gear, planner, call, client)
        self._candidates = call.plan.candidates if call.plan is not None else ()
        self._deadline = asyncio.get_running_loop().time() + gear.policy.request_timeout_s
        self._tried: set[Pair] = set()
        self._left_out: dict[Pair, None] = {}
        self._faults: Counter[str] = Counter()
        self._window: int | None = None
        """Set once a member's context was too small: only larger known windows may follow."""
        self._last: Broken | None = None
        self._last_target: Target | None = None
        self._verdicts: list[Verdict] = []
        self._verdict: Verdict
        """Of the latest failed attempt."""

    async def run(self) -> None:
        """Walk to an answer. Raises ClientGone; a cancellation passes."""
        for second in (False, True):
            for at, candidate in enumerate(self._candidates):
                if candidate.provider is None or self._spent:
                    continue
                later = len(self._candidates) - at - 1
                if await self._member(candidate, candidate.provider, later, second=second):
                    return
        await self._ending.exhausted(self._last, self._last_target, self._verdicts)

    @property
    def _spent(self) -> bool:
        over = asyncio.get_running_loop().time() >= self._deadline
        return over or len(self._call.ledger.attempts) >= self._gear.policy.max_attempts

    async def _member(self, candidate: Candidate, provider: Provider, later: int, *, second: bool) -> bool:
        """Try the accounts of one member; True when the request has been answered."""
        barred = self._barred(candidate, provider)
        if barred is not None:
            self._skip(candidate, barred)
            return False
        room = max(1, self._gear.policy.max_attempts - len(self._call.ledger.attempts) - later)
        body: MemberBody | None = None
        for _ in range(room):
            account = self._account(candidate, provider, second=second)
            if account is None or self._spent:
                return False
            admission = self._gear.health.admission(provider.id, candidate.model)
            if admission is Admission.DENY:
                self._skip(candidate, SkipReason.CIRCUIT)
                return False
            body = body or member_body(self._call, candidate, self._gear.learned)
            step = await self._try(self._target(candidate, provider, account, later, admission), body)
            if step is not NextStep.NEXT_ACCOUNT:
                return step is NextStep.STOP
        return False

    def _barred(self, candidate: Candidate, provider: Provider) -> SkipReason | None:
        if self._faults[provider.id] >= self._gear.policy.provider_faults:
            return SkipReason.PROVIDER_DOWN
        if self._window is not None and (candidate.facts.limits.context or 0) <= self._window:
            return SkipReason.CONTEXT
        return None

    def _skip(self, candidate: Candidate, reason: SkipReason) -> None:
        provider = candidate.provider.id if candidate.provider is not None else ""
        if any(a.provider == provider and a.model == candidate.model for a in self._call.ledger.attempts):
            return  # it was tried; that its circuit opened meanwhile is no reason of its own
        self._call.ledger.skip(Skip(candidate.spec, reason, provider))
        self._gear.observer.skipped(provider, reason)

    def _account(self, candidate: Candidate, provider: Provider, *, second: bool) -> Account | None:
        """Pick the next account. The first pass notes what it leaves out; the second takes only what was noted."""
        now = self._gear.clock.now()

        def usable(account: Account) -> bool:
            pair = (candidate.spec, account.id)
            if pair in self._tried or (second and pair not in self._left_out):
                return False
            lock = self._gear.health.cooldown(provider.id, account.id, candidate.model)
            if lock is not None and lock.soft and not second:
                self._left_out[pair] = None
            return lock is None or (lock.soft and second)

        call = self._call
        combo = call.resolution.combo if call.resolution is not None else None
        return self._gear.desk.pick(
            provider,
            accounts_of(provider, candidate.model, candidate.account, now),
            usable=usable,
            round_robin=combo is not None and combo.strategy == "round-robin",
        )

    def _target(
        self, candidate: Candidate, provider: Provider, account: Account, later: int, admission: Admission
    ) -> Target:
        policy, stream = self._gear.policy, self._call.stream
        own_s = policy.first_byte_of(provider, stream=stream)
        own_s += policy.first_output_of(provider) if stream else 0.0
        left_s = self._deadline - asyncio.get_running_loop().time()
        target = Target(
            candidate=candidate,
            provider=provider,
            account=account,
            started_at=self._gear.clock.now(),
            probe=admission is Admission.PROBE,
            limit_s=min(attempt_limit_s(own_s, left_s, later), max(left_s, 0.001)),
            can_reject=later > 0,
        )
        if target.probe:
            self._gear.health.lease_probe(target)
        return target

    async def _try(self, target: Target, body: MemberBody) -> NextStep:
        """Make one attempt, and the one retry that a learned parameter earns; return where the walk goes."""
        self._tried.add((target.candidate.spec, target.account.id))
        self._note_failover(target)
        outcome = await self._attempt(target, body)
        if isinstance(outcome, Broken) and (better := self._learn(target, body, outcome)) is not None:
            outcome = await self._attempt(target, better)
        if isinstance(outcome, Served):
            return NextStep.STOP
        return await self._failed(target, outcome)

    async def _attempt(self, target: Target, body: MemberBody) -> Broken | Served:
        """Run one attempt. Whatever it was, its record is written and a probe's lease ends with it."""
        self._call.ledger.note_adapted(body.changes.adapted)
        try:
            with self._recorder.attempt(target):
                attempt = Attempt(self._gear, self._call, target, self._client, self._recorder)
                outcome = await attempt.run(body.content)
                if isinstance(outcome, Broken):
                    self._verdict = self._recorder.broken(outcome)
        except (asyncio.CancelledError, ClientGone):
            self._gear.health.return_probe(target)
            raise
        return outcome

    def _learn(self, target: Target, body: MemberBody, broken: Broken) -> MemberBody | None:
        """Remember a parameter that this 400 names, and return the body without it; None when it names none."""
        name, candidate = self._verdict.parameter, target.candidate
        if name is None or broken.failure.status != 400 or self._spent or not body.may_learn(name, self._call):
            return None
        self._gear.learned.learn(target.provider.id, candidate.model, learned_name(name))
        self._gear.observer.adapted(target.provider.id, learned_name(name), "learned")
        self._call.ledger.say(f"learned: {candidate.spec} does not take {learned_name(name)}; once more without it")
        return member_body(self._call, candidate, self._gear.learned)

    async def _failed(self, target: Target, broken: Broken) -> NextStep:
        verdict = self._verdict
        self._gear.health.failed(target, verdict)
        self._last, self._last_target = broken, target
        self._verdicts.append(verdict)
        if broken.failure.fault in FAULTS:
            self._faults[target.provider.id] += 1
        if verdict.error_class is ErrorClass.CONTEXT:
            self._window = max(self._window or 0, target.candidate.facts.limits.context or 0)
        if verdict.step is not NextStep.STOP:
            return verdict.step
        await self._ending.stopped(broken, target, verdict)
        return NextStep.STOP

    def _note_failover(self, target: Target) -> None:
        before = self._last_target
        if before is None or before.provider.id == target.provider.id:
            return
        combo = self._call.resolution.combo if self._call.resolution is not None else None
        name = combo.name if combo is not None else None
        error_class = str(self._verdicts[-1].error_class)
        self._gear.observer.failed_over(Failover(name, before.provider.id, target.provider.id, error_class))
