"""What the soak is made of, drawn from one seed: what each client asks, when it hangs up, what a generation says. Pure.

Every request has a marker of its own, which the upstream repeats in what it generates together with the number of the
generation, so that an answer can be traced to the one generation that made it. The same seed asks the same; in which
order it happens is up to the machine.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

PROVIDERS: Final = ("alpha", "beta", "gamma")
ACCOUNTS: Final = "ABCD"
DEAD: Final = "dead"
"""A provider at whose address nobody listens."""
COMBOS: Final[dict[str, dict[str, object]]] = {
    "chain": {"members": ["alpha/m1", "beta/m2", "gamma/m3"]},
    "circle": {"members": ["beta/m1", "gamma/m1", "alpha/m4"], "strategy": "round-robin"},
    "dice": {"members": ["gamma/m2", "alpha/m2", "beta/m3"], "strategy": "random"},
    "nested": {"members": [{"combo": "dice"}, "alpha/m5", "beta/m4"]},
    "lame": {"members": [f"{DEAD}/m1", "gamma/m4", "alpha/m3"]},
}
MODELS: Final = (*COMBOS, "alpha/m1", "beta/m2", "gamma/m3")
FAULT_SHARE: Final = 0.2
LEAVE_SHARE: Final = 0.1
MARKER: Final = re.compile(r"mark-[0-9]{6}")
SAID: Final = re.compile(r"(mark-[0-9]{6}) gen-([0-9]+) of ([0-9]+):((?: word)*)\Z")
TOOL: Final[dict[str, object]] = {
    "type": "function",
    "function": {"name": "note", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}},
}


class Leave(StrEnum):
    """When a client hangs up."""

    NEVER = "never"
    HALF_SENT = "half of its request sent"
    SENT = "its request just sent"
    LATER = "some time after that"
    READING = "after some bytes of the answer"


@dataclass(frozen=True, slots=True)
class Ask:
    """One request of one client."""

    marker: str
    model: str
    stream: bool
    tools: bool
    wants_usage: bool
    keeps: bool
    """The connection is used again."""
    leave: Leave
    leave_at: float
    """Seconds, or a share of 2 kB of answer, of `leave`."""
    pause_s: float
    """Before the client asks again."""

    def body(self) -> bytes:
        """Return the request as JSON."""
        asked: dict[str, object] = {
            "model": self.model,
            "messages": [{"role": "user", "content": f"please: {self.marker}"}],
        }
        if self.stream:
            asked["stream"] = True
        if self.stream and self.wants_usage:
            asked["stream_options"] = {"include_usage": True}
        if self.tools:
            asked["tools"] = [TOOL]
        return json.dumps(asked).encode()


def ask(seed: int, number: int) -> Ask:
    """Return the request with this number."""
    chance = random.Random(f"{seed}/ask/{number}")
    leaves = chance.random() < LEAVE_SHARE
    return Ask(
        marker=f"mark-{number:06}",
        model=chance.choice(MODELS),
        stream=chance.random() < 0.6,
        tools=chance.random() < 0.4,
        wants_usage=chance.random() < 0.3,
        keeps=chance.random() < 0.7,
        leave=chance.choice([moment for moment in Leave if moment is not Leave.NEVER]) if leaves else Leave.NEVER,
        leave_at=chance.random(),
        pause_s=chance.uniform(0.0, 0.6),
    )


@dataclass(frozen=True, slots=True)
class Generation:
    """What a model says: so many words about a marker, in so many seconds."""

    marker: str
    number: int
    words: int
    input_tokens: int
    seconds: float
    usage_in: str
    """Where usage is reported: ``last`` (an event of its own), ``finish``, ``every`` (event, cumulative), ``none``."""
    tool_call: bool

    @property
    def text(self) -> str:
        """The whole text; how long it must be stands in it."""
        return f"{self.marker} gen-{self.number} of {self.words}:" + " word" * self.words

    def usage(self, words: int | None = None) -> dict[str, int]:
        """Return the report after *words* words, or after all of them."""
        output = self.words if words is None else words
        return {
            "prompt_tokens": self.input_tokens,
            "completion_tokens": output,
            "total_tokens": self.input_tokens + output,
        }


def generation(chance: random.Random, marker: str, number: int, *, tools: bool) -> Generation:
    """Return a generation for *marker*."""
    return Generation(
        marker=marker,
        number=number,
        words=chance.randint(3, 14),
        input_tokens=chance.randint(5, 500),
        seconds=chance.uniform(0.2, 1.2),
        usage_in=chance.choice(["last", "last", "last", "finish", "every", "none"]),
        tool_call=tools and chance.random() < 0.5,
    )


def said(text: str) -> tuple[str, int] | None:
    """Return marker and number of the generation whose whole text this is, or None if it is not whole."""
    found = SAID.match(text)
    if found is None or found[4].count(" word") != int(found[3]):
        return None
    return found[1], int(found[2])
