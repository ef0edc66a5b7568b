"""The default resolvers: which providers serve ``default``, by the kind of turn, as an ordered list to fall back along.

``auto`` has a pool of its own (`pool`), which the auto engine scores.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Final

from troyproxy.catalog.combos import Combo
from troyproxy.catalog.models import ToolCalls
from troyproxy.catalog.providers import Provider
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import InvalidRequest
from troyproxy.routing.lookup import listed, shown
from troyproxy.routing.members import AUTO, Candidate, Group, candidate_of, units_of
from troyproxy.routing.names import NameKind, Resolution
from troyproxy.routing.pool import auto_pool

TOOL_PREFERENCE: Final = ("openai", "google")
"""Provider ids that come first on tool turns, behind the configured preferences."""

Late = Collection[tuple[str, str]]
"""Models, by provider id and model, whose tool calls came as text too often lately; mostly none."""
Drifting = Callable[[], Late]
"""Returns them as they are now."""


def nobody_drifts() -> Late:
    """Return nobody."""
    return ()


def resolve_default(
    snapshot: Snapshot, *, wants_tools: bool, header_provider: str | None = None, key_provider: str | None = None
) -> tuple[Candidate, ...]:
    """Return the default model of each provider, in the order to try them.

    Preferred are the caller's provider (*header_provider*, else *key_provider*), then the configured default, then,
    on tool turns, openai and google, then file order. On tool turns models that are marked to drift come last, the
    preferred one included. Who lacks tools is in the list too: eligibility passes it over, and says so.
    Raises InvalidRequest when *header_provider* names no configured provider.
    """
    preferred = _preferred(snapshot, header_provider, key_provider)
    by_hand = TOOL_PREFERENCE if wants_tools else ()
    named = [snapshot.provider(name) for name in (*preferred, *by_hand)]
    pool = _defaults([*(p for p in named if p is not None), *snapshot.providers.values()])
    if wants_tools:
        pool.sort(key=lambda c: c.facts.tool_calls is ToolCalls.DRIFTS)
    return tuple(pool)


def steady_first(root: Group, late: Late) -> Group:
    """Return *root*, whose units are candidates, with those that are *late* behind all others."""
    behind = drifting_of((unit for unit in root.units if isinstance(unit, Candidate)), late)
    if not behind:
        return root
    return replace(root, units=tuple(sorted(root.units, key=lambda unit: unit.identity in behind)))


def drifting_of(candidates: Iterable[Candidate], late: Late) -> frozenset[str]:
    """Return the identities of those that drift lately; what they are marked as is another matter."""
    if not late:
        return frozenset()
    return frozenset(c.identity for c in candidates if c.provider is not None and (c.provider.id, c.model) in late)


def root_of(
    resolution: Resolution,
    snapshot: Snapshot,
    *,
    wants_tools: bool,
    header_provider: str | None = None,
    key_provider: str | None = None,
) -> Group:
    """Return the tree of members for any *resolution*; the preferences matter to ``default`` only.

    Raises InvalidRequest when *header_provider* names no configured provider, whatever was asked for.
    """
    _preferred(snapshot, header_provider, key_provider)
    if resolution.kind is NameKind.AUTO:
        return Group(Combo(resolution.canonical, resolution.canonical, strategy=AUTO), auto_pool(snapshot))
    if resolution.kind is not NameKind.DEFAULT:
        return units_of(resolution, snapshot)
    pool = resolve_default(
        snapshot, wants_tools=wants_tools, header_provider=header_provider, key_provider=key_provider
    )
    return units_of(resolution, snapshot, pool=pool)


def connected(provider: Provider) -> bool:
    """Whether *provider* can be called at all: it has an account, needs no key, or is an app in this process."""
    return bool(provider.accounts) or provider.keyless or provider.app is not None


def _preferred(snapshot: Snapshot, header: str | None, key: str | None) -> list[str]:
    if header is not None and snapshot.provider(header) is None:
        raise InvalidRequest(f"x-troy-provider: '{shown(header)}' is no configured provider", param="x-troy-provider")
    caller = header if header is not None else key
    return [name for name in (caller, snapshot.default_provider) if name is not None]


def _defaults(providers: Iterable[Provider]) -> list[Candidate]:
    """Return one candidate per provider that has a model to default to, each provider at its first place."""
    found: dict[str, Candidate] = {}
    for provider in providers:
        model = provider.first_model()
        if model is not None and provider.id not in found:
            found[provider.id] = candidate_of(provider, listed(provider, model) or model)
    return list(found.values())
