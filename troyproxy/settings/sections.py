"""The sections of the config file, as shapes over `document`. `DOCUMENT`, at the end, is the file. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from troyproxy.auto.config import BadAuto, read_auto
from troyproxy.catalog import naming
from troyproxy.catalog.combos import STRATEGY_NAMES, Combo, Member
from troyproxy.routing.effort_spelling import BUDGETS
from troyproxy.settings import leak_shapes, leaves
from troyproxy.settings.document import Document, KeyEntry, ProviderEntry
from troyproxy.settings.parsers import PARSERS, Rule
from troyproxy.settings.provider_shapes import MODELS, PROVIDER
from troyproxy.settings.report import Wrong
from troyproxy.settings.shapes import Shape, either, is_mapping, is_text, leaf, listing, mapping, nullable, once, record

TEXT: Final = leaves.text()
MOST_TURNS: Final = 100
"""Of ``config.keep_turns``."""


# --- combos ---------------------------------------------------------------------------------------------------------


def member_of(text: str) -> Member:
    """Return the member that a text means so far: ``combo/<name>`` is a reference, the rest is read later."""
    return Member(combo=text.removeprefix("combo/")) if text.startswith("combo/") else Member(model=text)


def _member(
    *, model: str | None = None, combo: str | None = None, account: str | None = None, weight: float = 1.0
) -> Member:
    if (model is None) == (combo is None):
        raise Wrong("", "needs either model or combo")
    if combo is not None and account is not None:
        raise Wrong("account", "goes with model, not with combo")
    return replace(member_of(model or f"combo/{combo}"), account=account, weight=weight)


MEMBER: Final = either(
    "a spec like openai/gpt-4o, or a mapping of model, account, weight, or of combo",
    (is_text, leaf(lambda v: member_of(_spec(v)), "a spec or a combo's name", {"type": "string"})),
    (
        is_mapping,
        record(
            {
                "model": TEXT,
                "combo": TEXT,
                "account": leaves.named(naming.account_name),
                "weight": leaves.number(0, 1e6),
            },
            _member,
        ),
    ),
)


def _spec(value: object) -> str:
    text = str(value)
    if not text.strip() or not text.isprintable() or len(text) > 500:
        raise ValueError
    return text


def check_config(config: Mapping[str, object]) -> None:
    """Refuse options of a combo that would be read as something else than was meant. Raises Wrong."""
    sticky = config.get("sticky", 1)
    if isinstance(sticky, bool) or not isinstance(sticky, int) or sticky < 1:
        raise Wrong("config.sticky", "allowed: a whole number from 1")
    if not isinstance(config.get("allow_mixed_embeddings", False), bool):
        raise Wrong("config.allow_mixed_embeddings", "allowed: true, false")
    _check_handoff(config)
    if config.get("leak") is not None:
        leak_shapes.check_leak(config["leak"], "config.leak")
    _check_auto(config)


def _check_auto(config: Mapping[str, object]) -> None:
    """Refuse options of the auto engine that cannot be used, all of them at once."""
    try:
        read_auto(config.get("auto"))
    except BadAuto as error:
        (place, message), *others = ((f"config.auto.{path}".rstrip("."), text) for path, text in error.problems)
        raise Wrong(place, message, others) from error


def _check_handoff(config: Mapping[str, object]) -> None:
    """Refuse options of a hand-off that cannot work, whatever the strategy: it may be changed later."""
    model = config.get("handoff_model")
    if model is not None:
        try:
            _spec(model if isinstance(model, str) else "")
        except ValueError:
            raise Wrong("config.handoff_model", "allowed: a model like openai/gpt-4o-mini") from None
    turns = config.get("keep_turns", 1)
    if isinstance(turns, bool) or not isinstance(turns, int) or not 1 <= turns <= MOST_TURNS:
        raise Wrong("config.keep_turns", f"allowed: a whole number from 1 to {MOST_TURNS}")


def _combo(
    *,
    id: str | None = None,  # noqa: A002 -- the key's name in the file
    strategy: str = "fallback",
    members: tuple[Member, ...] = (),
    config: Mapping[str, object] = MappingProxyType({}),
) -> Combo:
    if not members and strategy != "auto":
        raise Wrong("members", "is empty; allowed: at least one member (only strategy auto may do without)")
    check_config(config)
    return Combo(id=id or "", name="", strategy=strategy, members=members, config=config)


COMBO: Final = record(
    {
        "id": leaves.named(naming.slug),
        "strategy": leaves.one_of(*STRATEGY_NAMES),
        "members": listing(MEMBER),
        "config": leaves.FREE,
    },
    _combo,
)

# --- settings, leak, keys -------------------------------------------------------------------------------------------


def spoken(value: object) -> str:
    """Return the text that a YAML value stands for in the environment: booleans are on and off, lists commas."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return ",".join(value)
    if not isinstance(value, str | int | float):
        raise TypeError
    return str(value).strip()


