"""One request's way through the auto engine: its rules, and the strategy ``auto`` bound to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from troyproxy.auto.brief import brief_of
from troyproxy.auto.config import PLAIN, AutoConfig, BadAuto, read_auto
from troyproxy.auto.decision import Rules, decide
from troyproxy.auto.factors import Demand
from troyproxy.auto.gist import Gist, gist_of
from troyproxy.auto.incident import incident
from troyproxy.auto.tiers import recommended_tier
from troyproxy.auto.variants import VARIANTS, Variant, variant_of
from troyproxy.catalog.combos import Combo
from troyproxy.proxy.auto_engine import AutoEngine, Decided
from troyproxy.proxy.boards import Circuits
from troyproxy.proxy.call import Call, MemoryKey
from troyproxy.proxy.memory import identity_in, key_of, session_of
from troyproxy.proxy.wishes import Wishes, wishes_of
from troyproxy.resilience.breaker import CircuitState
from troyproxy.resilience.health import CircuitKey
from troyproxy.routing.candidates import Candidate
from troyproxy.routing.context import Order, RouteContext
from troyproxy.routing.eligibility import Skip, SkipReason
from troyproxy.routing.members import Group, Unit, leaves
from troyproxy.routing.resolvers import Drifting, drifting_of, nobody_drifts

PLAIN_VARIANT: Final = VARIANTS["auto"]
Estimate = Callable[[Candidate], float | None]
"""Returns the cost of this request at a candidate, USD; None = unknown."""


class AutoRun:
    """Made for one draft of a plan. After it, `decided` says what was decided, the outermost combo first."""

    def __init__(
        self,
        engine: AutoEngine,
        call: Call,
        groups: Mapping[str, Group],
        estimate: Estimate,
        circuits: Circuits,
        *,
        drifting: Drifting = nobody_drifts,
    ) -> None:
        """*groups*: those with strategy ``auto``, unfiltered, by `circle_of`; *circuits*: those not closed."""
        self._engine, self._call, self._estimate, self._circuits = engine, call, estimate, circuits
        self._wishes = wishes_of(call)
        # Kept on the call, and with it in the usage row: a request that is walked again has no text to read.
        self._gist = call.gist = call.gist or _gist(call, self._wishes)
        self.decided: list[Decided] = []
        self._groups, self._drifting = groups, drifting

    def strategy(self, members: Sequence[Unit], ctx: RouteContext) -> Order:
        """The scored order. *members* are single ones: combos inside were taken apart (`TO_LEAVES`)."""
        group, gist = self._groups[ctx.combo_id], self._gist
        pool = cast("Sequence[Candidate]", members)
        field = self._engine.boards.field(pool, gist.task, self._call.snapshot, self._circuits, ctx.now)
        rules, key = self._rules(group, pool)
        entries = self._engine.placed(field, key)
        if rules.budget_usd is not None:
            costs = map(self._estimate, pool)
            entries = [replace(entry, estimate_usd=usd) for entry, usd in zip(entries, costs, strict=True)]
        decision = decide(entries, self._demand, rules, ctx.rng, field.judge)
        self.decided.append(Decided(group.combo, decision, field.candidates, gist.task, gist.specificity, key))
        return Order(tuple([field.candidates[identity] for identity in decision.order]))

    @property
    def skips(self) -> list[Skip]:
        """Return who was left out here, with the reason."""
        out = self.left_out
        if not out:
            return []
        return [
            Skip.of(candidate, out[candidate.identity])
            for made in self.decided
            for candidate in made.candidates.values()
            if candidate.identity in out
        ]

    @property
    def left_out(self) -> dict[str, SkipReason]:
        """Return the reasons by identity."""
        decisions = [made.decision for made in self.decided]
        dear = {identity: SkipReason.BUDGET for decision in decisions for identity in decision.over_budget}
        return {identity: SkipReason.EXCLUDED for decision in decisions for identity in decision.out} | dear

    @property
    def refused(self) -> bool:
        """Whether a strict budget left nobody."""
        return any(made.decision.over_budget and not made.decision.order for made in self.decided)

    @property
    def cheapest_usd(self) -> float | None:
        """The cheapest estimate, USD, where a strict budget left nobody; None: no price is known."""
        known = [made.decision.cheapest_usd for made in self.decided if made.decision.cheapest_usd is not None]
        return min(known, default=None)

    @property
    def _demand(self) -> Demand:
        return Demand(self._gist.specificity, recommended_tier(self._gist.specificity, tools=self._gist.tools))

    def _rules(self, group: Group, pool: Sequence[Candidate]) -> tuple[Rules, MemoryKey]:
        combo, wishes = group.combo, self._wishes
        config, variant = _config(combo), wishes.variant or variant_of(combo.name) or PLAIN_VARIANT
        weights = wishes.weights or (variant.weights if variant_of(combo.name) else config.weights)
        key = key_of(self._call, combo, self._engine.name_of(weights))
        last = self._engine.memory.last(key)
        rules = Rules(
            weights=weights,
            exploration=_exploration(wishes, config, variant, self._engine.exploration),
            known=variant.known,
            last=identity_in(last, group),
            pinned=last is not None and session_of(self._call) is not None,
            incident=self._incident(group),
            budget_usd=wishes.budget_usd if wishes.budget_usd is not None else config.budget_usd,
            strict=config.strict if wishes.strict is None else wishes.strict,
            drifting=self._late(pool),
        )
        return rules, key

    def _late(self, pool: Sequence[Candidate]) -> frozenset[str]:
        """Return who goes last because its tool calls came as text lately."""
        return drifting_of(pool, self._drifting()) if self._call.wants_tools else frozenset()

    def _incident(self, group: Group) -> bool:
        circuits = self._circuits
        if CircuitState.OPEN not in circuits.values():
            return False
        pool = ((leaf.provider.id, leaf.model) for leaf in leaves(group) if leaf.provider is not None)
        return incident((key[0], circuits.get(CircuitKey(*key), CircuitState.CLOSED)) for key in pool)


def _exploration(wishes: Wishes, config: AutoConfig, variant: Variant, standard: float) -> float:
    if config.exploration is not None and wishes.variant is None:
        return config.exploration
    # The setting is the usual rate; where it is zero nobody wants experiments, whatever the variant.
    return standard if variant.exploration is None or standard == 0 else variant.exploration


def _config(combo: Combo) -> AutoConfig:
    """Return the combo's config. What is stored was checked when it was written; anything else is plain ``auto``."""
    try:
        return read_auto(combo.config.get("auto"))
    except BadAuto:
        return PLAIN


def _gist(call: Call, wishes: Wishes) -> Gist:
    tokens = call.needs.est_tokens if call.needs is not None else 0
    return gist_of(brief_of(call.payload, est_tokens=tokens, hint=wishes.task))
