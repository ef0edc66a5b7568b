"""The virtual pool behind ``auto``: every account of the connected providers with the models that it stands for.

Made anew for each request from the snapshot and kept nowhere. What an account may do now is judged by the plan, so that
it can say for each account why it is out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

from troyproxy.catalog.combos import Combo
from troyproxy.catalog.providers import Account, Provider
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.routing.candidates import Candidate, candidate_of

MOST_MODELS: Final = 50
"""Models of one provider in the pool."""
GLOB: Final = frozenset("*?[")


def auto_pool(snapshot: Snapshot, only: Collection[str] | None = None) -> tuple[Candidate, ...]:
    """Return the pool in file order; *only*: provider ids or aliases to which it is limited."""
    wanted = None if only is None else {found.id for name in only if (found := snapshot.provider(name)) is not None}
    providers = (p for p in snapshot.providers.values() if wanted is None or p.id in wanted)
    every = snapshot.auto_models == "all"
    return tuple(candidate for provider in providers for candidate in _of_provider(provider, every=every))


def pool_of(combo: Combo, snapshot: Snapshot) -> tuple[Candidate, ...]:
    """Return the pool of a stored combo without members: its ``candidatePool``, or everything that is connected."""
    auto = combo.config.get("auto")
    only = auto.get("candidatePool") if isinstance(auto, Mapping) else None
    return auto_pool(snapshot, only if isinstance(only, list | tuple) and only else None)


def unknown_in_pool(combo: Combo, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the names in ``candidatePool`` that mean no configured provider."""
    auto = combo.config.get("auto")
    names = auto.get("candidatePool") if isinstance(auto, Mapping) else None
    given = names if isinstance(names, list | tuple) else ()
    return tuple(name for name in given if isinstance(name, str) and snapshot.provider(name) is None)


def _of_provider(provider: Provider, *, every: bool) -> Iterator[Candidate]:
    if provider.accounts:
        for account in provider.accounts:
            for model in _models(provider, account, every=every):
                yield replace(candidate_of(provider, model, account=account.name), spread=True)
    elif provider.keyless or provider.app is not None:
        for model in _models(provider, None, every=every):
            yield candidate_of(provider, model)


def _models(provider: Provider, account: Account | None, *, every: bool) -> Sequence[str]:
    """Return the ids that an account stands for: its own list, else its default model, or all of the provider's."""
    if account is not None and account.models and (listed := _listed(provider, account.models)):
        return listed[:MOST_MODELS]
    if every and provider.models:
        return tuple(provider.models)[:MOST_MODELS]
    own = account.default_model if account is not None else None
    name = own or provider.first_model()
    return () if name is None else (provider.canonical_model(name) or name,)


def _listed(provider: Provider, globs: Sequence[str]) -> tuple[str, ...]:
    """Return what *globs* stand for: names as they are, patterns by the provider's list."""
    found: dict[str, None] = {}
    for glob in globs:
        if GLOB & set(glob):
            found.update(dict.fromkeys(name for name in provider.models if fnmatchcase(name, glob)))
        else:
            found[provider.canonical_model(glob) or glob] = None
    return tuple(found)
