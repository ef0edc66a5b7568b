"""The state of one walk: where it is, what failed last, and where it goes from there."""

from __future__ import annotations

import msgspec

from troyproxy.auto.exclusion import probe_limit_s
from troyproxy.catalog.providers import Account, Provider
from troyproxy.proxy.accounts import accounts_of
from troyproxy.proxy.attempt import Attempt
from troyproxy.proxy.bodies import MemberBody, adaptations, learned_name, member_body
from troyproxy.proxy.call import Call
from troyproxy.proxy.client import Client, ClientGone
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.handoff import ADAPTED, Handoff, handoff_of
from troyproxy.proxy.outcome import Broken, Served, Target
from troyproxy.proxy.pairs import Pairs, somebody_behind
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.policy import KEPT_S, attempt_limit_s
from troyproxy.proxy.recording import Recorder
from troyproxy.proxy.setbacks import Setbacks
from troyproxy.proxy.turns import turns_told
from troyproxy.resilience.breaker import Admission
from troyproxy.resilience.classes import NextStep
from troyproxy.resilience.classify import Verdict
from troyproxy.routing.changes import Changes
from troyproxy.routing.eligibility import SkipReason
from troyproxy.routing.members import Candidate

LEARNING = frozenset({400, 422})
"""Statuses by which an upstream names a parameter that it does not take."""
SHORTEST_S = 0.001


