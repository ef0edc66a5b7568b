"""Fuzzes the leak guard's reading: scanner, scrub and repair, with texts made of markers, names and odd characters.

    python -m pip install atheris
    python -m tests.fuzz_leaks -max_total_time=600

Options are libFuzzer's. A finding is an exception: something raised, a verdict that depends on how a text was cut, or
a character of a clean text that was lost. `tests/leaks/test_scanning_properties.py` runs the same checks briefly.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Final

from tests.leaks.corpus import EXAMPLES
from tests.leaks.scanning import CLEAN, DEFAULT, Seen, cut, run
from troyproxy.leaks.asked import Asked, Inputs
from troyproxy.leaks.options import Options, Scope, Strictness
from troyproxy.leaks.repair import repaired
from troyproxy.leaks.scanner import Scanner
from troyproxy.leaks.scrub import Scrub
from troyproxy.leaks.tables import TAIL, tables

CALL: Final = '<function=dim_lamp>{"id": 3}</function>'
WORDS: Final = (
    *sorted({*tables().lead.rows, *TAIL.rows}),
    *(
        "dim_lamp",
        "open",
        "paint",
        "functions.dim_lamp:0",
        '"name"',
        '"arguments"',
        ": ",
        '{"id": 3}',
        "{",
        "}",
        "[",
        "]",
    ),
    *(
        "(",
        ")",
        "id=3",
        ">",
        "<",
        '"',
        "'",
        "\\",
        "`",
        "```",
        "```json\n",
        "~~~\n",
        "\n",
        "\n\n",
        "> ",
        " ",
        "\t",
        "x",
        ".",
    ),
    *("call:", "print(default_api.", "tool_code\n", "functools[", ">>>", "<parameter=id>3", '<parameter name="id">3'),
    *(
        "<arg_key>id</arg_key>",
        "<arg_value>3</arg_value>",
        "\ufeff",
        "\uff5c",
        "\u2581",
        "\u0130",
        "\U0001f4a1",
        "\0",
        "\r",
    ),
    *(CALL, *(example.text for example in EXAMPLES), *(clean.text[:200] for clean in CLEAN)),
)
NAMES: Final = frozenset({"dim_lamp", "open"})
ASKED: Final = (
    Asked(names=NAMES),
    Asked(
        names=NAMES, inputs=Inputs({"messages": [{"role": "user", "content": f"Say {CALL} twice: {CALL}\n{CALL}."}]})
    ),
    Asked(names=NAMES, json_answer=True),
    Asked(names=NAMES, only_special=True, known_only=True),
)
OPTIONS: Final = (
    DEFAULT,
    Options(header_chars=40, whole_chars=90, call_chars=120),
    Options(extra_openers=("[Tool call] ", "x")),
    Options(scope=Scope.START, strictness=Strictness.CONFIRM),
    Options(strictness=Strictness.MARKERS),
)


def text_of(data: bytes) -> str:
    """Return the text that *data* spells: words of the table by number, and runs of its own characters."""
    return "".join(_parts(data))


def _parts(data: bytes) -> Iterator[str]:
    at = 0
    while at + 1 < len(data):
        number = data[at] << 8 | data[at + 1]
        at += 2
        if number >= 0xF000:
            length = number & 0x0F
            yield data[at : at + length].decode("utf-8", "replace")
            at += length
        else:
            yield WORDS[number % len(WORDS)]


def check(data: bytes) -> Seen:
    """Check one text; return what the scanner said about it."""
    head, text = data[:4].ljust(4, b"\0"), text_of(data[12:])
    asked, options = ASKED[head[0] % len(ASKED)], OPTIONS[head[1] % len(OPTIONS)]
    structured = head[2] % 4 == 3
    seen = run([text], asked, options, structured=structured)
    assert seen.released == (seen.leak.block_start if seen.leak else len(text))
    for pieces in (text, cut(text, (place * len(text) // 256 for place in data[4:12]))):
        assert run(pieces, asked, options, structured=structured) == seen, pieces
    _check_repair(text, asked, options)
    _check_scrub(text, data[4:12])
    return seen


def _check_repair(text: str, asked: Asked, options: Options) -> None:
    scanner = Scanner(asked, options)
    scanner.feed(text)
    scanner.finish()
    assert text.endswith(scanner.captured) or scanner.overflowed
    if scanner.leak:
        repaired(scanner.captured, asked, options, finish_reason="stop", response_id="r")


def _check_scrub(text: str, places: bytes) -> None:
    one, two = Scrub(), Scrub()
    whole = one.feed(text) + one.finish()
    pieces = cut(text, (place * len(text) // 256 for place in places))
    assert "".join(map(two.feed, pieces)) + two.finish() == whole
    assert (two.found, one.found is None) == (one.found, whole == text)


def main() -> None:
    """Fuzz until libFuzzer's options say stop."""
    atheris = importlib.import_module("atheris")
    atheris.instrument_all()
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
