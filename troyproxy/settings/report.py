"""What is wrong with a configuration, collected so that all of it is said at once. Values are shown only where safe."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from troyproxy.errors import ConfigError

_SHOWN: Final = 60
"""Characters of a value that an error shows."""

_KINDS: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (type(None), "nothing"),
    (bool, "on/off"),
    ((int, float), "a number"),
    (str, "a text"),
    (list, "a list"),
    (dict, "a mapping"),
)


class Wrong(ValueError):
    """Raised by a builder: *place* (below the current path, perhaps empty) and what is wrong there.

    *others* are further problems, (place, message) each.
    """

    def __init__(self, place: str, message: str, others: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.place = place
        self.problems = ((place, message), *others)


def kind(value: object) -> str:
    """Return what sort of value this is, without showing it."""
    return next((name for types, name in _KINDS if isinstance(value, types)), "a date")


def shown(value: object) -> str:
    """Return a scalar as an error shows it, shortened; of a list or mapping only its kind (secrets)."""
    if isinstance(value, list | dict) or value is None:
        return kind(value)
    text = value if isinstance(value, str) else str(value)
    return json.dumps(text[:_SHOWN] + ("…" if len(text) > _SHOWN else ""), ensure_ascii=False)


def below(path: str, key: str | int) -> str:
    """Return the path of *key* below *path*: ``a.b``, ``a[0]`` or ``a["b/c"]``."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if re.fullmatch(r"[\w-]+", key):
        return f"{path}.{key}" if path else key
    return f"{path}[{json.dumps(key[:_SHOWN], ensure_ascii=False)}]"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint that names the nearest known name, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]}?)" if close else ""


@dataclass(slots=True)
class Report:
    """Problems stop the start, warnings do not. Both name a place."""

    problems: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    file: str = ""
    """Where the places of the problems lie that are found from now on; empty: they are variables."""
    _files: list[str] = field(default_factory=list)

    def wrong(self, place: str, message: str) -> None:
        """Add a problem."""
        self.problems.append((place, message))
        self._files.append(self.file)

    def warn(self, place: str, message: str) -> None:
        """Add a warning."""
        self.warnings.append(f"{place}: {message}")

    def check(self, source: str = "configuration") -> None:
        """Raise one ConfigError that says everything, if there is a problem."""
        if not self.problems:
            return
        files = set(self._files)
        source = files.pop() or source if len(files) == 1 else source
        alone = len(self.problems) == 1
        lines = [
            self._line(place, message, source, file if alone or file != source else "")
            for (place, message), file in zip(self.problems, self._files, strict=True)
        ]
        heading = lines[0] if alone else f"{source}: {len(lines)} problems"
        details = [{"field": place, "message": message} for place, message in self.problems]
        raise ConfigError("\n  ".join([heading, *(lines if len(lines) > 1 else ())]), details=details)

    @staticmethod
    def _line(place: str, message: str, source: str, file: str) -> str:
        where = place or (source if not file else "")
        return ": ".join(part for part in (file, where, message) if part)
