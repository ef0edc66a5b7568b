"""Does each member of a combo answer? One tiny real chat request to every one of them, side by side.

Used by ``POST /api/combos/{id}/test`` and ``troyproxy combos test``. A trial is a request like any other: it waits its
turn at a circuit or a cooldown, what it learns counts, and its cost is recorded, under the key ``test``. It moves no
cursor of the combo, and nothing that a client sees.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Final

from troyproxy.accounting.records import AttemptRecord
from troyproxy.catalog.combos import Combo, Member
from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import Origin
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.ports import UsageSink
from troyproxy.proxy.answers import Message, Send
from troyproxy.proxy.call import CHAT_PATH, Call
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.rows import row_of
from troyproxy.proxy.walk import Walk
from troyproxy.resilience.classes import ErrorClass
from troyproxy.routing.effort import decide
from troyproxy.routing.eligibility import SkipReason
from troyproxy.routing.members import Candidate
from troyproxy.routing.names import NameKind, Resolution
from troyproxy.routing.needs import needs_of
from troyproxy.wire import json

ASK: Final = {"messages": [{"role": "user", "content": "Reply with one word."}], "max_tokens": 32}
"""The tiny request, but for its model."""
AT_ONCE: Final = 4
MOST: Final = 50
"""Members that are asked; a longer combo's others are told as left out."""
MEMBER_S: Final = 30.0
"""How long one member may take, with all its accounts."""
ALL_S: Final = 60.0
LEFT_OUT: Final = "left-out"
TESTER: Final = Key(id="test", name="test", digest=b"", origin=Origin.BUILTIN)
_SHOWN: Final = 500


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one member. *skipped* says why it was not asked; *message* is the answer's text, or the error's."""

    member: str
    account: str | None
    ok: bool = False
    status: int | None = None
    """As a client would see it."""
    error_class: str | None = None
    ms: float | None = None
    message: str | None = None
    skipped: str | None = None
    attempts: tuple[AttemptRecord, ...] = ()


class Trials:
    """Asks members. *snapshot* is what the gateway goes by now."""

    def __init__(self, gear: Gear, planner: Planner, usage: UsageSink, snapshot: Callable[[], Snapshot]) -> None:
        self._gear, self._planner, self._usage, self._snapshot = gear, planner, usage, snapshot
        self._walk = Walk(gear, planner)

    async def combo(self, combo: Combo) -> list[Trial]:
        """Return what comes of every member of *combo*, in saved order, those of combos inside it too."""
        members = {member.identity: member for member in self._planner.members(self._call(combo))}
        places, until = asyncio.Semaphore(AT_ONCE), asyncio.get_running_loop().time() + ALL_S

        async def ask(member: Candidate) -> Trial:
            async with places:
                return await self._ask(member, until)

        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(ask(member)) for member in list(members.values())[:MOST]]
        left = [Trial(member.spec, member.account, skipped=LEFT_OUT) for member in list(members.values())[MOST:]]
        return [*(task.result() for task in asked), *left]

    def _call(self, combo: Combo) -> Call:
        payload: dict[str, object] = {"model": combo.name, **ASK}
        clock, snapshot = self._gear.clock, self._snapshot()
        return Call(
            request_id=f"req_{secrets.token_hex(12)}",
            at=clock.now(),
            started=clock.monotonic(),
            route=CHAT_PATH,
            snapshot=snapshot,
            key=TESTER,
            seed=secrets.randbits(64),
            body=json.encode(payload),
            payload=payload,
            resolution=Resolution(NameKind.COMBO, combo.name, combo.name, combo=combo),
            effort=decide(payload, None, snapshot.default_effort),
            needs=needs_of(payload),
        )

    async def _ask(self, member: Candidate, until: float) -> Trial:
        if member.provider is None:
            return Trial(member.spec, member.account, skipped=str(SkipReason.UNKNOWN_PROVIDER))
        alone = Combo(id="test", name=member.spec, members=(Member(model=member.spec, account=member.account),))
        call = self._call(alone)
        plan = self._planner.draft(call).plan
        if not plan.candidates:
            return Trial(member.spec, member.account, skipped=str(plan.skipped[0].reason))
        self._planner.plan(call)
        return await self._asked(call, Trial(member.spec, member.account), until)

    async def _asked(self, call: Call, trial: Trial, until: float) -> Trial:
        clock, observer, sent = self._gear.clock, self._gear.observer, list[Message]()
        late = min(until, asyncio.get_running_loop().time() + MEMBER_S)
        observer.request_started()
        try:
            async with asyncio.timeout_at(late):
                await self._walk.run(call, _silent, _into(sent))
        except TimeoutError:
            trial = replace(trial, error_class=str(ErrorClass.TRANSIENT), message="no answer in time")
        finally:
            row = row_of(call, duration_s=clock.monotonic() - call.started)
            self._usage.record(row)
            observer.request_finished(row)
        return replace(_judged(trial, sent, row.attempts), ms=row.duration_ms)


def _judged(trial: Trial, sent: list[Message], attempts: tuple[AttemptRecord, ...]) -> Trial:
    trial = replace(trial, attempts=attempts)
    if not sent:
        return trial
    status, body = int(sent[0]["status"]), b"".join(message.get("body", b"") for message in sent[1:])
    failed = attempts[-1].outcome if attempts and attempts[-1].outcome != "ok" else None
    ok = status == 200 and failed is None
    return replace(trial, ok=ok, status=status, error_class=failed, message=message_of(body))


def message_of(body: bytes) -> str:
    """Return the text of a completion, or the message of an error; of anything else its beginning."""
    try:
        value = json.decode(body)
    except json.MalformedJSON:
        value = None
    match value:
        case {"error": {"message": str(text)}} | {"choices": [{"message": {"content": str(text)}}, *_]}:
            return text[:_SHOWN]
    return body.decode("utf-8", "replace")[:_SHOWN]


def as_told(trial: Trial) -> dict[str, object]:
    """Return *trial*, JSON-ready."""
    attempts = [
        {
            "account": attempt.account,
            "outcome": attempt.outcome,
            "status": attempt.status,
            "reason": attempt.reason,
            "ms": attempt.duration_ms,
        }
        for attempt in trial.attempts
    ]
    told = asdict(replace(trial, attempts=()))
    return {"class": told.pop("error_class"), **told, "attempts": attempts}


async def _silent() -> Message:
    """Stay: whoever asks for a trial waits for it."""
    await asyncio.Event().wait()
    return {"type": "http.disconnect"}  # pragma: no cover -- never


def _into(sent: list[Message]) -> Send:
    async def send(message: Message) -> None:
        sent.append(message)

    return send