class Journey:
    """One request's way along its plan."""

    __slots__ = (
        *("_at", "_body", "_call", "_candidates", "_client", "_deadline", "_gear", "_handoff", "_made"),
        *("_pairs", "_planner", "_recorder", "_round_robin", "_second", "_setbacks", "_time", "_tries"),
    )

    def __init__(self, gear: Gear, planner: Planner, call: Call, client: Client) -> None:
        self._gear, self._planner, self._call, self._client = gear, planner, call, client
        self._recorder = Recorder(gear, call)
        self._candidates = call.plan.candidates if call.plan is not None else ()
        combo = call.resolution.combo if call.resolution is not None else None
        self._round_robin = combo is not None and combo.strategy == "round-robin"
        self._pairs: Pairs | None = None
        """From the first failure on, or the first choice to make."""
        self._handoff = handoff_of(gear, call, self._recorder) if combo is not None else None
        self._setbacks: Setbacks | None = None
        """From the first failure on."""
        self._time = client.alarm.time
        self._deadline = self._time() + gear.policy.request_timeout_s
        self._at, self._second = 0, False
        """The member that is being tried, and in which pass."""
        self._made = call.ledger.attempts
        """Every attempt so far, the summary of a hand-off among them."""
        self._tries = 0
        """Attempts at an answer: the summary of a hand-off repeats nothing."""
        self._body: MemberBody | None = None
        """Of the member that is being tried; made once, and anew when a parameter was learned."""

    async def run(self) -> None:
        """Walk to an answer, or until the client has gone, which is noted. A cancellation passes."""
        self._gear.retries.count_request(self._call.at)
        try:
            for second in (False, True):
                for at, candidate in enumerate(self._candidates):
                    provider = candidate.provider
                    if provider is None or self._spent():
                        continue
                    self._at, self._second = at, second
                    fresh = self._pairs is None and self._handoff is None
                    if (fresh or await self._opens(candidate, provider)) and await self._member(candidate, provider):
                        return
            await self._failures().end()
        except ClientGone:
            self._call.client_left = True

    def _book(self) -> Pairs:
        if self._pairs is None:
            self._pairs = Pairs(self._gear, self._candidates)
        return self._pairs

    def _failures(self) -> Setbacks:
        if self._setbacks is None:
            self._setbacks = Setbacks(self._gear, self._planner, self._call, self._client)
        return self._setbacks

    def _spent(self) -> bool:
        """Whether this request may make no further attempt: out of time, or of attempts."""
        return len(self._made) >= self._gear.policy.max_attempts or self._time() >= self._deadline

    def _overdrawn(self) -> bool:
        """Whether the process's retry budget forbids one more attempt, which could be made; then the client is told."""
        if self._gear.retries.allowed:
            return False
        self._call.ledger.budget_spent = True
        return True

    async def _opens(self, candidate: Candidate, provider: Provider) -> bool:
        """Whether a member may be tried. Why not is noted."""
        if self._second and not self._book().noted(candidate):
            return False
        barred = self._book().barred(candidate)
        if barred is None and self._handoff is not None:
            fits = await self._fits(self._handoff, candidate, provider)
            barred = None if fits else SkipReason.CONTEXT
        if barred is not None:
            self._recorder.passed_over(candidate, barred)
        return barred is None and (self._handoff is None or not self._spent())

    async def _member(self, candidate: Candidate, provider: Provider) -> bool:
        """Try the accounts of one member; True when the request has been answered."""
        self._body = None
        # No account is tried twice, so a sole one needs no counting.
        last = len(self._made) + (1 if len(provider.accounts) <= 1 else self._room())
        while True:
            now = self._gear.clock.now()
            picked = self._pick(candidate, provider, now)
            if picked is None or (self._tries and self._overdrawn()):
                return False
            self._body = self._body or self._body_for(candidate)
            # Nothing is awaited between the pick and the attempt: a probe is leased once.
            target = self._target(candidate, provider, picked, now)
            if self._setbacks is not None:
                self._setbacks.go_on(target)
            attempt = self._attempt(target, self._body)
            outcome = await attempt.run(self._body.content)
            if isinstance(outcome, Served):
                return True
            step = await self._broken(target, self._body, outcome, attempt.verdict)
            if step is not NextStep.NEXT_ACCOUNT:
                return step is NextStep.STOP
            if len(self._made) >= last or self._spent():
                return False

    def _pick(self, candidate: Candidate, provider: Provider, now: float) -> tuple[Account, bool] | None:
        """Return the account of the next attempt, and whether it is the circuit's probe; why there is none is noted."""
        health, accounts = self._gear.health, accounts_of(provider, candidate.model, candidate.account, now)
        if self._pairs is None and len(accounts) == 1 and health.calm(now):
            return accounts[0], False  # as almost always: there is nothing to choose, and nothing bars anybody
        admission, account = health.admission(provider.id, candidate.model), None
        denied = admission is Admission.DENY
        if not denied:
            second, round_robin = self._second, self._round_robin
            account = self._book().pick(candidate, provider, accounts, second=second, round_robin=round_robin)
        if account is None:
            self._pass_over(candidate, denied=denied)
            return None
        return account, admission is Admission.PROBE

    async def _fits(self, handoff: Handoff, candidate: Candidate, provider: Provider) -> bool:
        """Whether the history fits a member. Where it does not, a summary is asked for, if an attempt would follow."""
        if handoff.due(candidate) and self._book().open(candidate, provider, second=self._second):
            if len(self._made) + 1 >= self._gear.policy.max_attempts:
                return False
            if not (self._tries and self._overdrawn()):
                later = 1 + self._book().others(self._at, second=self._second)
                await handoff.make(candidate, lambda own_s: self._within_s(own_s, later))
                for lost in filter(handoff.lost, self._candidates):
                    self._book().close(lost)
        return not handoff.lost(candidate)

    def _body_for(self, candidate: Candidate) -> MemberBody:
        handoff, learned = self._handoff, self._gear.learned
        if handoff is None or not handoff.applies(candidate):
            return member_body(self._call, candidate, learned)
        body = member_body(handoff.call_for(candidate), candidate, learned)
        return msgspec.structs.replace(body, changes=body.changes.then(Changes(adapted=(ADAPTED,))))

    def _room(self) -> int:
        """Return the attempts that a member may use: those left, but one for each member behind it."""
        left = self._gear.policy.max_attempts - len(self._made)
        return max(1, left - self._book().others(self._at, second=self._second))

    def _pass_over(self, candidate: Candidate, *, denied: bool) -> None:
        """Note why a member was not tried, if it was not: its state changed since the plan was made."""
        if denied:
            self._recorder.passed_over(candidate, SkipReason.CIRCUIT)
        elif self._book().untouched(candidate):
            self._recorder.passed_over(candidate, SkipReason.COOLDOWN)

    def _target(self, candidate: Candidate, provider: Provider, picked: tuple[Account, bool], now: float) -> Target:
        call, made, (account, probe) = self._call, len(self._made), picked
        planned = call.probe is not None or call.gist is not None
        trial = planned and self._gear.auto.is_probe(call, candidate, account)
        target = Target(
            candidate=candidate,
            provider=provider,
            account=account,
            started_at=now,
            probe=probe,
            limit_s=self._limit_s(provider, trial=trial),
            walk_until=self._deadline,
            can_reject=len(self._candidates) > 1 and self._has_others(now),
            seed=call.seed + made,
        )
        if probe:
            self._gear.health.lease_probe(target)
        if trial:
            self._gear.auto.probing(target)
        return target

    def _has_others(self, now: float) -> bool:
        """Whether another member may still be tried after this attempt."""
        if len(self._made) + 1 >= self._gear.policy.max_attempts:
            return False
        if self._pairs is None:
            return somebody_behind(self._candidates, self._at, now)
        return self._pairs.others(self._at, second=self._second, most=1) > 0

    def _limit_s(self, provider: Provider, *, trial: bool) -> float:
        policy, stream = self._gear.policy, self._call.stream
        own_s = policy.first_byte_of(provider, stream=stream)
        own_s += policy.first_output_of(provider) if stream else 0.0
        own_s = probe_limit_s(own_s) if trial else own_s
        if SHORTEST_S <= own_s <= self._deadline - self._time() - KEPT_S * len(self._candidates):
            return own_s  # however many of the others may still be tried
        return self._within_s(own_s, self._book().others(self._at, second=self._second))

    def _within_s(self, own_s: float, later: int) -> float:
        """Return a time limit: *own_s*, or less when the walk has less, or *later* members need theirs."""
        left_s = self._deadline - self._time()
        return max(SHORTEST_S, min(attempt_limit_s(own_s, left_s, later), left_s))

    async def _broken(self, target: Target, body: MemberBody, broken: Broken, verdict: Verdict) -> NextStep:
        """Draw the conclusions of a failed attempt, or retry it without a parameter; return where the walk goes."""
        self._book().take(target)
        if self._learns(target, body, broken, verdict):
            self._body = self._body_for(target.candidate)
            again = self._again(target)
            if again is None:
                self._failures().add(target, broken, verdict)
                return NextStep.NEXT_ACCOUNT
            attempt = self._attempt(again, self._body)
            outcome = await attempt.run(self._body.content)
            if isinstance(outcome, Served):
                return NextStep.STOP
            target, broken, verdict = again, outcome, attempt.verdict
        return await self._failed(target, broken, verdict)

    def _again(self, target: Target) -> Target | None:
        """Return the target of a learned parameter's retry; None when a circuit or a hard lock bars it by now."""
        health, provider, model = self._gear.health, target.provider.id, target.candidate.model
        if target.probe:
            health.return_probe(target)  # the retry is a probe of its own: its lease runs as long as it may
        admission = health.admission(provider, model)
        lock = health.cooldown(provider, target.account.id, model)
        if admission is Admission.DENY or (lock is not None and not lock.soft):
            return None
        limit_s = max(SHORTEST_S, min(target.limit_s, self._deadline - self._time()))
        probe = admission is Admission.PROBE
        again = msgspec.structs.replace(target, started_at=self._gear.clock.now(), limit_s=limit_s, probe=probe)
        if probe:
            health.lease_probe(again)
        return again

    def _attempt(self, target: Target, body: MemberBody) -> Attempt:
        """Return an attempt that is to be run, counted."""
        if self._tries:
            self._gear.retries.count_retry()
        self._tries += 1
        if body.changes.adapted or self._call.ledger.adapted:
            self._note_changes(target, body.changes)
        return Attempt(self._gear, self._call, target, self._client, self._recorder)

    def _note_changes(self, target: Target, changes: Changes) -> None:
        self._call.ledger.note_adapted(changes.adapted)
        for parameter, action in adaptations(changes):
            self._gear.observer.adapted(target.provider.id, parameter, action)

    def _learns(self, target: Target, body: MemberBody, broken: Broken, verdict: Verdict) -> bool:
        """Remember a parameter that the upstream's refusal names; False when it names none that we may drop."""
        name, spec = verdict.parameter, target.candidate.spec
        status = broken.failure.status
        if name is None or status not in LEARNING or self._spent() or not body.may_learn(name, self._call):
            return False
        if self._overdrawn():
            return False
        self._gear.learned.learn(target.provider.id, target.candidate.model, learned_name(name))
        self._gear.observer.adapted(target.provider.id, learned_name(name), "learned")
        self._call.ledger.say(f"learned: {spec} does not take {learned_name(name)}; once more without it")
        return True

    async def _failed(self, target: Target, broken: Broken, verdict: Verdict) -> NextStep:
        failures = self._failures()
        with turns_told(self._gear, self._call, target):
            self._gear.health.failed(target, verdict)
        self._book().failed(target, broken.failure, verdict)
        failures.add(target, broken, verdict)
        if verdict.step is NextStep.STOP:
            await failures.stop()
        return verdict.step
