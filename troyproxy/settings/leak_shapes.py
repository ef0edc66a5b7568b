"""How the leak guard is configured: the mode and the finer options, wherever they may stand, as shapes. No I/O.

settings.leak           the mode
leak                    the options
providers.X.leak        the mode, or a mapping of mode and options
combos.X.config.leak    the same
keys[N].leak            a mapping of mode, locked and options
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from troyproxy.leaks.modes import LeakMode
from troyproxy.leaks.options import Exhausted, Scope, Strictness, Unrepairable, Validate
from troyproxy.settings import leaves
from troyproxy.settings.report import Report, Wrong
from troyproxy.settings.shapes import Shape, either, is_list, is_mapping, listing, record

FORMATS: Final = (*(f"F{number:02}" for number in range(1, 48)), "orphan", "extra")
"""The ids of the table of formats; closers without an opener; the operator's own openers."""
LONGEST: Final = 1 << 20
"""Characters that the largest limit may have."""
MODE: Final = leaves.one_of(*map(str, LeakMode))
_SCOPE: Final = leaves.one_of(*map(str, Scope))
_TEXTS: Final = listing(leaves.text())


def _kept(**given: object) -> Mapping[str, object]:
    return MappingProxyType(given)


def _is_word(value: object) -> bool:
    """Whether *value* is one word of the file; YAML reads a bare ``off`` as false."""
    return isinstance(value, str | bool)


_ALL: Final[Shape[object]] = leaves.one_of("all")
_LIST: Final[Shape[object]] = listing(leaves.one_of(*FORMATS))
OPTIONS: Final[Mapping[str, Shape[object]]] = {
    "on_unrepairable": leaves.one_of(*map(str, Unrepairable)),
    "on_exhausted": leaves.one_of(*map(str, Exhausted)),
    "strictness": leaves.one_of(*map(str, Strictness)),
    "scope": _SCOPE,
    "formats": either("all, or a list of ids F01 to F47, orphan, extra", (_is_word, _ALL), (is_list, _LIST)),
    "extra_openers": _TEXTS,
    "echo_check": leaves.FLAG,
    "orphan_closers": leaves.FLAG,
    "scrub_when_none": leaves.FLAG,
    "scrub_with_history": leaves.FLAG,
    "coerce": leaves.FLAG,
    "validate": leaves.one_of(*map(str, Validate)),
    "limits": record({name: leaves.whole(64, LONGEST) for name in ("header", "whole", "call")}, _kept),
    "repair_scope": _SCOPE,
    "repair_exclude": _TEXTS,
}
"""What may be said of the guard besides its mode."""

FILE: Final = record(OPTIONS, _kept)
KEY: Final = record({"mode": MODE, "locked": leaves.FLAG, **OPTIONS}, _kept)
_BLOCK: Final[Shape[object]] = record({"mode": MODE, **OPTIONS}, _kept)
_MODE: Final[Shape[object]] = MODE
LEAK: Final[Shape[object]] = either(
    f"{' or '.join(LeakMode)}, or a mapping of mode and options", (_is_word, _MODE), (is_mapping, _BLOCK)
)
"""Of a provider or a combo."""


def as_written(value: object) -> object:
    """Return what was read by a shape of this page as plain JSON values again."""
    if isinstance(value, Mapping):
        return {name: as_written(inner) for name, inner in value.items()}
    return [as_written(inner) for inner in value] if isinstance(value, tuple) else value


def check_leak(value: object, path: str) -> None:
    """Refuse what `LEAK` does not take, of a mapping that is kept as it was written. Raises Wrong."""
    report = Report()
    LEAK.read(dict(value) if isinstance(value, Mapping) else value, path, report)
    if report.problems:
        (place, message), *others = report.problems
        raise Wrong(place, message, others)
