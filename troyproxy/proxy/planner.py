"""From a call to an ordered chain of targets, with a typed reason for everything that was left out.

The code that serves traffic is the code that explains: `Planner.draft` has no effect but its result, `Planner.plan`
also applies the strategies' effects (cursors move when a plan is made) and refuses when nobody is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Final

import msgspec
from cachetools import LRUCache

from troyproxy.catalog.combos import Combo
from troyproxy.errors import BudgetExceeded, NoEligibleMember, TroyError
from troyproxy.ports import Clock, Observer
from troyproxy.proxy.admitting import Admitting
from troyproxy.proxy.auto_engine import AutoEngine
from troyproxy.proxy.auto_run import AutoRun
from troyproxy.proxy.call import Call
from troyproxy.proxy.draft import Draft, recalled, remembered
from troyproxy.proxy.handoff import Relief
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.measuring import EMBEDDINGS, Measuring, Size
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.proxy.roots import Roots, tree_of
from troyproxy.proxy.trees import Globs, Tree, Wanted
from troyproxy.proxy.unavailable import LOCKED, Refusals
from troyproxy.routing.context import State
from troyproxy.routing.eligibility import Skip
from troyproxy.routing.members import AUTO, Candidate, leaves
from troyproxy.routing.names import NameKind
from troyproxy.routing.needs import Needs
from troyproxy.routing.order import Plan, Sifted, Sight, arrange, circle_of, sift
from troyproxy.routing.resolvers import Drifting, drifting_of, nobody_drifts
from troyproxy.routing.strategies import STRATEGIES

STATES: Final = 10_000
_UNDECIDED: Final = "a call is planned after its name is resolved and its needs are read"


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
        self._idle_rng = Random(0)  # noqa: S311 -- nobody draws from it: seeding one costs more than a plan

    def plan(self, call: Call) -> Plan:
        """Plan *call*, apply the effects, note the skips. Raises when no member is left, or the key may not."""
        draft = self.draft(call)
        plan = draft.plan
        if draft.settled:
            call.plan, call.remember = plan, ()
            return plan
        for effect in plan.effects:
            self._states[effect.combo_id] = effect.state
        if draft.run is not None:
            self.auto.apply(call, draft.run.decided)
        for skip in plan.skipped if draft.run is None else draft.skips:
            if call.ledger.skip(skip):
                self._observer.skipped(skip.provider, skip.reason)
        if not plan.candidates:
            raise self.refusal(call, draft)
        self._tell_drifting(call, plan)
        call.plan, call.remember = plan, draft.remember
        return plan

    def _tell_drifting(self, call: Call, plan: Plan) -> None:
        """Trace which models go last because they drift; where an order was saved it stays as it was."""
        kind = call.resolution.kind if call.resolution is not None else None
        if (kind is not NameKind.DEFAULT and kind is not NameKind.AUTO) or not call.wants_tools:
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
        resolution, needs = call.resolution, call.needs
        if resolution is None or needs is None:
            raise RuntimeError(_UNDECIDED)
        if resolution.kind is NameKind.DEFAULT and not needs.tools and call.wants_tools:
            needs = msgspec.structs.replace(needs, tools=True)  # perhaps they come later
        now = self._clock.now()
        tree = self._roots.of(call, resolution, now)
        globs = tree.limits(call.key.models, resolution) if call.key is not None and call.key.models else ()
        if not self._health.calm(now) or needs.est_tokens + (needs.max_output or 0) > tree.room:
            sifted = sift(tree.root, self._admitting(call, needs, tree, globs, now).reason)
            return self._arranged(call, needs, tree, sifted, now)
        wanted = needs.tools, needs.vision, needs.json, needs.audio, call.route == EMBEDDINGS, globs
        return tree.drafts.get(wanted) or self._calm_draft(call, needs, tree, wanted, now)

    def _calm_draft(self, call: Call, needs: Needs, tree: Tree, wanted: Wanted, now: float) -> Draft:
        """Draft while nobody is locked and the length bars nobody: who may serve depends on *wanted* alone."""
        sifted = tree.sifted.get(wanted)
        if sifted is None:
            sifted = sift(tree.root, self._admitting(call, needs, tree, wanted[-1], now).reason)
            tree.keep(wanted, sifted)
        draft = self._arranged(call, needs, tree, sifted, now)
        if tree.fixed:
            default = call.resolution is None or call.resolution.kind is NameKind.DEFAULT
            settled = bool(draft.plan.candidates) and not (draft.plan.skipped or default)
            draft = replace(draft, settled=settled)
            tree.keep_draft(wanted, draft)
        return draft

    def _arranged(self, call: Call, needs: Needs, tree: Tree, sifted: Sifted, now: float) -> Draft:
        run = self._run(call, tree, needs, now)
        plan = arrange(sifted, self._sight(call, needs, now, tree, run))
        return Draft(tree.root, plan, run, tuple(remembered(call, tree.groups.values(), run)))

    def _admitting(self, call: Call, needs: Needs, tree: Tree, globs: Globs, now: float) -> Admitting:
        return Admitting(
            needs=needs,
            deny_unknown=self._policy.deny_unknown,
            relief=Relief(call) if tree.hands_over else None,
            globs=globs,
            vectors=tree.vectors if call.route == EMBEDDINGS else None,
            health=self._health,
            circuits=self._health.circuits(now),
            cooling=self._health.cooling(now),
            carriers=self._roots.carriers,
        )

    def _run(self, call: Call, tree: Tree, needs: Needs, now: float) -> AutoRun | None:
        """Return what decides for the ``auto`` groups; None where there are none."""
        if not tree.scored:
            return None
        size = Size.of(needs, call.route)

        def estimate(candidate: Candidate) -> float | None:
            return self._measuring.reading(candidate, size, now).cost_usd

        return AutoRun(self.auto, call, tree.scored, estimate, self._health.circuits(now), drifting=self._drifting)

    def _sight(self, call: Call, needs: Needs, now: float, tree: Tree, run: AutoRun | None) -> Sight:
        """Return what strategies may look at; readings are taken only by those that ask."""

        def last(combo: Combo) -> str | None:
            return recalled(self.auto.memory, call, tree.groups[circle_of(combo)])

        return Sight(
            last=last,
            strategies=STRATEGIES if run is None else {**STRATEGIES, AUTO: run.strategy},
            rng=Random(call.seed) if tree.draws else self._idle_rng,  # noqa: S311 -- seeded, replayable
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
        if call.resolution is None:
            raise RuntimeError(_UNDECIDED)
        return tuple(leaves(tree_of(call, call.resolution)))

    def retry_in_s(self, call: Call) -> float | None:
        """Return when a new request would find somebody, in seconds; None when it would at once, or never."""
        plan = call.plan
        if plan is None:
            return None
        open_to_it = {candidate.spec for candidate in plan.candidates}
        open_to_it |= {skip.spec for skip in plan.skipped if skip.reason in LOCKED}
        wait_s, _ = self._refusals.wait(member for member in self.members(call) if member.spec in open_to_it)
        return wait_s if wait_s > 0 else None
