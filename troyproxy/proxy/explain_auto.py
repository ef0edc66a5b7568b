"""What the auto engine decided, in full: weights, the nine factors of each candidate, scores, exclusions, memory."""

from __future__ import annotations

from troyproxy.auto import exclusion
from troyproxy.auto.decision import Scored
from troyproxy.proxy.auto_engine import AutoEngine, Decided


def auto_told(made: Decided, engine: AutoEngine) -> dict[str, object]:
    """Return one decision, JSON-ready; the best score first."""
    decision, last = made.decision, engine.memory.last(made.memory_key)
    scored = {one.identity: one for one in decision.scored}
    rows = [_row(made, identity, scored.get(identity), engine) for identity in made.candidates]
    return {
        "combo": made.combo.name,
        "task": made.task.value,
        "specificity": made.specificity,
        "weights": dict(decision.weights),
        "incident": decision.incident,
        "known": decision.known,
        "last_known_good": last.identity if last is not None else None,
        "explored": decision.explored,
        "probe": decision.probe,
        "readmitted": decision.readmitted,
        "candidates": sorted(rows, key=_by_score),
    }


def _by_score(row: dict[str, object]) -> float:
    score = row["score"]
    return -score if isinstance(score, float) else 1.0


def _row(made: Decided, identity: str, scored: Scored | None, engine: AutoEngine) -> dict[str, object]:
    decision = made.decision
    record, now = engine.record(made.candidates[identity], made.memory_key), engine.clock.now()
    place = decision.order.index(identity) + 1 if identity in decision.order else None
    out = "budget" if identity in decision.over_budget else "excluded" if identity in decision.out else None
    return {
        "candidate": identity,
        "score": scored.score if scored is not None else None,
        "factors": dict(scored.factors) if scored is not None else None,
        "place": place,
        "out": out,
        "exclusion": {
            "state": exclusion.place(record, now).value,
            "until": record.until,
            "in_a_row": record.row,
        },
    }
