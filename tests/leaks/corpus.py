"""The texts every part of the guard is tested with: one own example or more per format, and the vectors.

`examples.jsonl`: each text is one or more calls of `dim_lamp`, with the arguments expected (raw text where the format
has no types). `vectors.jsonl`: leaks and clean texts with the declared tools, and the calls after coercion.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from troyproxy.leaks.asked import Asked, Inputs

_HERE: Final = Path(__file__).parent
LAMP: Final = frozenset({"dim_lamp"})


@dataclass(frozen=True)
class Example:
    """One text of a format, and the arguments of its calls."""

    id: str
    text: str
    calls: list[dict[str, Any]]


@dataclass(frozen=True)
class Vector:
    """One text with the tools of its request; *calls* are what repair has to make of it."""

    id: str
    format: str
    tools: list[str]
    text: str
    expect: str
    calls: list[dict[str, Any]]
    note: str
    marker_rule: str
    schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    request: dict[str, str] = field(default_factory=dict)

    def asked(self) -> Asked:
        """Return what the request of this vector tells the guard."""
        payload = {"messages": [{"role": "user", "content": self.request.get("input_text", "hi")}]}
        return Asked(names=frozenset(self.tools), schemas=self.schemas, inputs=Inputs(payload))


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_HERE / name).read_text(encoding="utf-8").split("\n") if line]


EXAMPLES: Final = [Example(**line) for line in _lines("examples.jsonl")]
VECTORS: Final = [Vector(**line) for line in _lines("vectors.jsonl")]
