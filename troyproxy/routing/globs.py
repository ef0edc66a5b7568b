"""Which names a key opens. Globs match canonical names, so that aliases, case and suffixes are no way round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase


def matches(glob: str, name: str) -> bool:
    """Whether *glob* covers *name*: ``*`` and ``?`` cross slashes, everything else is literal, case counts."""
    return fnmatchcase(name, glob.replace("[", "[[]"))


def allowed(globs: Sequence[str], canonical: str) -> bool:
    """Whether a key with *globs* (none = everything) opens *canonical*. ``auto/*`` opens ``auto`` too."""
    spellings = ("auto", "auto/") if canonical == "auto" else (canonical,)
    return not globs or any(matches(glob, spelling) for glob in globs for spelling in spellings)


def pool_limited(globs: Sequence[str], canonical: str, specs: Iterable[str]) -> bool:
    """Whether a key that does not open ``auto…`` or ``default`` itself still opens some of its pool, *specs*.

    Then each member is checked by `allowed` and the others are skipped as ``not-allowed``; else the name is refused.
    """
    pooled = canonical in {"auto", "default"} or canonical.startswith("auto/")
    return pooled and not allowed(globs, canonical) and any(allowed(globs, spec) for spec in specs)
