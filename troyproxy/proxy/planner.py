"""From a call to an ordered chain of targets, with a typed reason for everything that was left out.

The code that serves traffic is the code that explains: `Planner.draft` has no effect but its result, `Planner.plan`
also applies the strategies' effects (cursors move when a plan is made) and refuses when nobody is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from cachetools import LRUCache

from troyproxy.catalog.combos import Combo
from troyproxy.errors import BudgetExceeded, ModelNotAllowed, NoEligibleMember, TroyError
from troyproxy.ports import Clock, Observer
from troyproxy.proxy.admitting import Admitting
from troyproxy.proxy.auto_engine import AutoEngine
from troyproxy.proxy.auto_run import AutoRun
from troyproxy.proxy.call import Call
from troyproxy.proxy.draft import Draft, groups_of, recalled, remembered
from troyproxy.proxy.handoff import Relief
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.measuring import Measuring, Size
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.proxy.roots import Roots, tree_of
from troyproxy.proxy.unavailable import LOCKED, Refusals
from troyproxy.routing.context import State
from troyproxy.routing.eligibility import (
    Skip,
    embedding_model,
)
from troyproxy.routing.globs import allowed, pool_limited
from troyproxy.routing.members import AUTO, Candidate, Group, leaves
from troyproxy.routing.names import NameKind, Resolution
from troyproxy.routing.needs import Needs
from troyproxy.routing.order import Plan, Sight, circle_of, order
from troyproxy.routing.resolvers import Drifting, drifting_of, nobody_drifts
from troyproxy.routing.strategies import STRATEGIES

STATES: Final = 10_000
UNSAVED: Final = frozenset({NameKind.DEFAULT, NameKind.AUTO})
"""Names whose order nobody saved."""


class Planner:
    """Plans calls against the live health state. What strategies remember is this process's own."""

    def __init__(  # noqa: PLR0913 -- one argument per part, by keyword
        self,
        *,
        health: HealthKeeper,
        measuring: Measuring,
        auto: AutoEngine,
        clock: Clock,
        policy: WalkPolicy,
        observer: Observer,
        drifting: Drifting = nobody_drifts,
    ) -> None:
        self._health, self._measuring, self.auto, self._clock = health, measuring, auto, clock
        self._policy, self._observer = policy, observer
        self._refusals = Refusals(health, clock)
        self._states: LRUCache[str, State] = LRUCache(STATES)
        self._drifting = drifting
        self._roots = Roots(clock, drifting)

    def plan(self, call: Call) -> Plan:
        """Plan *call*, apply the effects, note the skips. Raises when no member is left, or the key may not."""
        draft = self.draft(call)
        plan = draft.plan
        for effect in plan.effects:
            self._states[effect.combo_id] = effect.state
        if draft.run is not None:
            self.auto.apply(call, draft.run.decided)
        for skip in draft.skips:
            if call.ledger.skip(skip):
                self._observer.skipped(skip.provider, skip.reason)
        if not plan.candidates:
            raise self.refusal(call, draft)
        self._tell_drifting(call, plan)
        call.plan, call.remember = plan, draft.remember
        return plan

    def _tell_drifting(self, call: Call, plan: Plan) -> None:
        """Trace which models go last because they drift; elsewhere the order is as it was saved."""
        if not call.wants_tools or call.resolution is None or call.resolution.kind not in UNSAVED:
            return
        late = drifting_of(plan.candidates, self._drifting())
        if late:
            call.ledger.say(f"their tool calls came as text lately, so they go last: {', '.join(sorted(late))}")

    def refusal(self, call: Call, draft: Draft) -> TroyError:
        """Return the error for a *draft* that leaves nobody."""
        if draft.run is not None and draft.run.refused:
            cheapest = draft.run.cheapest_usd
            told = "no price is known" if cheapest is None else f"the cheapest would cost about ${cheapest:.6f}"
            return BudgetExceeded(f"no candidate fits the budget of this request; {told}")
        return self.unavailable(call, tuple(leaves(draft.root)), draft.skips)

    def draft(self, call: Call) -> Draft:
        """Return the members behind the call's name and the plan for them, touching nothing."""
        resolution, needs = _decided(call)
        root = self._roots.of(call, resolution)
        globs = _globs(call, resolution, root)
        now = self._clock.now()
        admitting = Admitting(
            needs=needs,
            deny_unknown=self._policy.deny_unknown,
            relief=Relief(call),
            globs=globs,
            vectors=embedding_model(root) if call.route == "/v1/embeddings" else None,
            health=self._health,
            circuits=self._health.circuits(now),
            cooling=self._health.cooling(now),
            carriers=self._roots.carriers,
        )
        groups = {circle_of(group.combo): group for group in groups_of(root)}
        run = self._run(call, groups, needs)
        plan = order(root, admitting.reason, self._sight(call, needs, now, groups, run))
        return Draft(root, plan, run, tuple(remembered(call, groups.values(), run)))

    def _run(self, call: Call, groups: Mapping[str, Group], needs: Needs) -> AutoRun | None:
        """Return what decides for the ``auto`` groups; None where there are none."""
        scored = {name: group for name, group in groups.items() if group.combo.strategy == AUTO}
        if not scored:
            return None
        size, now = Size.of(needs, call.route), self._clock.now()

        def estimate(candidate: Candidate) -> float | None:
            return self._measuring.reading(candidate, size, now).cost_usd

        return AutoRun(self.auto, call, scored, estimate, self._health.circuits(now), drifting=self._drifting)

    def _sight(self, call: Call, needs: Needs, now: float, groups: Mapping[str, Group], run: AutoRun | None) -> Sight:
        """Return what strategies may look at; readings are taken only by those that ask."""

        def last(combo: Combo) -> str | None:
            return recalled(self.auto.memory, call, groups[circle_of(combo)])

        return Sight(
            last=last,
            strategies=STRATEGIES if run is None else {**STRATEGIES, AUTO: run.strategy},
            rng=Random(call.seed),  # noqa: S311 -- seeded, replayable
            now=now,
            states=self._states,
            read=self._measuring.reader(needs, call.route, now),
            tokens=needs.est_tokens + (needs.max_output or 0),
        )

    def unavailable(self, call: Call, members: Iterable[Candidate], skips: Sequence[Skip]) -> NoEligibleMember:
        """Return the error for a call that nobody can serve, with the reasons."""
        return self._refusals.error(call, members, skips)

    def members(self, call: Call) -> tuple[Candidate, ...]:
        """Return every member behind the call's name, eligible or not."""
        return tuple(leaves(tree_of(call, _decided(call)[0])))

    def retry_in_s(self, call: Call) -> float | None:
        """Return when a new request would find somebody, in seconds; None when it would at once, or never."""
        plan = call.plan
        if plan is None:
            return None
        open_to_it = {candidate.spec for candidate in plan.candidates}
        open_to_it |= {skip.spec for skip in plan.skipped if skip.reason in LOCKED}
        wait_s, _ = self._refusals.wait(member for member in self.members(call) if member.spec in open_to_it)
        return wait_s if wait_s > 0 else None


def _decided(call: Call) -> tuple[Resolution, Needs]:
    if call.resolution is None or call.needs is None:
        raise RuntimeError("a call is planned after its name is resolved and its needs are read")
    if call.resolution.kind is NameKind.DEFAULT and not call.needs.tools and call.wants_tools:
        return call.resolution, replace(call.needs, tools=True)  # perhaps they come later
    return call.resolution, call.needs


def _globs(call: Call, resolution: Resolution, root: Group) -> tuple[str, ...]:
    """Return the globs that limit the pool (none for most keys). Raises ModelNotAllowed."""
    globs = call.key.models if call.key is not None else ()
    if not globs or allowed(globs, resolution.canonical):
        return ()
    if pool_limited(globs, resolution.canonical, (candidate.spec for candidate in leaves(root))):
        return globs
    error = ModelNotAllowed(f"this key may not use the model {resolution.canonical[:200]!r}", param="model")
    error.quiet = f"this key may not use the model {resolution.asked[:200]!r}"
    raise error
