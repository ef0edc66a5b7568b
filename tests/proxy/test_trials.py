"""One tiny request to each member of a combo."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes import FakeUsageSink
from tests.proxy.rig import ALPHA, BETA, THREE, TWO, Rig, answer, combo, fault, provider, refusal
from troyproxy.catalog.combos import Combo, Member
from troyproxy.proxy import trials
from troyproxy.proxy.trials import Trial, Trials, as_told

pytestmark = pytest.mark.anyio


class Lab:
    def __init__(self, rig: Rig) -> None:
        self.rig, self.usage = rig, FakeUsageSink()

    async def test(self, wanted: Combo) -> list[Trial]:
        found = Trials(self.rig.gear, self.rig.planner, self.usage, lambda: self.rig.snapshot)
        return await found.combo(wanted)


@pytest.fixture
def lab(rig: Rig) -> Lab:
    return Lab(rig)


async def test_every_member_is_asked_whatever_the_others_answer(lab: Lab) -> None:
    lab.rig.script(alpha=answer(), beta=refusal(429, "slow down", retry_after="3"), gamma=fault())
    tried = await lab.test(THREE)
    assert [(t.member, t.ok, t.status, t.error_class) for t in tried] == [
        ("alpha/m1", True, 200, None),
        ("beta/m2", False, 429, "rate"),
        ("gamma/m4", False, 502, "transient"),
    ]
    assert (tried[0].message, tried[1].message) == ("ok", "slow down")
    assert lab.rig.idle


async def test_a_pinned_account_is_the_one_that_is_asked(lab: Lab) -> None:
    lab.rig.use(provider("alpha", "m1", accounts="AB"))
    lab.rig.script(alpha=answer())
    [tried] = await lab.test(combo("pinned", Member(model="alpha/m1", account="B")))
    assert (tried.account, [attempt.account for attempt in tried.attempts]) == ("B", ["B"])


async def test_a_member_answers_when_one_of_its_accounts_does(lab: Lab) -> None:
    lab.rig.use(provider("alpha", "m1", accounts="AB"))
    lab.rig.script(alpha=[refusal(401), answer()])
    [tried] = await lab.test(combo("one", "alpha/m1"))
    assert (tried.ok, [attempt.outcome for attempt in tried.attempts]) == (True, ["auth", "ok"])


async def test_members_of_inner_combos_are_asked_each_once(lab: Lab) -> None:
    lab.rig.use(ALPHA, BETA, TWO)
    lab.rig.script(alpha=answer(), beta=answer())
    tried = await lab.test(combo("outer", Member(combo="two"), "alpha/m1"))
    assert [t.member for t in tried] == ["alpha/m1", "beta/m2"]


async def test_who_is_cooling_down_is_left_alone(lab: Lab) -> None:
    lab.rig.script(alpha=refusal(429, retry_after="30"))
    await lab.test(combo("one", "alpha/m1"))
    [tried] = await lab.test(combo("one", "alpha/m1"))
    assert (tried.skipped, tried.ok, tried.attempts) == ("cooldown", False, ())
    assert len(lab.usage.rows) == 1


async def test_a_name_that_nothing_answers_to_is_told(lab: Lab) -> None:
    [tried] = await lab.test(combo("one", "nobody/m"))
    assert tried == Trial("nobody/m", None, skipped="unknown-provider")


async def test_the_cursor_of_the_combo_stays(lab: Lab) -> None:
    turns = combo("turns", "alpha/m1", "beta/m2", strategy="round-robin")
    lab.rig.use(ALPHA, BETA, turns)
    lab.rig.script(alpha=[answer(), answer()], beta=answer())
    await lab.test(turns)
    served = await lab.rig.ask("turns")
    assert served.tried == ["alpha#A"]


async def test_who_does_not_answer_in_time_is_told_and_holds_nothing(lab: Lab) -> None:
    lab.rig.script(alpha=answer(before=[asyncio.Event()]))
    [tried] = await lab.test(combo("one", "alpha/m1"))
    assert (tried.ok, tried.status, tried.error_class, tried.message) == (
        False,
        None,
        "transient",
        "no answer in time",
    )
    assert (lab.rig.idle, lab.usage.rows[0].outcome) == (True, "cancelled")


async def test_only_a_few_are_asked_at_once(lab: Lab) -> None:
    gate = asyncio.Event()
    names = [f"m{n}" for n in range(10)]
    lab.rig.use(provider("alpha", *names))
    lab.rig.script(alpha=[answer(before=[gate]) for _ in names])
    task = asyncio.get_running_loop().create_task(lab.test(combo("many", *(f"alpha/{name}" for name in names))))
    await asyncio.sleep(1)
    assert len(lab.rig.upstream.requests) == trials.AT_ONCE
    gate.set()
    assert all(tried.ok for tried in await task)


async def test_a_very_long_combo_is_asked_in_part(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "MOST", 1)
    lab.rig.script(alpha=answer())
    tried = await lab.test(TWO)
    assert [(t.member, t.ok, t.skipped) for t in tried] == [("alpha/m1", True, None), ("beta/m2", False, "left-out")]


async def test_its_cost_is_recorded_under_the_testers_name(lab: Lab) -> None:
    lab.rig.script(alpha=answer())
    await lab.test(combo("one", "alpha/m1"))
    [row] = lab.usage.rows
    assert (row.key_name, row.usage is not None, lab.rig.observer.of("request_finished")) == ("test", True, [(row,)])


async def test_the_request_is_tiny(lab: Lab) -> None:
    lab.rig.script(alpha=answer())
    await lab.test(combo("one", "alpha/m1"))
    body = lab.rig.upstream.requests[0].body
    assert b'"max_tokens":32' in body
    assert b'"model":"m1"' in body


async def test_what_came_of_it_is_told_in_json(lab: Lab) -> None:
    lab.rig.script(alpha=refusal(401, "who?"))
    [tried] = await lab.test(combo("one", "alpha/m1"))
    told = as_told(tried)
    assert (told["class"], told["status"]) == ("auth", 502)
    assert set(told) == {"member", "account", "ok", "status", "class", "ms", "message", "skipped", "attempts"}
    assert isinstance(told["attempts"], list)
    assert {**told["attempts"][0], "ms": 0, "reason": ""} == {
        "account": "A",
        "outcome": "auth",
        "status": 401,
        "reason": "",
        "ms": 0,
    }
