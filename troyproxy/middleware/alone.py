"""The catalogue of a layer that stands alone: the app behind it is the only provider, *models* is its list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from troyproxy.catalog.models import EFFORTS, Capabilities, Limits, Model
from troyproxy.catalog.providers import NO_AUTH, Provider
from troyproxy.catalog.snapshot import Snapshot, build
from troyproxy.errors import ConfigError
from troyproxy.routing.members import Candidate, candidate_of

APP: Final = "app"
NO_SAMPLING: Final = "no_sampling_with_effort"
CAPABILITIES: Final = ("tools", "vision", "reasoning", "json", "audio")
KNOWN: Final = frozenset({*CAPABILITIES, "context", "output", "efforts", "aliases", "no_effort", NO_SAMPLING})

Models = Mapping[str, Mapping[str, object]]
"""Model id → what is known of it, spelled as in the config file: ``{"reasoning": True, "context": 131072}``."""


def snapshot_of(models: Models, default_effort: str | None = None) -> Snapshot:
    """Return the snapshot of an app that serves *models*. Raises ConfigError for a fact or effort that is none."""
    if default_effort is not None and default_effort not in EFFORTS:
        raise ConfigError(f"default_effort: {default_effort!r} is unknown; allowed: {', '.join(EFFORTS)}")
    listed = {name: model_of(name, facts) for name, facts in models.items()}
    return build([Provider(id=APP, auth=NO_AUTH, models=listed, app="inner")], default_effort=default_effort)


def model_of(name: str, facts: Mapping[str, object]) -> Model:
    """Return one model from its *facts*."""
    if unknown := facts.keys() - KNOWN:
        raise ConfigError(f"models.{name}: unknown {', '.join(sorted(unknown))}; allowed: {', '.join(sorted(KNOWN))}")
    return Model(
        id=name,
        capabilities=Capabilities(**{key: _flag(name, key, facts.get(key)) for key in CAPABILITIES}),
        limits=Limits(_count(name, "context", facts.get("context")), _count(name, "output", facts.get("output"))),
        efforts=_texts(facts.get("efforts")),
        aliases=_texts(facts.get("aliases")),
        no_effort=_flag(name, "no_effort", facts.get("no_effort")) is True,
        no_sampling_with_effort=_flag(name, NO_SAMPLING, facts.get(NO_SAMPLING)) is True,
    )


def named(provider: Provider, asked: str) -> tuple[str | None, str | None]:
    """Return the listed id that *asked* means, and the effort that its suffix (``-high``, ``:high``) asks for.

    None is an unlisted name. A suffix counts only when the name as written is in no list and the name without it is.
    """
    if (listed := provider.canonical_model(asked)) is not None:
        return listed, None
    cut = max(asked.rfind("-"), asked.rfind(":"))
    level = asked[cut + 1 :]
    listed = provider.canonical_model(asked[:cut]) if cut > 0 and level in EFFORTS else None
    return listed, level if listed is not None else None


def candidate(snapshot: Snapshot, model: str) -> Candidate:
    """Return the app as a candidate for *model*."""
    return candidate_of(snapshot.providers[APP], model)


def _flag(name: str, key: str, value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise ConfigError(f"models.{name}.{key}: {value!r} is not true or false")


def _count(name: str, key: str, value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value or None
    raise ConfigError(f"models.{name}.{key}: {value!r} is not a number of tokens")


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list | tuple) else ()
