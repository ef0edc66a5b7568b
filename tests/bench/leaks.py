"""What the leak guard's scanner costs while it is armed, as a multiple of decoding the same event.

    python -m tests.bench.leaks [--rounds N] [--json]

Every event of an answer is decoded with msgspec, and its text fed to a scanner; processor time, in this process, the
best of the rounds. The answers are ordinary ones: prose, Markdown about tools, source code, HTML, nothing but tags,
reasoning and a leak.
About two seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from troyproxy.leaks.asked import Asked
from troyproxy.leaks.scanner import Scanner

MOST_RATIO: Final = 4.0
"""What scanning an event may cost, in decodings of it."""
EVENTS: Final = 5_000
SIZE: Final = 4  # characters in an event's text
ASKED: Final = Asked(names=frozenset({"get_weather", "dim_lamp", "open", "list", "print"}))
_ROOT: Final = Path(__file__).parent.parent.parent
_ENVELOPE: Final = {
    "id": "chatcmpl-9f8e7d6c5b4a39281706",
    "object": "chat.completion.chunk",
    "created": 1_760_000_000,
    "model": "alpha/m1",
    "system_fingerprint": "fp_0123456789",
}
_TAGS: Final = '<tr><td><b>a</b></td><td><i>b</i></td></tr>\n<p><a href="#">x</a><br><em>y</em></p>\n'
_HTML: Final = '<ul class="lamps">\n  <li><a href="/lamps/3">The hall</a>, dimmed</li>\n  <li>The attic</li>\n</ul>\n'


@dataclass(frozen=True, slots=True)
class Scanned:
    """One kind of answer; microseconds of processor time for each event."""

    answer: str
    decode_us: float
    scan_us: float

    @property
    def ratio(self) -> float:
        """Scanning over decoding."""
        return self.scan_us / self.decode_us

    def as_json(self) -> dict[str, object]:
        """Return it for `json.dumps`."""
        return {**asdict(self), "ratio": self.ratio}


def answers() -> dict[str, str]:
    """Return a text of each kind, long enough for all events."""
    readme = (_ROOT / "README.md").read_text(encoding="utf-8")
    source = Path(__file__).read_text(encoding="utf-8")
    prose = "The lamp in the hall is dimmed now. It was at ninety, which is more than you like in the evening.\n"
    texts = {
        "prose": prose,
        "markdown": readme,
        "code": source,
        "html": _HTML,
        "tags": _TAGS,
        "thinking": "<think>" + prose * 900,
        "leak": '<function=dim_lamp>{"id": "' + "x" * EVENTS * SIZE,
    }
    return {name: (text * (EVENTS * SIZE // len(text) + 1))[: EVENTS * SIZE] for name, text in texts.items()}


def bench(rounds: int) -> tuple[Scanned, ...]:
    """Return the best of *rounds*, for each kind of answer."""
    return tuple(_scanned(name, text, rounds) for name, text in answers().items())


def _scanned(name: str, text: str, rounds: int) -> Scanned:
    pieces = [text[at : at + SIZE] for at in range(0, len(text), SIZE)]
    events = [msgspec.json.encode(_event(piece)) for piece in pieces]
    decoder = msgspec.json.Decoder()
    decode = min(_each_us(decoder.decode, events) for _ in range(rounds))
    scan = min(_each_us(Scanner(ASKED).feed, pieces) for _ in range(rounds))
    return Scanned(name, decode, scan)


def _event(piece: str) -> dict[str, object]:
    return {**_ENVELOPE, "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}


def _each_us(work: Callable[[Any], object], items: list[Any]) -> float:
    began = time.process_time()
    for item in items:
        work(item)
    return (time.process_time() - began) / len(items) * 1e6


def table(rows: tuple[Scanned, ...]) -> str:
    """Return it for a terminal."""
    lines = [f"{'leak guard':<12}{'answer':>12}{'decode µs':>12}{'scan µs':>12}{'ratio':>8}"]
    lines += [f"{'':<12}{row.answer:>12}{row.decode_us:>12.2f}{row.scan_us:>12.2f}{row.ratio:>8.2f}" for row in rows]
    lines.append(f"an event of {SIZE} characters, a scanner for each answer; at most {MOST_RATIO:.0f} decodings")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.leaks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    options = parser.parse_args()
    rows = bench(options.rounds)
    told = [row.as_json() for row in rows]
    sys.stdout.write((json.dumps(told, indent=2) if options.json else table(rows)) + "\n")


if __name__ == "__main__":
    main()
