"""A client key in the words of the admin API and the command line: what may be given, and what is shown.

No secret is read or shown here: the gateway makes them itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import Origin
from troyproxy.errors import ValidationFailed
from troyproxy.settings import leak_shapes, leaves
from troyproxy.settings.report import Report, Wrong
from troyproxy.settings.sections import KEY_FIELDS
from troyproxy.settings.shapes import Shape, record

_T = TypeVar("_T")

READ_ONLY: Final = frozenset(
    {"state", "origin", "read_only", "version", "created_at", "revoked_at", "previous_until", "warnings"}
)
"""Fields of an answer that may come back in a request, and are ignored there."""
MAX_GLOBS: Final = 100
LONGEST_GRACE_S: Final = 30 * 86_400.0


def read_key(raw: Mapping[str, object]) -> Key:
    """Return the settings in *raw* as a key without id and secret. Raises ValidationFailed with every problem."""
    given = {key: value for key, value in raw.items() if key not in READ_ONLY}
    report = Report()
    if "key" in given:
        report.wrong("key", "the gateway makes the secret itself; leave it out")
        del given["key"]
    return _valid(SETTINGS.read(given, "", report), report, "the key")


def read_grace(raw: Mapping[str, object]) -> float:
    """Return the seconds for which an old secret goes on. Raises ValidationFailed."""
    report = Report()
    return _valid(ROTATION.read(dict(raw), "", report), report, "the rotation")


def refuse_id(raw: Mapping[str, object], known: str) -> None:
    """Raise ValidationFailed when *raw* has another id than *known*."""
    if raw.get("id", known) != known:
        raise ValidationFailed("the id of a key stays", details=[{"field": "id", "message": "cannot be changed"}])


def as_written(key: Key, now: float) -> dict[str, object]:
    """Return *key* as it is at *now* (unix seconds), JSON-ready: its settings, and what only answers tell."""
    old_works = len(key.digests(now)) > 1
    return {
        "id": key.id,
        **written_settings(key),
        "state": key.state(now).value,
        "revoked_at": key.revoked_at,
        "previous_until": key.previous_until if old_works else None,
        "origin": key.origin.value,
        "read_only": key.origin is not Origin.DATABASE,
        "version": key.version,
        "created_at": key.created_at,
    }


def written_settings(key: Key) -> dict[str, object]:
    """Return the settings of *key* in the form that `read_key` takes."""
    return {
        "name": key.name,
        "models": list(key.models),
        "provider": key.provider,
        "limits": dict(key.limits),
        "leak": leak_shapes.as_written(key.leak),
        "expires_at": key.expires_at,
    }


def _valid(value: _T | None, report: Report, what: str) -> _T:
    if value is not None and not report.problems:
        return value
    problems = [{"field": place, "message": message} for place, message in report.problems]
    told = "; ".join(f"{place}: {message}" for place, message in report.problems[:5])
    raise ValidationFailed(f"{what} is not valid: {told}", details=problems)


def _built(
    *,
    name: str,
    models: tuple[str, ...] = (),
    provider: str | None = None,
    limits: Mapping[str, float] = MappingProxyType({}),
    leak: Mapping[str, object] = MappingProxyType({}),
    expires_at: float | None = None,
) -> Key:
    if len(models) > MAX_GLOBS:
        raise Wrong("models", f"allowed: at most {MAX_GLOBS} globs")
    return Key(
        id="", name=name, digest=b"", models=models, provider=provider, limits=limits, leak=leak, expires_at=expires_at
    )


def _grace(*, grace_s: float = 0.0) -> float:
    return grace_s


SETTINGS: Final[Shape[Key]] = record(KEY_FIELDS, _built, ("name",))
ROTATION: Final[Shape[float]] = record({"grace_s": leaves.number(0, LONGEST_GRACE_S)}, _grace)
