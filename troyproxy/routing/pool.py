"""The virtual pool behind ``auto``: every account of the connected providers with the models that it stands for.

Made of the snapshot alone. What an account may do now is judged by the plan, so that it can say for each account why it
is out.
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
CONFIG: Final = ("sticky", "auto", "handoff_model", "keep_turns", "allow_mixed_embeddings", "leak")
"""Keys of a combo's config that mean something."""
GLOB: Final = frozenset("*?[")


def auto_pool(snapshot: Snapshot, only: Collection[str] | None = None) -> tuple[Candidate, ...]:
    """Return the pool in file order; *only*: provider ids or aliases to which it is limited.

    Who stands for no model is in it without one, and so is who was named in *only* and is unknown or not connected:
    they can serve nothing, but a plan can say so.
    """
    wanted = None if only is None else {found.id for name in only if (found := snapshot.provider(name)) is not None}
    providers = (p for p in snapshot.providers.values() if wanted is None or p.id in wanted)
    every = snapshot.auto_models == "all"
    known = (each for p in providers for each in _of_provider(p, every=every, named=wanted is not None))
    lost = (Candidate(name, None, "") for name in only or () if snapshot.provider(name) is None)
    return (*known, *lost)


def pool_of(combo: Combo, snapshot: Snapshot) -> tuple[Candidate, ...]:
    """Return the pool of a stored combo without members: its ``candidatePool``, or everything that is connected."""
    return auto_pool(snapshot, pool_names(combo) or None)


def pool_names(combo: Combo) -> tuple[str, ...]:
    """Return the names in ``candidatePool``."""
    auto = combo.config.get("auto")
    names = auto.get("candidatePool") if isinstance(auto, Mapping) else None
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list | tuple) else ()


def odd_config(combo: Combo) -> Iterator[str]:
    """Yield what stands in the combo's config and means nothing, one sentence each."""
    for name in combo.config:
        if name not in CONFIG:
            yield f"config: '{name}' is unknown and is not looked at; there are: {', '.join(CONFIG)}"
    auto = combo.config.get("auto")
    if isinstance(auto, Mapping):
        if combo.strategy != "auto":
            yield f"config.auto is not looked at: the strategy is {combo.strategy}"
        elif combo.members and auto.get("candidatePool"):
            yield "candidatePool is not looked at: the combo has members, and they are its pool"


def unknown_in_pool(combo: Combo, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the names in ``candidatePool`` that mean no configured provider."""
    return tuple(name for name in pool_names(combo) if snapshot.provider(name) is None)


def _of_provider(provider: Provider, *, every: bool, named: bool) -> Iterator[Candidate]:
    """Yield what a provider stands for. *named*: even when it is not connected."""
    if provider.accounts:
        for account in provider.accounts:
            for model in _models(provider, account, every=every):
                yield replace(_candidate(provider, model, account.name), spread=True)
    elif named or provider.keyless or provider.app is not None:
        for model in _models(provider, None, every=every):
            yield _candidate(provider, model)


def _candidate(provider: Provider, model: str, account: str | None = None) -> Candidate:
    if model:
        return candidate_of(provider, model, account=account)
    return Candidate(provider.id, provider, "", account=account)


def _models(provider: Provider, account: Account | None, *, every: bool) -> Sequence[str]:
    """Return the ids that an account stands for: its own list, else its default model, or all of the provider's.

    An empty one: none is known.
    """
    if account is not None and account.models and (listed := _listed(provider, account.models)):
        return listed[:MOST_MODELS]
    if every and provider.models:
        return tuple(provider.models)[:MOST_MODELS]
    own = account.default_model if account is not None else None
    name = own or provider.first_model()
    return ("",) if name is None else (provider.canonical_model(name) or name,)


def _listed(provider: Provider, globs: Sequence[str]) -> tuple[str, ...]:
    """Return what *globs* stand for: names as they are, patterns by the provider's list."""
    found: dict[str, None] = {}
    for glob in globs:
        if GLOB & set(glob):
            found.update(dict.fromkeys(name for name in provider.models if fnmatchcase(name, glob)))
        else:
            found[provider.canonical_model(glob) or glob] = None
    return tuple(found)
