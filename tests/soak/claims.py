"""What must hold after the soak: clients, upstream, database and process tell one story. Pure.

Each claim has a figure to print, and at most three examples of what is against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.soak.client import Outcome
from tests.soak.script import STREAMED, UNSEEN, WHOLE
from tests.soak.upstream import Seen

SERVED_SHARE: Final = 0.7
FLAT_MB: Final = 10.0
GOOD: Final = frozenset({"whole", "stream"})
ENDED_AS: Final[Mapping[str, frozenset[str]]] = {
    "whole": frozenset({"ok"}),
    "stream": frozenset({"ok"}),
    "cut": frozenset({"truncated"}),
    "error": frozenset({"client_error", "upstream_error", "refused"}),
}
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Claim:
    """One line of the table."""

    name: str
    figure: str
    against: Sequence[str] = ()

    @property
    def holds(self) -> bool:
        return not self.against


@dataclass(frozen=True, slots=True)
class Story:
    """Everything that is known when the load is over."""

    outcomes: Sequence[Outcome]
    seen: Sequence[Seen]
    rows: Sequence[Row]
    """Usage rows, with ``attempts`` and ``wasted`` decoded."""


def claims(story: Story) -> list[Claim]:
    """Return what is claimed of the requests, the answers and the tokens."""
    return [_lost(story), _endings(story), _own(story), _once(story), _attempts(story), _rows(story), *_ledger(story)]


def _lost(story: Story) -> Claim:
    kinds = Counter(outcome.kind for outcome in story.outcomes)
    lost = [f"{it.ask.marker}: {it.wrong}" for it in story.outcomes if it.kind == "lost"]
    ways = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return Claim("no request is lost", f"{len(story.outcomes)}: {ways}", lost)


def _endings(story: Story) -> Claim:
    streams = [outcome for outcome in story.outcomes if outcome.endings is not None]
    return Claim(
        "every stream has one ending",
        f"{len(streams)} streams read to their end",
        [f"{it.ask.marker}: {it.endings} endings" for it in streams if it.endings != 1],
    )


def _own(story: Story) -> Claim:
    wrong = [f"{it.ask.marker}: {it.wrong}" for it in story.outcomes if it.wrong and it.kind != "lost"]
    good = sum(it.kind in GOOD for it in story.outcomes)
    return Claim("every answer is whole and the client's own", f"{good} whole answers", wrong)


def _once(story: Story) -> Claim:
    """Completed generations and answers agree: one for each whole answer, at most one for a client that left."""
    complete: dict[str, list[int]] = {}
    for it in story.seen:
        if it.state == "done" and not it.fault:
            complete.setdefault(it.marker, []).append(it.number)
    against = []
    for outcome in story.outcomes:
        made = complete.pop(outcome.ask.marker, [])
        wanted = [outcome.generation] if outcome.kind in GOOD else made[:1] if outcome.kind == "left" else []
        if made != wanted:
            against.append(f"{outcome.ask.marker}: {outcome.kind} of {outcome.generation}, upstream completed {made}")
    against += [f"{marker}: nobody asked for it" for marker in complete]
    made_in_all = sum(it.state == "done" and not it.fault for it in story.seen)
    left = made_in_all - sum(it.kind in GOOD for it in story.outcomes)
    return Claim(
        "no generation is lost or bought twice", f"{made_in_all} completed, {left} of them for leavers", against
    )


def _attempts(story: Story) -> Claim:
    """The upstream sees no more requests than the ledger has attempts, but for what a dead connection swallowed."""
    came = Counter(it.request_id for it in story.seen)
    unseen = Counter(it.request_id for it in story.seen if it.fault in UNSEEN)
    attempts = {row["request_id"]: len(row["attempts"]) for row in story.rows}
    over = {name: count for name, count in came.items() if count - unseen[name] > attempts.get(name, 0)}
    return Claim(
        "every upstream request is an attempt on record",
        f"{sum(came.values())} requests, {sum(attempts.values())} attempts",
        [f"{name}: {count} requests, {attempts.get(name)} attempts" for name, count in over.items()],
    )


def _rows(story: Story) -> Claim:
    rows = {row["request_id"]: row["outcome"] for row in story.rows}
    against = [f"{len(story.rows) - len(rows)} rows twice"] if len(rows) != len(story.rows) else []
    for it in story.outcomes:
        allowed = ENDED_AS.get(it.kind)
        if allowed is not None and rows.get(it.request_id) not in allowed:
            against.append(f"{it.ask.marker}: {it.kind}, on record as {rows.get(it.request_id)}")
    against += [f"{it.request_id}: no row" for it in story.seen if it.request_id not in rows]
    spare = len(rows) - len(story.outcomes)
    against += [f"{spare} rows too many"] if spare > 0 else []
    return Claim("every request has one row that says how it ended", f"{len(rows)} rows", against)


def _ledger(story: Story) -> Iterable[Claim]:
    """Delivered and wasted make what upstreams reported; what went out to nobody can only miss for who left."""
    reported: Counter[str] = Counter()
    for it in story.seen:
        reported[it.request_id] += sum(it.reported or (0, 0))
    delivered = {row["request_id"]: _delivered(row) for row in story.rows}
    wasted = {row["request_id"]: _wasted(row) for row in story.rows}
    cancelled = {row["request_id"] for row in story.rows if row["outcome"] == "cancelled"}
    against, unread = [], 0
    for name, tokens in reported.items():
        known = delivered.get(name, 0) + wasted.get(name, 0)
        if name in cancelled and known <= tokens:
            unread += tokens - known
        elif known != tokens:
            against.append(f"{name}: {tokens} reported, {known} on record")
    against += [f"{name}: {delivered[name]} from nowhere" for name in delivered if name not in reported]
    yield Claim(
        "the token ledger is what upstreams reported",
        f"{sum(reported.values())} = {sum(delivered.values())} delivered + {sum(wasted.values())} wasted"
        f" + {unread} on their way when clients left",
        [line for line in against if ": 0 from nowhere" not in line],
    )


def _delivered(row: Row) -> int:
    return 0 if row["tokens_estimated"] else (row["input_tokens"] or 0) + (row["output_tokens"] or 0)


def _wasted(row: Row) -> int:
    wasted = row["wasted"] or {}
    return 0 if wasted.get("estimated") else int(wasted.get("input", 0)) + int(wasted.get("output", 0))


def strength(story: Story) -> list[Claim]:
    """Return what shows that the soak was one: failures of every kind, and answers all the same."""
    faults = Counter(it.fault for it in story.seen if it.fault)
    missing = sorted((STREAMED.keys() | WHOLE.keys()) - faults.keys())
    stayed = [it for it in story.outcomes if it.kind != "left"]
    served = sum(it.kind in GOOD for it in stayed) / max(1, len(stayed))
    return [
        Claim(
            "every scripted failure happened",
            f"{sum(faults.values())} of {len(faults)} kinds, {sum(faults.values()) / max(1, len(story.seen)):.1%}",
            missing,
        ),
        Claim(
            "most clients that stayed were served",
            f"{served:.1%}",
            [] if served >= SERVED_SHARE else [f"less than {SERVED_SHARE:.0%}"],
        ),
    ]


def flat(rss_mb: Sequence[float], warm: int) -> Claim:
    """Claim that the memory after the warm-up, *warm* samples, is that at the end: medians of a fifth at either end."""
    after = _ends(rss_mb[warm:])
    grown = after[1] - after[0]
    figure = f"{after[0]:.1f} MB after warm-up, {after[1]:.1f} MB at the end ({grown:+.1f}), {max(rss_mb):.1f} at most"
    return Claim("memory is flat", figure, [] if abs(grown) <= FLAT_MB else [f"{grown:+.1f} MB"])


def _ends(samples: Sequence[float]) -> tuple[float, float]:
    """Return the medians of the first and the last fifth of *samples*."""
    size = max(1, len(samples) // 5)
    first, last = sorted(samples[:size]), sorted(samples[-size:])
    return first[len(first) // 2], last[len(last) // 2]
