"""The state of one walk: where it is, what failed last, and where it goes from there."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from troyproxy.auto.exclusion import probe_limit_s
from troyproxy.catalog.providers import Account, Provider
from troyproxy.ports import Failover
from troyproxy.proxy.attempt import Attempt
from troyproxy.proxy.bodies import MemberBody, adaptations, learned_name, member_body
from troyproxy.proxy.call import Call
from troyproxy.proxy.client import Client
from troyproxy.proxy.ending import Ending
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.handoff import ADAPTED, Handoff
from troyproxy.proxy.outcome import Broken, Served, Target
from troyproxy.proxy.pairs import Pairs
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.policy import attempt_limit_s
from troyproxy.proxy.recording import Recorder
from troyproxy.proxy.rescuing import Rescuer
from troyproxy.proxy.turns import turns_told
from troyproxy.resilience.breaker import Admission
from troyproxy.resilience.classes import NextStep
from troyproxy.resilience.classify import Verdict
from troyproxy.routing.changes import Changes
from troyproxy.routing.eligibility import Skip, SkipReason
from troyproxy.routing.members import Candidate

LEARNING = frozenset({400, 422})
"""Statuses by which an upstream names a parameter that it does not take."""
SHORTEST_S = 0.001


class Journey:
    """One request's way along its plan."""

    def __init__(self, gear: Gear, planner: Planner, call: Call, client: Client) -> None:
        self._gear, self._call, self._client = gear, call, client
        self._recorder = Recorder(gear, call)
        self._ending = Ending(gear, planner, call, client)
        self._candidates = call.plan.candidates if call.plan is not None else ()
        self._pairs = Pairs(gear, self._candidates)
        self._handoff = Handoff(gear, call, self._recorder)
        self._rescuer = Rescuer(gear, call, client)
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + gear.policy.request_timeout_s
        self._body: MemberBody | None = None
        """Of the member that is being tried; made once, and anew when a parameter was learned."""
        self._last: Broken | None = None
        self._last_target: Target | None = None
        self._verdicts: list[Verdict] = []
        self._verdict: Verdict
        """Of the latest failed attempt."""

    async def run(self) -> None:
        """Walk to an answer. Raises ClientGone; a cancellation passes."""
        self._gear.retries.count_request()
        for second in (False, True):
            for at, candidate in enumerate(self._candidates):
                if candidate.provider is None or self._spent():
                    continue
                if await self._member(at, candidate, candidate.provider, second=second):
                    return
        if not await self._rescuer.serve():
            await self._ending.exhausted(self._last, self._last_target, self._verdicts)

    @property
    def _attempts(self) -> int:
        return len(self._call.ledger.attempts)

    @property
    def _tries(self) -> int:
        """Attempts at an answer: the summary of a hand-off repeats nothing."""
        return sum(not attempt.handoff for attempt in self._call.ledger.attempts)

    def _spent(self) -> bool:
        """Whether this request may make no further attempt: out of time, or of attempts."""
        return self._loop.time() >= self._deadline or self._attempts >= self._gear.policy.max_attempts

    def _overdrawn(self) -> bool:
        """Whether the process's retry budget forbids an attempt that could be made; then the client is told."""
        if not self._tries or self._gear.retries.allowed:
            return False
        self._call.ledger.budget_spent = True
        return True

    async def _member(self, at: int, candidate: Candidate, provider: Provider, *, second: bool) -> bool:
        """Try the accounts of one member; True when the request has been answered."""
        if second and not self._pairs.noted(candidate):
            return False
        barred = self._pairs.barred(candidate)
        if barred is None and not await self._fits(at, candidate, provider, second=second):
            barred = SkipReason.CONTEXT
        if barred is not None:
            self._skip(candidate, barred)
            return False
        self._body = None
        last = self._attempts + self._room(at, second=second)
        while self._attempts < last and not self._spent():
            admission = self._gear.health.admission(provider.id, candidate.model)
            denied = admission is Admission.DENY
            account = None if denied else self._pick(candidate, provider, second=second)
            if account is None:
                self._pass_over(candidate, denied=denied)
                return False
            if self._overdrawn():
                return False
            self._body = self._body or self._body_for(candidate)
            # Nothing is awaited between the admission and the attempt: a probe is leased once.
            target = self._target(candidate, provider, account, admission, at, second=second)
            step = await self._try(target, self._body)
            if step is not NextStep.NEXT_ACCOUNT:
                return step is NextStep.STOP
        return False

    async def _fits(self, at: int, candidate: Candidate, provider: Provider, *, second: bool) -> bool:
        """Whether the history fits a member. Where it does not, a summary is asked for, if an attempt would follow."""
        if self._handoff.due(candidate) and self._pairs.open(candidate, provider, second=second):
            if self._attempts + 1 >= self._gear.policy.max_attempts:
                return False
            if not self._overdrawn():
                later = 1 + self._pairs.others(at, second=second)
                await self._handoff.make(candidate, lambda own_s: self._within_s(own_s, later))
                for lost in filter(self._handoff.lost, self._candidates):
                    self._pairs.close(lost)
        return not self._handoff.lost(candidate)

    def _body_for(self, candidate: Candidate) -> MemberBody:
        body = member_body(self._handoff.call_for(candidate), candidate, self._gear.learned)
        if not self._handoff.applies(candidate):
            return body
        return replace(body, changes=body.changes.then(Changes(adapted=(ADAPTED,))))

    def _room(self, at: int, *, second: bool) -> int:
        """Return the attempts that a member may use: those left, but one for each member behind it."""
        left = self._gear.policy.max_attempts - self._attempts
        return max(1, left - self._pairs.others(at, second=second))

    def _pass_over(self, candidate: Candidate, *, denied: bool) -> None:
        """Note why a member was not tried, if it was not: its state changed since the plan was made."""
        if denied:
            self._skip(candidate, SkipReason.CIRCUIT)
        elif self._pairs.untouched(candidate):
            self._skip(candidate, SkipReason.COOLDOWN)

    def _skip(self, candidate: Candidate, reason: SkipReason) -> None:
        provider = candidate.provider.id if candidate.provider is not None else ""
        mine = (a for a in self._call.ledger.attempts if a.provider == provider and a.model == candidate.model)
        if any(not attempt.handoff for attempt in mine):
            return  # it was tried; that its circuit opened meanwhile is no reason of its own
        if self._call.ledger.skip(Skip.of(candidate, reason)):
            self._gear.observer.skipped(provider, reason)

    def _pick(self, candidate: Candidate, provider: Provider, *, second: bool) -> Account | None:
        resolution = self._call.resolution
        combo = resolution.combo if resolution is not None else None
        round_robin = combo is not None and combo.strategy == "round-robin"
        return self._pairs.pick(candidate, provider, second=second, round_robin=round_robin)

    def _target(
        self,
        candidate: Candidate,
        provider: Provider,
        account: Account,
        admission: Admission,
        at: int,
        *,
        second: bool,
    ) -> Target:
        others = self._pairs.others(at, second=second)
        trial = self._gear.auto.is_probe(self._call, candidate, account)
        target = Target(
            candidate=candidate,
            provider=provider,
            account=account,
            started_at=self._gear.clock.now(),
            probe=admission is Admission.PROBE,
            limit_s=self._limit_s(provider, others, probe=trial),
            walk_until=self._deadline,
            can_reject=others > 0 and self._attempts + 1 < self._gear.policy.max_attempts,
            seed=self._call.seed + self._attempts,
        )
        if target.probe:
            self._gear.health.lease_probe(target)
        if trial:
            self._gear.auto.probing(target)
        return target

    def _limit_s(self, provider: Provider, others: int, *, probe: bool) -> float:
        policy, stream = self._gear.policy, self._call.stream
        own_s = policy.first_byte_of(provider, stream=stream)
        own_s += policy.first_output_of(provider) if stream else 0.0
        own_s = probe_limit_s(own_s) if probe else own_s
        return self._within_s(own_s, others)

    def _within_s(self, own_s: float, later: int) -> float:
        """Return a time limit: *own_s*, or less when the walk has less, or *later* members need theirs."""
        left_s = self._deadline - self._loop.time()
        return max(SHORTEST_S, min(attempt_limit_s(own_s, left_s, later), left_s))

    async def _try(self, target: Target, body: MemberBody) -> NextStep:
        """Make one attempt, and the one retry that a learned parameter earns; return where the walk goes."""
        self._pairs.take(target)
        self._note_failover(target)
        outcome = await self._attempt(target, body)
        if isinstance(outcome, Broken) and self._learns(target, body, outcome):
            self._body = self._body_for(target.candidate)
            again = self._again(target)
            if again is None:
                self._remember(target, outcome)
                return NextStep.NEXT_ACCOUNT
            target = again
            outcome = await self._attempt(target, self._body)
        if isinstance(outcome, Served):
            return NextStep.STOP
        return await self._failed(target, outcome)

    def _again(self, target: Target) -> Target | None:
        """Return the target of a learned parameter's retry; None when a circuit or a hard lock bars it by now."""
        health, provider, model = self._gear.health, target.provider.id, target.candidate.model
        if target.probe:
            health.return_probe(target)  # the retry is a probe of its own: its lease runs as long as it may
        admission = health.admission(provider, model)
        lock = health.cooldown(provider, target.account.id, model)
        if admission is Admission.DENY or (lock is not None and not lock.soft):
            return None
        limit_s = max(SHORTEST_S, min(target.limit_s, self._deadline - self._loop.time()))
        probe = admission is Admission.PROBE
        again = replace(target, started_at=self._gear.clock.now(), limit_s=limit_s, probe=probe)
        if probe:
            health.lease_probe(again)
        return again

    async def _attempt(self, target: Target, body: MemberBody) -> Broken | Served:
        """Run one attempt. Whatever it was, its record is written and a probe's lease ends with it."""
        if self._tries:
            self._gear.retries.count_retry()
        self._call.ledger.note_adapted(body.changes.adapted)
        for parameter, action in adaptations(body.changes):
            self._gear.observer.adapted(target.provider.id, parameter, action)
        outcome: Broken | Served | None = None
        try:
            with self._recorder.attempt(target):
                attempt = Attempt(self._gear, self._call, target, self._client, self._recorder)
                outcome = await attempt.run(body.content)
                if isinstance(outcome, Broken):
                    self._verdict = self._recorder.broken(outcome)
        finally:
            if outcome is None and target.probe:
                self._gear.health.return_probe(target)
        return outcome

    def _learns(self, target: Target, body: MemberBody, broken: Broken) -> bool:
        """Remember a parameter that the upstream's refusal names; False when it names none that we may drop."""
        name, spec = self._verdict.parameter, target.candidate.spec
        status = broken.failure.status
        if name is None or status not in LEARNING or self._spent() or not body.may_learn(name, self._call):
            return False
        if self._overdrawn():
            return False
        self._gear.learned.learn(target.provider.id, target.candidate.model, learned_name(name))
        self._gear.observer.adapted(target.provider.id, learned_name(name), "learned")
        self._call.ledger.say(f"learned: {spec} does not take {learned_name(name)}; once more without it")
        return True

    async def _failed(self, target: Target, broken: Broken) -> NextStep:
        verdict = self._verdict
        with turns_told(self._gear, self._call, target):
            self._gear.health.failed(target, verdict)
        self._pairs.failed(target, broken.failure, verdict)
        self._remember(target, broken)
        if verdict.step is not NextStep.STOP:
            return verdict.step
        await self._ending.stopped(broken, target, verdict)
        return NextStep.STOP

    def _remember(self, target: Target, broken: Broken) -> None:
        """Keep the latest failure: it is the answer if nobody is left."""
        self._last, self._last_target = broken, target
        self._rescuer.failed(target, broken, self._verdict)
        self._verdicts.append(self._verdict)

    def _note_failover(self, target: Target) -> None:
        before = self._last_target
        if before is None or before.provider.id == target.provider.id:
            return
        name = self._call.combo_name
        error_class = str(self._verdicts[-1].error_class)
        self._gear.observer.failed_over(Failover(name, before.provider.id, target.provider.id, error_class))
