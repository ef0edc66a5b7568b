"""What the `model` of a request means. Resolved once per request, to a value that says how it was found.

The order, first match wins:

1. reserved: ``auto``, ``auto/<variant>``, ``default``, ``combo/<name>``;
2. a spec ``provider/model``, split at the first slash, when the provider is configured. It always reaches that
   provider, also when a combo has the name behind the slash, and also when the provider does not list the model;
3. a combo by exact name or id (NFC);
4. a name in a configured provider's own list, slashes included (``anthropic/claude-x`` at openrouter);
5. a combo by a unique case-insensitive match;
6. the inference table, for names without a slash.

An effort suffix (``-high``, ``:high``) is looked at before all this gives up: it counts only when the name as written
is in no list and the name without it is. Blanks around a name are ignored. Reserved words ignore case, since nothing
else may be called so. Does not know keys: whether the caller may use the model is `globs`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from troyproxy.catalog.combos import Combo
from troyproxy.catalog.models import EFFORTS
from troyproxy.catalog.providers import Provider
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import InvalidRequest, ModelNotFound, UnknownVariant
from troyproxy.routing import lookup
from troyproxy.routing.inference import infer
from troyproxy.routing.lookup import AUTO_IDS, VARIANTS, Found

MAX_UNLISTED: Final = 512
"""Characters of a name that is sent on though no list has it, so that memory and journal stay bounded."""


class NameKind(StrEnum):
    """What a name turned out to be."""

    SPEC = "spec"
    COMBO = "combo"
    AUTO = "auto"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Resolution:
    """A resolved name."""

    kind: NameKind
    asked: str
    """As the client wrote it."""
    canonical: str
    """The combo's name, ``auto…``, ``default``, or the spec without effort suffix. Key globs match this."""
    provider: Provider | None = None
    model: str | None = None
    """The id to send upstream, aliases resolved."""
    combo: Combo | None = None
    variant: str | None = None
    """What stands behind ``auto/``; None for plain ``auto``."""
    effort: str | None = None
    """The reasoning effort that the name's suffix asks for."""
    how: str = ""
    """One sentence on how the name was found, for explain and the trace."""


def resolve(name: object, snapshot: Snapshot) -> Resolution:
    """Return what the request's `model` value *name* means.

    Raises InvalidRequest when it is missing (None), no string or blank; UnknownVariant for ``auto/…`` that is none of
    the seven ids; ModelNotFound, with up to three near names, when nothing answers to it.
    """
    if not isinstance(name, str) or not name.strip():
        raise InvalidRequest("model: a non-empty string is required", param="model")
    trimmed = name.strip()
    found = _known(trimmed, snapshot) or _without_suffix(trimmed, snapshot) or _unlisted(trimmed, snapshot)
    return replace(found, asked=name)


def _without_suffix(name: str, snapshot: Snapshot) -> Resolution | None:
    cut = max(name.rfind("-"), name.rfind(":"))
    level = name[cut + 1 :]
    if cut < 1 or level not in EFFORTS:
        return None
    found = _known(name[:cut], snapshot)
    if found is None:
        return None
    return replace(found, effort=level, how=f"{found.how}; the suffix asks for effort {level}")


def _known(name: str, snapshot: Snapshot) -> Resolution | None:
    """Return what a list, a combo or a reserved word says of *name*; None when only a guess is left."""
    head, slash, rest = name.partition("/")
    if reserved := _RESERVED.get(f"{head.lower()}{slash}"):
        return reserved(rest, snapshot)
    provider = lookup.spec_provider(head, snapshot) if slash else None
    if provider is not None:
        model = lookup.listed(provider, rest)
        return _spec((provider, model) if model is not None else None, f"provider {provider.id} lists it")
    return (
        _combo(lookup.exact_combo(name, snapshot), "a combo has this name")
        or _spec(lookup.listed_anywhere(name, snapshot), "listed by a configured provider")
        or _combo(lookup.folded_combo(name, snapshot), "one combo has this name but for its case")
        or _spec(lookup.completed(name, snapshot), "inferred, and completed from the catalogue")
    )


def _unlisted(name: str, snapshot: Snapshot) -> Resolution:
    """Return the best guess for a *name* that no list knows. Raises UnknownVariant or ModelNotFound."""
    head, slash, rest = name.partition("/")
    if slash and head.lower() == "auto":
        ids = ", ".join(AUTO_IDS)
        raise UnknownVariant(f"unknown auto variant '{lookup.shown(rest)}'; there are: {ids}", param="model")
    wanted = head if slash else infer(name)
    provider = lookup.spec_provider(wanted, snapshot)
    found = None if provider is None else _spec((provider, rest if slash else name), "not listed, sent as written")
    if found is None or not found.model or len(name) > MAX_UNLISTED:
        raise _not_found(name, snapshot)
    return found


def _not_found(name: str, snapshot: Snapshot) -> ModelNotFound:
    near = lookup.near(name, snapshot)
    hint = f"; near names: {', '.join(near)}" if near else ""
    why = "no configured provider, combo or model answers to it"
    error = ModelNotFound(f"model '{lookup.shown(name)}' not found: {why}{hint}", param="model")
    error.quiet = f"model '{lookup.shown(name)}' not found"
    return error


def _spec(found: Found | None, how: str) -> Resolution | None:
    if found is None:
        return None
    provider, model = found
    spec = f"{provider.id}/{model}"
    return Resolution(NameKind.SPEC, spec, spec, provider=provider, model=model, how=how)


def _combo(combo: Combo | None, how: str) -> Resolution | None:
    return None if combo is None else Resolution(NameKind.COMBO, combo.name, combo.name, combo=combo, how=how)


def _auto(rest: str, _snapshot: Snapshot) -> Resolution | None:
    variant = rest.lower()
    if variant and variant not in VARIANTS:
        return None
    canonical = f"auto/{variant}" if variant else "auto"
    return Resolution(NameKind.AUTO, canonical, canonical, variant=variant or None, how="a reserved name")


def _default(_rest: str, _snapshot: Snapshot) -> Resolution | None:
    return Resolution(NameKind.DEFAULT, "default", "default", how="a reserved name")


def _explicit_combo(rest: str, snapshot: Snapshot) -> Resolution | None:
    return _combo(lookup.find_combo(rest, snapshot), "an explicit combo/<name>")


_RESERVED: Final[dict[str, Callable[[str, Snapshot], Resolution | None]]] = {
    "auto": _auto,
    "auto/": _auto,
    "default": _default,
    "combo/": _explicit_combo,
}
