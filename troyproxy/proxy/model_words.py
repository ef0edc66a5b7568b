"""What is known of a model, in the words of the config file: read from them, and written in them again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from troyproxy.catalog import naming
from troyproxy.catalog.models import Model
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import ValidationFailed
from troyproxy.settings.provider_shapes import MODEL
from troyproxy.settings.report import Report

FLAGS: Final = ("tools", "vision", "reasoning", "json", "audio")
READ_ONLY: Final = ("provider", "model", "effective", "overridden", "origin", "read_only", "version", "warnings")
"""Fields of an answer that may come back in a request, and are ignored there."""
MAX_ALIASES: Final = 100
LONGEST_SPEC: Final = 500


def read_spec(value: object, snapshot: Snapshot) -> str:
    """Return the spec that *value* spells: the provider's id, and the id of the model where it is listed.

    Raises ValidationFailed for what can be no ``provider/model``. The provider need not be configured yet.
    """
    if not isinstance(value, str) or not (value.isprintable() and len(value) <= LONGEST_SPEC):
        raise _refused([("id", "is required: provider/model, printable, at most 500 characters")])
    head, _, name = value.partition("/")
    if not name or name != name.strip():
        raise _refused([("id", "is no provider/model")])
    provider = snapshot.provider(head)
    if provider is not None:
        return f"{provider.id}/{provider.canonical_model(name) or name}"
    try:
        return f"{naming.provider_id(head)}/{name}"
    except ValueError as error:
        raise _refused([("id", str(error))]) from error


def read_model(raw: Mapping[str, object], spec: str) -> Model:
    """Return what *raw* says of the model *spec*. Raises ValidationFailed with every problem in its details."""
    report = Report()
    entry = MODEL.read({key: value for key, value in raw.items() if key not in (*READ_ONLY, "id")}, "", report)
    if entry is not None and len(entry.aliases) > MAX_ALIASES:
        report.wrong("aliases", f"allowed: at most {MAX_ALIASES}")
    if entry is None or report.problems:
        raise _refused(report.problems)
    return entry.model(spec.partition("/")[2])


def written(model: Model) -> dict[str, object]:
    """Return *model* in the form that `read_model` takes; null: unknown."""
    price, limits = model.price, model.limits
    return {
        **{name: getattr(model.capabilities, name) for name in FLAGS},
        "context": limits.context,
        "output": limits.output,
        "price": {"input": price.input, "output": price.output, "cached": price.cached},
        "tool_calls": model.tool_calls,
        "efforts": list(model.efforts),
        "aliases": list(model.aliases),
        "tier": model.tier,
        "fitness": dict(model.fitness),
        "no_sampling_with_effort": model.no_sampling_with_effort,
        "no_effort": model.no_effort,
    }


def _refused(problems: list[tuple[str, str]]) -> ValidationFailed:
    told = "; ".join(f"{place}: {message}" for place, message in problems[:5])
    details = [{"field": place, "message": message} for place, message in problems]
    return ValidationFailed(f"the override is not valid: {told}", details=details)
