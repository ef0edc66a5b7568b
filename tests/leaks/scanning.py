"""Runs a scanner over a text in pieces, and cuts texts into them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Final

from tests.leaks.corpus import LAMP, VECTORS
from troyproxy.leaks.asked import Asked, Inputs
from troyproxy.leaks.options import Options
from troyproxy.leaks.scanner import Evidence, Scanner

DEFAULT: Final = Options()
LAMP_ASKED: Final = Asked(names=LAMP)
GENERIC: Final = Asked(names=frozenset({"open", "list", "print", "dim_lamp"}))
"""Tools whose names are everyday words."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a text: the leak, and how many characters were released at the end."""

    leak: Evidence | None
    released: int


def run(
    pieces: Iterable[str], asked: Asked = LAMP_ASKED, options: Options = DEFAULT, *, structured: bool = False
) -> Seen:
    """Feed *pieces*; what is released may only grow, and never beyond what was fed."""
    scanner, before, fed = Scanner(asked, options), 0, 0
    for piece in pieces:
        released = scanner.feed(piece)
        fed += len(piece)
        assert before <= released <= fed
        before = released
    released = scanner.finish(structured=structured)
    assert before <= released <= fed
    return Seen(scanner.leak, released)


def whole(text: str, asked: Asked = LAMP_ASKED, options: Options = DEFAULT, *, structured: bool = False) -> Seen:
    """Feed *text* in one piece."""
    return run([text], asked, options, structured=structured)


def leak(text: str, asked: Asked = LAMP_ASKED, options: Options = DEFAULT, *, structured: bool = False) -> str | None:
    """Return the format of the leak in *text*; None when it is clean, and then all of it was released."""
    seen = whole(text, asked, options, structured=structured)
    assert seen.leak or seen.released == len(text)
    return seen.leak.format if seen.leak else None


def cut(text: str, places: Iterable[int]) -> list[str]:
    """Return the pieces between *places*; the same place twice gives an empty piece."""
    return [text[a:b] for a, b in pairwise([0, *sorted(places), len(text)])]


def cuts(text: str, count: int, seed: int = 7) -> Iterator[list[str]]:
    """Yield *count* ways to cut *text* at random places."""
    rng = Random(f"{seed} {text}")
    for _ in range(count):
        yield cut(text, (rng.randint(0, len(text)) for _ in range(rng.randint(1, 14))))


def quoting(*texts: str) -> Asked:
    """Return a request with the lamp, whose user said *texts*."""
    return Asked(names=LAMP, inputs=Inputs({"messages": [{"role": "user", "content": text} for text in texts]}))


@dataclass(frozen=True, slots=True)
class Clean:
    """A text in which nothing is a leak. One whose id begins with ``mention:`` shows a whole call, and explains it."""

    id: str
    text: str

    @property
    def mentions(self) -> bool:
        """Whether it may be cut so that it ends in a call, which nobody can tell from a leak."""
        return self.id.startswith("mention:")


_LINES: Final = (Path(__file__).parent / "clean.jsonl").read_text(encoding="utf-8").split("\n")
CLEAN: Final = [Clean(**json.loads(line)) for line in _LINES if line]
ARMED: Final = [vector for vector in VECTORS if vector.tools]
