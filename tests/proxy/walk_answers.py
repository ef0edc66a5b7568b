"""What the upstream of `test_walk_machine` can answer, and what the design says that it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tests.fakes import Reply
from tests.proxy.rig import COMPLETION, DONE, answer, delta, finish, refusal, reset, role, stream, usage
from troyproxy.ports import UpstreamFailed
from troyproxy.resilience.faults import Fault


class Answer(StrEnum):
    OK = "ok"
    RATE = "429"
    RATE_HINT = "429, retry-after 20"
    ERROR = "500"
    OVERLOAD = "503 overloaded"
    OVERLOAD_HINT = "503 overloaded, retry-after 7"
    UNAUTHORIZED = "401"
    UNPAID = "402"
    NO_MODEL = "404 model"
    BAD_REQUEST = "400"
    TOO_LARGE = "413"
    UNKNOWN_FIELD = "400 stream_options"
    REFUSED = "no connection"
    RESET = "reset"
    CUT = "reset in the body"
    GARBAGE = "no completion"
    HANG = "hangs"


class Then(StrEnum):
    """Where the walk goes."""

    STOP = "stop"
    ACCOUNT = "next account"
    MEMBER = "next member"


class Over(StrEnum):
    """What is locked."""

    NOTHING = "nothing"
    PAIR = "pair"
    ACCOUNT = "account"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Meaning:
    """A row of the design's table. *lock_s*: shortest and longest; None with a lock is the back-off by level."""

    outcome: str
    then: Then = Then.ACCOUNT
    over: Over = Over.NOTHING
    lock_s: tuple[float, float] | None = None
    hard: bool = False
    counts: bool = False
    transport: bool = False


_PAIR: Final = Over.PAIR
_TWO: Final = (2.0, 2.0)
MEANINGS: Final[Mapping[Answer, Meaning]] = {
    Answer.RATE: Meaning("rate", over=_PAIR, hard=True),
    Answer.RATE_HINT: Meaning("rate", over=_PAIR, lock_s=(20.0, 20.0), hard=True),
    Answer.ERROR: Meaning("transient", over=_PAIR, lock_s=_TWO, counts=True),
    Answer.OVERLOAD: Meaning("overload", over=_PAIR, lock_s=(4.5, 5.5), counts=True),
    Answer.OVERLOAD_HINT: Meaning("overload", over=_PAIR, lock_s=(7.0, 7.0), hard=True, counts=True),
    Answer.UNAUTHORIZED: Meaning("auth", over=Over.ACCOUNT, lock_s=(120.0, 120.0), hard=True),
    Answer.UNPAID: Meaning("quota", over=Over.ACCOUNT, lock_s=(1800.0, 1800.0), hard=True),
    Answer.NO_MODEL: Meaning("model", Then.MEMBER, Over.MODEL, (300.0, 300.0)),
    Answer.UNKNOWN_FIELD: Meaning("model", Then.MEMBER, Over.MODEL, (300.0, 300.0)),
    Answer.BAD_REQUEST: Meaning("request", Then.STOP),
    Answer.TOO_LARGE: Meaning("member", Then.MEMBER),
    Answer.REFUSED: Meaning("transient", over=_PAIR, lock_s=_TWO, counts=True, transport=True),
    Answer.RESET: Meaning("transient", over=_PAIR, lock_s=_TWO, counts=True, transport=True),
    Answer.CUT: Meaning("transient", over=_PAIR, lock_s=_TWO, counts=True, transport=True),
    Answer.GARBAGE: Meaning("transient", over=_PAIR, lock_s=_TWO, counts=True),
    Answer.HANG: Meaning("transient", Then.MEMBER, _PAIR, _TWO, counts=True, transport=True),
}
_REFUSALS: Final[Mapping[Answer, Reply]] = {
    Answer.RATE: refusal(429),
    Answer.RATE_HINT: refusal(429, retry_after="20"),
    Answer.ERROR: refusal(500),
    Answer.OVERLOAD: refusal(503, "overloaded"),
    Answer.OVERLOAD_HINT: refusal(503, "overloaded", retry_after="7"),
    Answer.UNAUTHORIZED: refusal(401),
    Answer.UNPAID: refusal(402),
    Answer.NO_MODEL: refusal(404, "gone", "model_not_found"),
    Answer.UNKNOWN_FIELD: refusal(400, "unknown field stream_options", param="stream_options"),
    Answer.BAD_REQUEST: refusal(400, "malformed"),
    Answer.TOO_LARGE: refusal(413),
    Answer.GARBAGE: answer(b"<html>hello</html>"),
}
_FAULTS: Final[Mapping[Answer, UpstreamFailed]] = {
    Answer.REFUSED: UpstreamFailed(Fault.CONNECT),
    Answer.RESET: reset(),
}


def reply_to(kind: Answer, wait_s: float, *, streamed: bool) -> Reply:
    """Return what the upstream does, the first of it after *wait_s*."""
    if kind is Answer.HANG:
        return Reply(before=[1e6])
    if kind in _FAULTS:
        return Reply(before=[wait_s, _FAULTS[kind]])
    if kind is Answer.OK and not streamed:
        return answer(COMPLETION, before=[wait_s])
    if kind is Answer.OK:
        return stream(role(), delta("ok"), 2.0, finish(), usage(), DONE, before=[wait_s])
    if kind is Answer.CUT:
        body = (role(), delta("o"), 1.0, reset()) if streamed else (b'{"object": ', reset())
        return stream(*body, before=[wait_s]) if streamed else Reply(body=body, before=[wait_s])
    plain = _REFUSALS[kind]
    return Reply(plain.status, plain.body, plain.headers, [wait_s])
