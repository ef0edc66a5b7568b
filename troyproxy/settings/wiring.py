"""Combos of file, database and caller become one set: members read, rings and clashes found. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from troyproxy.catalog import chains, naming
from troyproxy.catalog.combos import Combo, Member
from troyproxy.catalog.providers import Origin, Provider
from troyproxy.routing.members import has_account
from troyproxy.routing.pool import odd_config, pool_names
from troyproxy.settings.report import Report, below


def known_model(providers: Mapping[str, Provider]) -> Callable[[str], bool]:
    """Return a test for what a member's text may mean as a model: a spec of a provider, or a listed bare name."""
    heads = {alias.lower() for p in providers.values() for alias in (p.id, *p.aliases)}

    def test(text: str) -> bool:
        head, slash, rest = text.partition("/")
        if slash and rest and head.lower() in heads:
            return True
        return any(p.canonical_model(text) is not None for p in providers.values())

    return test


def wire(
    file: Iterable[Combo], stored: Iterable[Combo], providers: Mapping[str, Provider], report: Report
) -> tuple[Combo, ...]:
    """Return the combos that count, file before database, with their members read.

    A stored combo that clashes with one of the file is left out with a warning. What the file gets wrong is a problem,
    what the database gets wrong a warning: it must not keep the gateway from starting.
    """
    chosen = _chosen(file, stored, providers, report)
    names = {c.id: c.name for c in chosen} | {c.name: c.name for c in chosen}
    test = known_model(providers)
    wired = {c.name: replace(c, members=tuple(_read(m, c, names, test, report) for m in c.members)) for c in chosen}
    _check_rings(wired, report)
    heads = {alias.lower(): p for p in providers.values() for alias in (p.id, *p.aliases)}
    for combo in wired.values():
        _warn_of_config(combo, heads, report)
        _warn_of_accounts(combo, heads, report)
    return tuple(wired.values())


def _chosen(
    file: Iterable[Combo], stored: Iterable[Combo], providers: Mapping[str, Provider], report: Report
) -> list[Combo]:
    taken: dict[str, Combo] = {}
    for combo in (*file, *stored):
        forms = {naming.same_name(combo.name), naming.same_name(combo.id)}
        if clash := next((taken[f] for f in forms if f in taken), None):
            report.warn(
                below("combos", combo.name),
                f"the {combo.origin} combo is hidden by the {clash.origin} combo {clash.name}",
            )
            continue
        _check_name(combo, providers.values(), report)
        taken |= dict.fromkeys(forms, combo)
    return list({c.name: c for c in taken.values()}.values())


def _check_name(combo: Combo, providers: Collection[Provider], report: Report) -> None:
    # A provider that the database adds must not make the file wrong: the gateway would not start any more.
    fixed = [p for p in providers if p.origin is not Origin.DATABASE]
    try:
        naming.combo_name(combo.name, providers=_heads(fixed))
    except ValueError as error:
        _say(combo, str(error), report)
        return
    try:
        naming.combo_name(combo.name, providers=_heads(providers))
    except ValueError as error:
        report.warn(below("combos", combo.name), str(error))


def _heads(providers: Iterable[Provider]) -> list[str]:
    return [alias for p in providers for alias in (p.id, *p.aliases)]


def _read(
    member: Member, combo: Combo, names: Mapping[str, str], test: Callable[[str], bool], report: Report
) -> Member:
    found = chains.resolve_member(member, names, test)
    if found is None:
        report.warn(
            below("combos", combo.name), f"the member {member.label} is no known model and no combo; it is skipped"
        )
    return found or member


def _warn_of_config(combo: Combo, heads: Collection[str], report: Report) -> None:
    """Warn of what the combo's config names in vain."""
    lost = (name for name in pool_names(combo) if name.lower() not in heads)
    odd = (*odd_config(combo), *(f"candidatePool: '{name}' is no configured provider and is skipped" for name in lost))
    for message in odd:
        report.warn(below("combos", combo.name), message)


def _warn_of_accounts(combo: Combo, heads: Mapping[str, Provider], report: Report) -> None:
    """Warn of members that are pinned to an account that is not there."""
    for member in combo.members:
        provider = heads.get((member.model or "").partition("/")[0].lower())
        if provider is not None and member.account is not None and not has_account(provider, member.account):
            told = f"the member {member.label} is skipped: {provider.id} has no account {member.account}"
            report.warn(below("combos", combo.name), told)


def _check_rings(combos: Mapping[str, Combo], report: Report) -> None:
    by_file = {name: c for name, c in combos.items() if c.origin is Origin.FILE}
    ring = chains.find_ring(by_file)
    if ring is not None:
        report.wrong(below("combos", ring[0]), f"the combos form a ring: {' → '.join(ring)}")
        return
    if other := chains.find_ring(combos):
        report.warn(below("combos", other[0]), f"the combos form a ring, which is walked once: {' → '.join(other)}")
        return
    for combo in combos.values():
        if (deep := chains.depth(combo.name, combos)) > chains.MAX_DEPTH:
            _say(combo, f"nests {deep} combos deep; allowed: {chains.MAX_DEPTH}", report)


def _say(combo: Combo, message: str, report: Report) -> None:
    if combo.origin is Origin.FILE:
        report.wrong(below("combos", combo.name), message)
    else:
        report.warn(below("combos", combo.name), message)
