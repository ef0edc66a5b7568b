"""Short forms for the tests of the reader."""

from __future__ import annotations

from troyproxy.leaks.calls import Reading, read_calls

NAMES = frozenset({"f", "dim_lamp", "read-gauge"})


def read(text: str) -> Reading:
    """Read *text* with the tools of this module declared."""
    return read_calls(text, NAMES)


def calls(text: str) -> list[tuple[str, dict[str, object] | None]]:
    """Return names and arguments of a text that must be nothing but calls."""
    reading = read(text)
    assert reading.complete
    assert reading.end == len(text)
    return [(call.name, call.arguments) for call in reading.calls]


def arguments(text: str) -> dict[str, object] | None:
    """Return the arguments of a text that must be one call of ``f``."""
    ((name, given),) = calls(text)
    assert name == "f"
    return given


def is_no_call(text: str) -> bool:
    """Whether nothing in *text* is a call, nor the beginning of one."""
    reading = read(text)
    return not reading.calls and not reading.dangling and not reading.complete and reading.end == 0


def is_unfinished(text: str) -> bool:
    """Whether *text* ends inside a call, and has none before it."""
    reading = read(text)
    return reading.dangling and not reading.calls and not reading.complete