def _setting(rule: Rule) -> Shape[object]:
    def parse(value: object) -> object:
        text = spoken(value)
        # A reference is resolved by the loader, which has the environment.
        return leaves.credential(text) if rule.secret and text.startswith(leaves.ENV) else rule.parse(text)

    return leaf(parse, rule.allowed, {**rule.schema, "description": rule.doc}, hidden=rule.secret)


def _kept(**given: object) -> Mapping[str, object]:
    return MappingProxyType(given)


MOST_THOUGHTS: Final = 1_000_000
"""Tokens of a thinking budget."""


def _budgets(*, budgets: Mapping[str, int] = MappingProxyType({})) -> Mapping[str, int]:
    return budgets


EFFORT: Final = record({"budgets": record(dict.fromkeys(BUDGETS, leaves.whole(1, MOST_THOUGHTS)), _kept)}, _budgets)
SETTINGS: Final = record({name: _setting(rule) for name, rule in PARSERS.items() if rule.in_file}, _kept)


def _limits(**given: float) -> Mapping[str, float]:
    return MappingProxyType(given)


KEY_FIELDS: Final[Mapping[str, Shape[object]]] = {
    "name": leaves.named(naming.key_name),
    "models": listing(TEXT),
    "provider": leaves.named(naming.provider_id),
    "limits": record(
        {
            "requests_per_minute": leaves.number(1),
            "tokens_per_minute": leaves.number(1),
            "budget_usd_per_day": leaves.number(0),
            "budget_usd_per_month": leaves.number(0),
        },
        _limits,
    ),
    "leak": leak_shapes.KEY,
    "expires_at": leaves.MOMENT,
}
"""What a client key has besides its secret, in the file as in the database."""
KEY: Final = record({**KEY_FIELDS, "key": leaves.CLIENT_KEY}, KeyEntry, ["name", "key"])

# --- the file -------------------------------------------------------------------------------------------------------


def _document(**given: object) -> Document:
    document = Document(**given)  # type: ignore[arg-type]  # the shapes of DOCUMENT hold the types of the fields
    once((k.name for k in document.keys), "keys")
    combos = {
        name: replace(combo, name=name, id=combo.id or naming.combo_id(name)) for name, combo in document.combos.items()
    }
    once((naming.same_name(name) for name in combos), "combos")
    once((alias for combo in combos.values() for alias in {combo.id, combo.name}), "combos")
    return replace(document, combos=MappingProxyType(combos))


DOCUMENT: Final = record(
    {
        "providers": mapping(nullable(PROVIDER, ProviderEntry), naming.provider_id),
        "combos": mapping(COMBO, naming.combo_name),
        "settings": SETTINGS,
        "leak": leak_shapes.FILE,
        "effort": EFFORT,
        "models": MODELS,
        "keys": listing(KEY),
    },
    _document,
)
