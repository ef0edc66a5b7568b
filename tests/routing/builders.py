"""Small snapshots for the routing tests."""

from __future__ import annotations

from collections.abc import Mapping

from troyproxy.catalog.combos import Combo, Member
from troyproxy.catalog.models import Capabilities, Limits, Model, ToolCalls
from troyproxy.catalog.providers import Account, Provider
from troyproxy.catalog.snapshot import Snapshot, build
from troyproxy.routing.members import Candidate, candidate_of


def model(
    name: str,
    *,
    context: int | None = None,
    output: int | None = None,
    aliases: tuple[str, ...] = (),
    drifts: bool = False,
    **capabilities: bool | None,
) -> Model:
    """A model with the given facts; everything else is unknown."""
    calls = ToolCalls.DRIFTS if drifts else None
    return Model(name, Capabilities(**capabilities), Limits(context, output), tool_calls=calls, aliases=aliases)


def provider(
    name: str,
    *models: Model | str,
    aliases: tuple[str, ...] = (),
    accounts: int = 1,
    default_model: str | None = None,
) -> Provider:
    """A provider with a list of models and some accounts."""
    known = [m if isinstance(m, Model) else model(m) for m in models]
    made = tuple(Account(f"{name}#{i}", name, f"acc-{i}") for i in range(accounts))
    return Provider(name, aliases=aliases, models={m.id: m for m in known}, accounts=made, default_model=default_model)


def combo(
    name: str, *members: str | Member, strategy: str = "fallback", config: Mapping[str, object] | None = None
) -> Combo:
    """A combo of string members (``combo:x`` refers to a combo) or full ones."""
    return Combo(f"id-{name}", name, strategy, tuple(map(member, members)), config or {})


def member(written: str | Member) -> Member:
    """A member from its short spelling."""
    if isinstance(written, Member):
        return written
    return Member(combo=written[6:]) if written.startswith("combo:") else Member(model=written)


def snapshot(*parts: Provider | Combo, default_provider: str | None = None) -> Snapshot:
    """A snapshot of providers and combos."""
    return build(
        [p for p in parts if isinstance(p, Provider)],
        [p for p in parts if isinstance(p, Combo)],
        default_provider=default_provider,
    )


def candidate(facts: Model, *, at: Provider | None = None) -> Candidate:
    """A candidate for *facts* at a provider that lists it."""
    return candidate_of(at or provider("alpha", facts), facts.id)
