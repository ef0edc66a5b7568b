"""Pages whose code is run: the blocks of a page, and its shell blocks as one session from top to bottom.

A ``bash`` block is run. The line after it says what came back, ``→ 200`` and maybe a few words; a ``json`` block behind
that shows the answer, or a ``text`` block some lines of it, where ``…`` stands for what is left out.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

RUN_S: Final = 120.0
_BLOCK: Final = re.compile(
    r"^```bash\n(?P<code>.*?)^```\n\n→ (?P<status>\d{3})\b[^\n]*\n"
    r"(?:\n```(?P<kind>json|text)\n(?P<shown>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TARGET: Final = re.compile(r"\$TROY(/[^\s\"?]*)")
_METHOD: Final = re.compile(r"(?:-X|--request) (\w+)")
_BODY: Final = re.compile(r" (?:-d|-F|--json|--data-binary|--form) ")
_PRELUDE: Final = """set -euo pipefail
curl() { command curl --disable --max-time 30 --dump-header "$ANSWERS/$AT.head" "$@"; }
"""


@dataclass(frozen=True, slots=True)
class Block:
    """One shell block, and what the page says of its last answer."""

    code: str
    status: int
    kind: str | None
    shown: str

    @property
    def calls(self) -> list[tuple[str, str]]:
        """Return method and path of every curl in it."""
        lines = self.code.replace("\\\n", " ")
        return [_call(part) for part in re.split(r"\bcurl ", lines)[1:]]


def _call(arguments: str) -> tuple[str, str]:
    target, method = _TARGET.search(arguments), _METHOD.search(arguments)
    assert target is not None, f"no path of the gateway: {arguments}"
    return method[1] if method else "POST" if _BODY.search(f" {arguments}") else "GET", target[1]


def shell_blocks(text: str) -> list[Block]:
    """Return the shell blocks of a page. Raises AssertionError when one has no status behind it."""
    found = [
        Block(match["code"], int(match["status"]), match["kind"], match["shown"] or "")
        for match in _BLOCK.finditer(text)
    ]
    assert [block.code for block in found] == list(fenced(text, "bash")), "a bash block without its → status"
    return found


def fenced(text: str, language: str) -> Iterator[str]:
    """Yield the code of the blocks in *language*."""
    return (code for kind, code in _FENCE.findall(text) if kind == language)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the last curl of a block got (status 0: none), and what the block printed."""

    status: int
    body: str


def run_session(blocks: Sequence[Block], folder: Path, env: Mapping[str, str]) -> list[Answer]:
    """Run *blocks* in one shell that stops at the first failure, in *folder*, and return what came of each."""
    answers = folder / "answers"
    answers.mkdir()
    parts = (f'AT={at}\n{{\n{block.code}\n}} >"$ANSWERS/{at}.body"\n' for at, block in enumerate(blocks))
    with (answers / "errors").open("wb") as errors:
        subprocess.run(
            ["/bin/bash", "-c", _PRELUDE + "".join(parts)],
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", **env, "ANSWERS": str(answers)},
            stdin=subprocess.DEVNULL,
            stderr=errors,
            timeout=RUN_S,
            check=False,
        )
    return [_answer(answers / str(at)) for at in range(len(blocks))]


def _answer(stem: Path) -> Answer:
    head, body = stem.with_suffix(".head"), stem.with_suffix(".body")
    lines = re.findall(r"^HTTP/\S+ (\d{3})", head.read_text(encoding="latin-1") if head.exists() else "", re.MULTILINE)
    said = body.read_text(encoding="utf-8", errors="replace") if body.exists() else ""
    return Answer(int(lines[-1]) if lines else 0, said)


def differences(shown: object, got: object, where: str = "") -> list[str]:
    """Return where *got* lacks what the page shows: its fields, deep down, with values of the same type.

    Of a list every entry that is shown must be like one that came. What is null on either side may be anything.
    """
    if shown is None or got is None:
        return []
    if isinstance(shown, dict) and isinstance(got, dict):
        missing = [f"{where}.{name} is missing" for name in shown if name not in got]
        return missing + [
            found
            for name in shown.keys() & got.keys()
            for found in differences(shown[name], got[name], f"{where}.{name}")
        ]
    if isinstance(shown, list) and isinstance(got, list):
        alone = [entry for entry in shown if all(differences(entry, other) for other in got)]
        return [f"{where}[] has nothing like {json.dumps(entry)}" for entry in alone]
    same = _kind(shown) == _kind(got)
    return [] if same else [f"{where} is {got!r}, shown as {shown!r}"]


def missing_pieces(shown: str, got: str) -> list[str]:
    """Return what of *shown* is not in *got*; ``…`` and line ends stand for what is left out."""
    return [piece for piece in re.split(r"…|\n", shown) if piece.strip() not in got]


def _kind(value: object) -> type[Any]:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)
