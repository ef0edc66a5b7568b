"""Finding things by name in a snapshot: listed models, combos, near names. Decides no precedence; `names` does."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterator
from typing import Final

from troyproxy.catalog.combos import Combo
from troyproxy.catalog.providers import Provider
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.routing.inference import VENDOR_PREFIXED, infer

VARIANTS: Final = ("coding", "fast", "cheap", "offline", "smart", "lkgp")
"""What may stand behind ``auto/``."""

AUTO_IDS: Final = ("auto", *(f"auto/{variant}" for variant in VARIANTS))
"""The seven ids of the auto engine."""

_LONGEST_NAME: Final = 256
"""No provider, alias or combo is longer; longer client input is not folded, compared or searched."""

_SHOWN: Final = 200
"""How much of a client's name an error repeats."""

Found = tuple[Provider, str]
"""A provider and the model id to send to it."""


def spec_provider(head: str, snapshot: Snapshot) -> Provider | None:
    """Return the configured provider that *head*, what stands before the first ``/``, means."""
    return snapshot.provider(head) if len(head) <= _LONGEST_NAME else None


def listed(provider: Provider, name: str) -> str | None:
    """Return the id under which *provider* lists *name*.

    A vendor that lists its own models under its own name (``openrouter/auto`` at openrouter) is understood when the
    spec carries that name once only.
    """
    return provider.canonical_model(name) or provider.canonical_model(f"{provider.id}/{name}")


def listed_anywhere(name: str, snapshot: Snapshot) -> Found | None:
    """Return the configured provider that lists *name*: of several the inferred one, else the first in file order."""
    found = [(p, model) for p in snapshot.providers.values() if (model := p.canonical_model(name)) is not None]
    inferred = snapshot.provider(infer(name))
    return next((hit for hit in found if hit[0] is inferred), found[0] if found else None)


def completed(name: str, snapshot: Snapshot) -> Found | None:
    """Return the unique catalogue id that ends in ``/name``, when inference says the vendor-prefixed provider."""
    provider = snapshot.provider(VENDOR_PREFIXED)
    if provider is None or "/" in name or infer(name) != VENDOR_PREFIXED:
        return None
    catalogue = provider.models or snapshot.catalog.get(provider.id, {})
    ids = [model for model in catalogue if model.endswith(f"/{name}")]
    return (provider, ids[0]) if len(ids) == 1 else None


def exact_combo(name: str, snapshot: Snapshot) -> Combo | None:
    """Return the combo with this name or id; names that are equal after NFC are one name."""
    return snapshot.combo(unicodedata.normalize("NFC", name)) if len(name) <= _LONGEST_NAME else None


def folded_combo(name: str, snapshot: Snapshot) -> Combo | None:
    """Return the one combo whose name or id differs from *name* by case only; None when there are several."""
    if len(name) > _LONGEST_NAME:
        return None
    wanted = _folded(name)
    matches = [c for c in snapshot.combos.values() if wanted in {_folded(c.name), _folded(c.id)}]
    return matches[0] if len(matches) == 1 else None


def find_model(name: str, snapshot: Snapshot) -> Found | None:
    """Return the model that a member's *name* means: a configured provider's spec, or a bare name that is listed.

    A spec counts even when its provider does not list the model, since catalogues lag; a guess never does.
    """
    head, slash, rest = name.partition("/")
    provider = spec_provider(head, snapshot) if slash and rest else None
    if provider is not None:
        return provider, listed(provider, rest) or rest
    return listed_anywhere(name, snapshot) or completed(name, snapshot)


def find_combo(name: str, snapshot: Snapshot) -> Combo | None:
    """Return the combo that a member's *name* refers to, with or without ``combo/`` before it."""
    bare = name.removeprefix("combo/")
    return exact_combo(bare, snapshot) or folded_combo(bare, snapshot)


def near(name: str, snapshot: Snapshot) -> list[str]:
    """Return up to three names that exist and look like *name*."""
    if len(name) > _LONGEST_NAME:
        return []
    return difflib.get_close_matches(name, sorted(set(_names(snapshot, specs="/" in name))), n=3)


def shown(name: str) -> str:
    """Return *name* as an error may repeat it: at most 200 characters, lone surrogates replaced."""
    cut = name if len(name) <= _SHOWN else name[:_SHOWN] + "…"
    return cut.encode("utf-8", "replace").decode("utf-8")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _names(snapshot: Snapshot, *, specs: bool) -> Iterator[str]:
    yield from snapshot.combos
    yield from AUTO_IDS
    for provider in snapshot.providers.values():
        yield from (f"{provider.id}/{model}" if specs else model for model in provider.models)
