"""The members behind one name, with all that follows from the configuration alone: made once, used by many plans.

While nobody is locked out and the request fits the smallest window, who may serve depends on a handful of flags, and
in a combo that keeps its saved order so does the whole plan. Both are kept here, as the general code made them. The
tree ends with the snapshot and the accounts it was made of (`roots`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from troyproxy.catalog.combos import Combo
from troyproxy.catalog.providers import Provider
from troyproxy.errors import ModelNotAllowed
from troyproxy.proxy.draft import Draft, groups_of
from troyproxy.routing.eligibility import embedding_model
from troyproxy.routing.globs import allowed, pool_limited
from troyproxy.routing.handoff import hands_over
from troyproxy.routing.members import AUTO, Group, leaves
from troyproxy.routing.names import Resolution
from troyproxy.routing.order import Sifted, circle_of, is_fixed
from troyproxy.routing.strategies import DRAWING

MOST: Final = 64
"""Kinds of requests, and of keys, that one tree keeps something for; past that it begins anew."""

Globs = tuple[str, ...]
Wanted = tuple[bool, bool, bool, bool, bool, Globs]
"""What the filters go by while nobody is locked: tools, vision, JSON, audio, vectors, and the limits of the key."""


@dataclass(frozen=True, slots=True)
class Tree:
    """See above. *source*: the combo or provider that the name meant."""

    root: Group
    source: Combo | Provider | None
    groups: Mapping[str, Group]
    """The combo and every combo inside it, by `circle_of`."""
    scored: Mapping[str, Group]
    """Those that the auto engine orders."""
    fixed: bool
    """Every group keeps its saved order, whatever the request."""
    draws: bool
    """Some strategy draws."""
    room: float
    """The smallest context window that is known; what fits it fits everybody."""
    hands_over: bool
    """A history that is too long for a member may be handed over shortened (`handoff`)."""
    vectors: str | None
    """The one model whose vectors an embedding request may get."""
    sifted: dict[Wanted, Sifted] = field(default_factory=dict, compare=False)
    drafts: dict[Wanted, Draft] = field(default_factory=dict, compare=False)
    _limits: dict[Globs, Globs] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, root: Group, source: Combo | Provider | None) -> Tree:
        """Return *root* with what follows from it."""
        groups = {circle_of(group.combo): group for group in groups_of(root)}
        strategies = {group.combo.strategy for group in groups.values()}
        windows = (leaf.facts.limits.context for leaf in leaves(root))
        return cls(
            root=root,
            source=source,
            groups=groups,
            scored={name: group for name, group in groups.items() if group.combo.strategy == AUTO},
            fixed=all(is_fixed(strategy) for strategy in strategies),
            draws=not DRAWING.isdisjoint(strategies),
            room=min((window for window in windows if window is not None), default=math.inf),
            hands_over=hands_over(root.combo),
            vectors=embedding_model(root),
        )

    def limits(self, globs: Globs, resolution: Resolution) -> Globs:
        """Return those of a key's *globs* that limit the pool: none for most keys. Raises ModelNotAllowed."""
        known = self._limits.get(globs)
        if known is None:
            known = _limits(globs, resolution, self.root)
            make_room(self._limits)
            self._limits[globs] = known
        return known

    def keep(self, wanted: Wanted, sifted: Sifted) -> None:
        """Keep who may serve requests that want this, while nobody is locked."""
        make_room(self.sifted)
        self.sifted[wanted] = sifted

    def keep_draft(self, wanted: Wanted, draft: Draft) -> None:
        """Keep the whole plan for requests that want this, while nobody is locked."""
        make_room(self.drafts)
        self.drafts[wanted] = draft


def make_room(kept: dict[Wanted, Sifted] | dict[Wanted, Draft] | dict[Globs, Globs]) -> None:
    """Forget everything when it is too much."""
    if len(kept) >= MOST:
        kept.clear()


def _limits(globs: Globs, resolution: Resolution, root: Group) -> Globs:
    if allowed(globs, resolution.canonical):
        return ()
    if pool_limited(globs, resolution.canonical, (candidate.spec for candidate in leaves(root))):
        return globs
    error = ModelNotAllowed(f"this key may not use the model {resolution.canonical[:200]!r}", param="model")
    error.quiet = f"this key may not use the model {resolution.asked[:200]!r}"
    raise error
