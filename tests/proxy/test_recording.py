from __future__ import annotations

import pytest

from tests.proxy.rig import DONE, Rig, answer, delta, finish, refusal, reset, stream
from troyproxy.accounting.records import AttemptRecord

pytestmark = pytest.mark.anyio


def _told(rig: Rig) -> list[AttemptRecord]:
    return [attempt for (attempt,) in rig.observer.of("attempt_finished") if isinstance(attempt, AttemptRecord)]


async def test_every_attempt_has_a_record_with_its_duration(rig: Rig) -> None:
    rig.script(alpha=refusal(429, retry_after="3"), beta=answer(before=[2.0]))
    served = await rig.ask()
    first, second = served.call.ledger.attempts
    assert (first.outcome, first.status, first.hint_s, first.reason) == ("rate", 429, 3.0, "429: rate")
    assert (second.outcome, second.status, round(second.duration_ms)) == ("ok", 200, 2000)


async def test_the_observer_hears_each_record_once_when_it_is_complete(rig: Rig) -> None:
    rig.script(alpha=refusal(500), beta=answer())
    served = await rig.ask()
    assert _told(rig) == served.call.ledger.attempts


async def test_a_streams_duration_lasts_to_its_last_byte(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), 5.0, reset()))
    served = await rig.ask(stream=True)
    assert served.call.ledger.attempts[0].duration_ms == pytest.approx(5000)


async def test_a_cut_after_the_commit_is_recorded_as_its_class(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), reset()))
    await rig.ask(stream=True)
    assert [record.outcome for record in _told(rig)] == ["transient"]


async def test_the_play_by_play_names_class_hint_and_next_step(rig: Rig) -> None:
    rig.script(alpha=refusal(429, retry_after="3"), beta=answer())
    served = await rig.ask()
    assert served.call.ledger.lines == [
        "try alpha/m1 #A",
        "  rate after 0 ms: 429: rate, wait 3 s -> next_account",
        "try beta/m2 #A",
        "commit beta/m2 #A after 0 ms",
    ]


async def test_a_retry_after_learning_has_its_own_moment(rig: Rig) -> None:
    said = refusal(400, "unknown field", param="stream_options")
    rig.script(alpha=[said, stream(delta("a"), finish(), DONE, before=[3.0])])
    served = await rig.ask(stream=True)
    first, second = served.call.ledger.attempts
    assert (second.started_at >= first.started_at, second.outcome) == (True, "ok")
