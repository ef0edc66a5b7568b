"""A model catalogue as it came over the network: checked whole, or refused whole. No fetching, no files.

The format is that of models.dev's ``api.json``: provider id → ``{"models": {id: facts}}``. A shape that is wrong
anywhere refuses all of it. A number that cannot be true is left unknown, and a name that cannot be asked for is left
out, each with a warning: one odd entry among thousands must not keep everybody from new prices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

import msgspec

from troyproxy.catalog.models import Limits, Model, Price
from troyproxy.settings.builtin import Builtin
from troyproxy.settings.catalogue import NOTHING, ByVendor, CatalogueModel, model_of

MAX_BYTES: Final = 8 << 20
"""Of the decompressed JSON; what models.dev serves is a quarter of it."""
MAX_TOKENS: Final = 1_000_000_000
MAX_USD: Final = 100_000.0
"""Per one million tokens."""
MAX_NAME: Final = 200
MAX_WARNINGS: Final = 20


class CatalogueRefused(ValueError):
    """The text is no model catalogue; the message says why."""


class _Listed(msgspec.Struct):
    models: dict[str, CatalogueModel]


@dataclass(frozen=True, slots=True)
class FetchedCatalogue:
    """Models by the catalogue's own provider ids, those of built-in providers only."""

    models: ByVendor = field(default_factory=lambda: NOTHING)
    warnings: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many models it knows."""
        return sum(map(len, self.models.values()))


def read_catalogue(raw: bytes, builtins: Mapping[str, Builtin]) -> FetchedCatalogue:
    """Return the catalogue in *raw*. Raises CatalogueRefused."""
    if len(raw) > MAX_BYTES:
        raise CatalogueRefused(f"it is larger than {MAX_BYTES >> 20} MiB")
    try:
        listed = msgspec.json.decode(raw, type=dict[str, _Listed])
    except msgspec.ValidationError as exc:
        raise CatalogueRefused(f"it has not the shape of models.dev's api.json ({str(exc)[:200]})") from exc
    except (msgspec.DecodeError, RecursionError) as exc:
        raise CatalogueRefused(f"it is not valid JSON ({str(exc)[:200]})") from exc
    reader = _Reader()
    wanted = {builtin.catalogue_id(name) for name, builtin in builtins.items()}
    models = {vendor: reader.models(vendor, entry.models) for vendor, entry in listed.items() if vendor in wanted}
    if not any(models.values()):
        raise CatalogueRefused("it knows no model of a built-in provider")
    return FetchedCatalogue(MappingProxyType(models), reader.told())


class _Reader:
    """Takes entries over, and remembers what was odd."""

    def __init__(self) -> None:
        self._odd: list[str] = []

    def models(self, vendor: str, entries: Mapping[str, CatalogueModel]) -> Mapping[str, Model]:
        found: dict[str, Model] = {}
        for name, entry in entries.items():
            if not name or len(name) > MAX_NAME or not name.isprintable():
                self._odd.append(f"{vendor}: a model is left out, its id is no id")
            else:
                found[name] = self._model(f"{vendor}/{name}", name, entry)
        return MappingProxyType(found)

    def _model(self, spec: str, name: str, entry: CatalogueModel) -> Model:
        limit, cost = entry.limit, entry.cost
        limits = (limit.context, limit.output) if limit is not None else ()
        prices = (cost.input, cost.output, cost.cache_read) if cost is not None else ()
        whole = all(_within(value, MAX_TOKENS) for value in limits)
        priced = all(_within(value, MAX_USD) for value in prices)
        if not whole:
            self._odd.append(f"{spec}: its limits cannot be true and stay unknown")
        if not priced:
            self._odd.append(f"{spec}: its prices cannot be true and stay unknown")
        model = model_of(name, entry if whole else msgspec.structs.replace(entry, limit=None))
        return replace(model, limits=model.limits if whole else Limits(), price=model.price if priced else Price())

    def told(self) -> tuple[str, ...]:
        more = len(self._odd) - MAX_WARNINGS
        return (*self._odd[:MAX_WARNINGS], *((f"and {more} more like these",) if more > 0 else ()))


def _within(value: float | None, most: float) -> bool:
    return value is None or 0 <= value <= most
