"""How models, accounts and providers stand in the config file, as shapes over `document`. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from troyproxy.auto.fitness import Task
from troyproxy.auto.tiers import EconomicTier
from troyproxy.catalog import naming
from troyproxy.catalog.models import EFFORTS, Price, ToolCalls
from troyproxy.catalog.providers import BEARER, NO_AUTH, X_API_KEY, Auth, EffortSpelling, Timeouts
from troyproxy.settings import leaves
from troyproxy.settings.document import AcceptsEntry, AccountEntry, ModelEntry, ProviderEntry
from troyproxy.settings.leak_shapes import LEAK
from troyproxy.settings.report import Wrong
from troyproxy.settings.shapes import (
    Shape,
    either,
    is_list,
    is_mapping,
    is_text,
    leaf,
    listing,
    mapping,
    nullable,
    once,
    record,
)

TEXT: Final = leaves.text()


# --- models ---------------------------------------------------------------------------------------------------------


def _fitness(**given: float) -> Mapping[str, float]:
    return MappingProxyType(given)


PRICE: Final = record({k: leaves.number(0) for k in ("input", "output", "cached")}, Price)
MODEL: Final = record(
    {
        **dict.fromkeys(("tools", "vision", "reasoning", "json", "audio"), leaves.FLAG),
        "context": leaves.whole(1),
        "output": leaves.whole(1),
        "price": PRICE,
        "tool_calls": leaf(lambda v: ToolCalls(str(v)), "reliable or drifts", {"enum": [*ToolCalls]}),
        "efforts": listing(leaves.one_of(*EFFORTS)),
        "tier": leaves.one_of(*EconomicTier),
        "fitness": record(dict.fromkeys(Task, leaves.number(0, 1)), _fitness),
        "aliases": listing(TEXT),
        "no_sampling_with_effort": leaves.FLAG,
        "no_effort": leaves.FLAG,
    },
    ModelEntry,
)
MODELS: Final = mapping(nullable(MODEL, ModelEntry), leaves.printable)


def _names_only(names: Iterable[str]) -> Mapping[str, ModelEntry]:
    return MappingProxyType({name: ModelEntry() for name in names})


def _listed_models() -> Shape[Mapping[str, ModelEntry]]:
    names = listing(TEXT)
    listed: Shape[Mapping[str, ModelEntry]] = Shape(
        lambda v, p, r: _names_only(names.read(v, p, r) or ()), names.schema
    )
    return either("a mapping of models, or a list of their names", (is_list, listed), (is_mapping, MODELS))


# --- providers ------------------------------------------------------------------------------------------------------

_AUTH_WORDS: Final[Mapping[str, Auth]] = {"bearer": BEARER, "x-api-key": X_API_KEY, "none": NO_AUTH}


def _auth_word(value: object) -> Auth:
    if not isinstance(value, str) or value not in _AUTH_WORDS:
        raise ValueError
    return _AUTH_WORDS[value]


def _auth_header(*, header: str) -> Auth:
    return Auth(header, "")


AUTH: Final = either(
    "bearer, x-api-key, none or {header: name}",
    (is_text, leaf(_auth_word, ", ".join(_AUTH_WORDS), {"enum": [*_AUTH_WORDS]})),
    (is_mapping, record({"header": leaves.named(leaves.header_name)}, _auth_header, ["header"])),
)
_PER: Final = ("minute", "hour", "day", "month")


def _quota(**given: object) -> Mapping[str, object]:
    if not {"requests", "tokens", "usd"} & given.keys():
        raise Wrong("", "needs requests, tokens or usd")
    return MappingProxyType(given)


QUOTA: Final = record(
    {
        "requests": leaves.whole(1),
        "tokens": leaves.whole(1),
        "usd": leaves.number(0.000_001),
        "per": leaves.one_of(*_PER),
    },
    _quota,
    ["per"],
)
ACCOUNT_FIELDS: Final[Mapping[str, Shape[object]]] = {
    "name": leaves.named(naming.account_name),
    "api_key": leaves.CREDENTIAL,
    "models": listing(TEXT),
    "default_model": TEXT,
    "tier": TEXT,
    "priority": leaves.whole(-1_000_000, 1_000_000),
    "quota": QUOTA,
    "quota_reset_interval_s": leaves.number(1),
    "max_inflight": leaves.whole(1),
    "token_expires_at": leaves.MOMENT,
    "active": leaves.FLAG,
}
ACCOUNT: Final = record(ACCOUNT_FIELDS, AccountEntry, ["name"])


def _provider(**given: object) -> ProviderEntry:
    entry = ProviderEntry(**given)  # type: ignore[arg-type]  # the shapes of PROVIDER hold the types of the fields
    if entry.base_url is not None and entry.app is not None:
        raise Wrong("app", "stands beside base_url; allowed: one of them")
    once((a.name for a in entry.accounts), "accounts")
    return entry


ACCEPTS: Final = record(
    {
        "stream_options": leaves.FLAG,
        "effort": leaf(lambda v: EffortSpelling(str(v)), " or ".join(EffortSpelling), {"enum": [*EffortSpelling]}),
    },
    AcceptsEntry,
)
PROVIDER_FIELDS: Final[Mapping[str, Shape[object]]] = {
    "base_url": leaves.BASE_URL,
    "app": leaves.APP,
    "aliases": listing(leaves.named(naming.provider_id)),
    "auth": AUTH,
    "headers": mapping(leaves.HEADER_VALUE, leaves.header_name),
    "query": mapping(leaves.HEADER_VALUE, leaves.printable),
    "ca_file": TEXT,
    "proxy": leaves.PROXY,
    "timeouts": record(
        {f"{k}_s": leaves.number(0.001, 86_400) for k in ("connect", "first_byte", "first_output", "idle", "total")},
        Timeouts,
    ),
    "max_inflight": leaves.whole(1),
    "leak": LEAK,
    "accepts": ACCEPTS,
    "default_model": TEXT,
    "models": _listed_models(),
    "accounts": listing(ACCOUNT),
}
PROVIDER: Final = record(PROVIDER_FIELDS, _provider)
