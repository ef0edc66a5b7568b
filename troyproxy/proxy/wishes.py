"""What one request asks of the auto engine by its headers: a mode, a budget, a task."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from troyproxy.auto.config import POLICIES
from troyproxy.auto.fitness import Task
from troyproxy.auto.task import HINTS
from troyproxy.auto.variants import MODES, VARIANTS, Variant, variant_of
from troyproxy.auto.weights import PACKS, Weights
from troyproxy.errors import InvalidRequest
from troyproxy.proxy.call import Call

_AMOUNT: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
ALIASES: Final = ("fast", "cheap", "quality", "offline", "balanced")


@dataclass(frozen=True, slots=True)
class Wishes:
    """The headers, read. None: not said."""

    weights: Weights | None = None
    variant: Variant | None = None
    """The variant that the mode names, with its exploration and memory."""
    budget_usd: float | None = None
    strict: bool | None = None
    task: str | None = None


NONE: Final = Wishes()
HEADERS: Final = frozenset({b"x-troy-mode", b"x-troy-budget-policy", b"x-troy-task", b"x-troy-budget-usd"})


def wishes_of(call: Call) -> Wishes:
    """Return what the headers of *call* ask for. Raises InvalidRequest that names the header and what is allowed."""
    if not call.sends(HEADERS):
        return NONE
    mode = _lower(call, b"x-troy-mode")
    policy = _lower(call, b"x-troy-budget-policy")
    task = _lower(call, b"x-troy-task")
    if mode is not None and mode not in MODES:
        raise _refused("x-troy-mode", mode, (*ALIASES, *PACKS, *VARIANTS))
    if policy is not None and policy not in POLICIES:
        raise _refused("x-troy-budget-policy", policy, POLICIES)
    if task is not None and task not in HINTS:
        raise _refused("x-troy-task", task, tuple(Task))
    return Wishes(
        weights=MODES[mode] if mode is not None else None,
        variant=_variant(mode),
        budget_usd=_budget(call),
        strict=None if policy is None else policy == "strict",
        task=task,
    )


def _variant(mode: str | None) -> Variant | None:
    """Return the variant called *mode*; aliases and packs are weights only."""
    if mode is None or mode in ALIASES:
        return None
    return variant_of(mode) or variant_of(f"auto/{mode}")


def _budget(call: Call) -> float | None:
    text = _lower(call, b"x-troy-budget-usd")
    if text is None:
        return None
    if not _AMOUNT.fullmatch(text):
        raise InvalidRequest(
            f"x-troy-budget-usd: {text[:40]!r} is no amount in USD, as in 0.05", param="x-troy-budget-usd"
        )
    return float(text)


def _lower(call: Call, name: bytes) -> str | None:
    value = call.header(name)
    return value.lower() if value else None


def _refused(name: str, value: str, allowed: tuple[str, ...]) -> InvalidRequest:
    return InvalidRequest(f"{name}: {value[:40]!r} is unknown; allowed: {', '.join(allowed)}", param=name)
