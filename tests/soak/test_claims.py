"""The soak's claims can fail: each kind of lie in the story is found by the claim that is about it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, Final

import pytest

from tests.soak.claims import Claim, Story, claims, flat, strength
from tests.soak.client import Outcome
from tests.soak.plan import Ask, ask, generation, said
from tests.soak.script import STREAMED, WHOLE, Wait, Write, streamed, whole
from tests.soak.upstream import Seen

STREAM: Final = replace(ask(1, 1), stream=True, wants_usage=False)
OTHER: Final = replace(ask(1, 2), stream=False)


def row(request_id: str, outcome: str = "ok", **more: object) -> dict[str, Any]:
    tokens = {"tokens_estimated": 0, "input_tokens": 7, "output_tokens": 3, "wasted": None}
    return {"request_id": request_id, "outcome": outcome, "attempts": [{}], **tokens, **more}


def seen(asked: Ask, number: int, fault: str = "") -> Seen:
    return Seen(asked.marker, f"r{number}", "alpha", fault, number, "done", (7, 3))


def good(asked: Ask, number: int) -> Outcome:
    kind, endings = ("stream", 1) if asked.stream else ("whole", None)
    return Outcome(asked, kind, 200, f"r{number}", number, endings)


TRUE: Final = Story(
    outcomes=[good(STREAM, 1), good(OTHER, 2)],
    seen=[seen(STREAM, 1), seen(OTHER, 2)],
    rows=[row("r1"), row("r2")],
)
LIES: Final = {
    "a request that nobody answered": ("no request is lost", replace(TRUE, outcomes=[*TRUE.outcomes, Outcome(OTHER)])),
    "a stream that ended twice": (
        "every stream has one ending",
        replace(TRUE, outcomes=[replace(TRUE.outcomes[0], endings=2), TRUE.outcomes[1]]),
    ),
    "half an answer": (
        "every answer is whole and the client's own",
        replace(TRUE, outcomes=[TRUE.outcomes[0], replace(TRUE.outcomes[1], wrong=["half"])]),
    ),
    "an answer that was bought twice": (
        "no generation is lost or bought twice",
        replace(TRUE, seen=[*TRUE.seen, seen(OTHER, 3)]),
    ),
    "an answer that nobody made": ("no generation is lost or bought twice", replace(TRUE, seen=TRUE.seen[:1])),
    "an error for an answer that was made": (
        "no generation is lost or bought twice",
        replace(TRUE, outcomes=[TRUE.outcomes[0], replace(TRUE.outcomes[1], kind="error")]),
    ),
    "an attempt that is not on record": (
        "every upstream request is an attempt on record",
        replace(TRUE, seen=[*TRUE.seen, replace(seen(OTHER, 2), fault="500", reported=None)]),
    ),
    "a row that says something else": (
        "every request has one row that says how it ended",
        replace(TRUE, rows=[row("r1", "truncated"), row("r2")]),
    ),
    "a row too many": (
        "every request has one row that says how it ended",
        replace(TRUE, rows=[*TRUE.rows, row("r3", input_tokens=0, output_tokens=0)]),
    ),
    "a row twice": ("every request has one row that says how it ended", replace(TRUE, rows=[*TRUE.rows, row("r2")])),
    "tokens that are not on record": (
        "the token ledger is what upstreams reported",
        replace(TRUE, rows=[row("r1"), row("r2", output_tokens=2)]),
    ),
    "tokens from nowhere": (
        "the token ledger is what upstreams reported",
        replace(TRUE, rows=[*TRUE.rows, row("r3")]),
    ),
}


def failing(found: list[Claim]) -> set[str]:
    return {claim.name for claim in found if not claim.holds}


def test_a_true_story_stands() -> None:
    assert failing(claims(TRUE)) == set()


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_found(lie: str) -> None:
    claim, story = LIES[lie]
    assert claim in failing(claims(story))


def test_what_was_on_its_way_when_a_client_left_may_be_missing() -> None:
    left = replace(TRUE.outcomes[1], kind="left", generation=None)
    story = replace(TRUE, outcomes=[TRUE.outcomes[0], left], rows=[row("r1"), row("r2", "cancelled", output_tokens=0)])
    assert failing(claims(story)) == set()


def test_wasted_tokens_count() -> None:
    spent = replace(seen(OTHER, 2, "words"), reported=(5, 1))
    story = replace(
        TRUE,
        seen=[*TRUE.seen, spent],
        rows=[row("r1"), row("r2", attempts=[{}, {}], wasted={"input": 5, "output": 1, "estimated": False})],
    )
    assert failing(claims(story)) == set()


def test_a_request_swallowed_by_a_dead_connection_is_no_attempt() -> None:
    swallowed = replace(seen(OTHER, 2, "reset before the head"), reported=None)
    assert failing(claims(replace(TRUE, seen=[swallowed, *TRUE.seen]))) == set()


@pytest.mark.parametrize(("samples", "holds"), [([50.0, *[100.0] * 20], True), ([*[100.0] * 10, *[120.0] * 10], False)])
def test_memory_counts_after_the_warm_up(samples: list[float], holds: bool) -> None:
    assert flat(samples, 1).holds is holds


def test_a_soak_without_failures_is_none() -> None:
    assert failing(strength(TRUE)) == {"every scripted failure happened"}


@pytest.mark.parametrize("tools", [False, True])
def test_what_the_upstream_says_is_what_the_clients_look_for(tools: bool) -> None:
    for number in range(50):
        it = generation(random.Random(number), "mark-000007", number, tools=tools)
        for asked, steps in ((OTHER, whole(it)), (STREAM, streamed(it))):
            outcome = Outcome(replace(asked, marker="mark-000007", wants_usage=True), status=200)
            outcome.judge(_body([step for step in steps if isinstance(step, Write)], stream=asked.stream))
            assert (outcome.generation, outcome.wrong) == (number, [])


def _body(writes: list[Write], *, stream: bool) -> bytes:
    if not stream:
        return writes[0].data.partition(b"\r\n\r\n")[2]
    return b"".join(line + b"\n\n" for w in writes for line in w.data.split(b"\r\n") if line.startswith(b"data: "))


def test_every_failure_stops_short_of_a_whole_answer() -> None:
    it = generation(random.Random(1), "mark-000007", 1, tools=False)
    for way in (*STREAMED.values(), *WHOLE.values()):
        sent = b"".join(step.data for step in way(it) if isinstance(step, Write))
        assert b"[DONE]" not in sent or it.text.encode() not in sent
        assert not any(isinstance(step, Wait) and step.seconds > it.seconds for step in way(it))


def test_half_a_text_is_not_said() -> None:
    text = generation(random.Random(1), "mark-000007", 1, tools=False).text
    assert said(text) == ("mark-000007", 1)
    assert said(text[:-5]) is None
    assert said(text + " word") is None
