"""What a combo says it can do. It is read from the members' `facts`, the very objects that `eligibility.shortfall`
enforces, so a request within what is advertised always finds an eligible member while all circuits are closed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

from troyproxy.catalog.combos import Combo
from troyproxy.catalog.models import Capabilities, Limits, Model
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.routing.members import expand, leaves
from troyproxy.routing.pool import auto_pool

_Join = Callable[[Sequence[bool | None]], bool | None]


@dataclass(frozen=True, slots=True)
class Advert:
    """Capabilities and limits of a name in the model list; None is unknown."""

    capabilities: Capabilities
    limits: Limits


def advertise(combo: Combo, snapshot: Snapshot) -> Advert:
    """Return the weakest member's advert; any member may have to serve.

    A capability is False if one member lacks it, None if it is unknown for one, else True. Limits are the minimum of
    those known. Members that cannot be followed (an unknown provider, no model) never serve, so they do not count.
    """
    models = [leaf.facts for leaf in leaves(expand(combo, snapshot)) if leaf.provider is not None and leaf.model]
    return Advert(_joined(models, _every), _limits(models, min))


def advertise_auto(snapshot: Snapshot) -> Advert:
    """Return the strongest of the ``auto`` pool: the engine picks a member that can."""
    models = [candidate.facts for candidate in auto_pool(snapshot) if candidate.model]
    return Advert(_joined(models, _some), _limits(models, max))


def _every(values: Sequence[bool | None]) -> bool | None:
    if False in values:
        return False
    return None if None in values or not values else True


def _some(values: Sequence[bool | None]) -> bool | None:
    if True in values:
        return True
    return None if None in values or not values else False


def _joined(models: Sequence[Model], join: _Join) -> Capabilities:
    names = [field.name for field in fields(Capabilities)]
    return Capabilities(**{name: join([getattr(m.capabilities, name) for m in models]) for name in names})


def _limits(models: Sequence[Model], pick: Callable[[Iterable[int]], int]) -> Limits:
    contexts = [m.limits.context for m in models if m.limits.context is not None]
    outputs = [m.limits.output for m in models if m.limits.output is not None]
    return Limits(pick(contexts) if contexts else None, pick(outputs) if outputs else None)
