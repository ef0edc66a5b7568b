"""For every cut at every place of every member: bytes of one upstream, one ending, and a true status before it."""

from __future__ import annotations

import asyncio
import re

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import Reply, Step
from tests.proxy.rig import (
    DONE,
    Rig,
    Served,
    answer,
    delta,
    event,
    fault,
    finish,
    refusal,
    reset,
    role,
    stream,
    usage,
)
from tests.proxy.seat import Seat
from tests.virtual import VirtualLoop
from troyproxy.ports import UpstreamFailed
from troyproxy.resilience.faults import Fault

NAMES = ("alpha", "beta", "gamma")
KINDS = ("reset", "end", "error", "silence", "garbage", "too long", "timeout", "status", "connect")


def _whole(name: str) -> list[bytes]:
    return [role(), delta(f"{name}1"), delta(f"{name}2"), finish(), usage(), DONE]


def _failing(name: str, cut: int, kind: str) -> Reply:
    head = _whole(name)[:cut]
    ends: dict[str, list[Step]] = {
        "reset": [reset()],
        "end": [],
        "error": [event({"error": {"message": name, "code": 500}})],
        "silence": [asyncio.Event()],
        "garbage": [b"data: {oops", reset()],
        "too long": [b"data: " + b"x" * 5000],
        "timeout": [UpstreamFailed(Fault.TIMEOUT_IDLE, body_sent=True)],
    }
    if kind == "status":
        return refusal(503, name)
    return fault() if kind == "connect" else stream(*head, *ends[kind])


replies = st.tuples(st.integers(0, 6), st.sampled_from((*KINDS, "good")))


def _reply(name: str, cut: int, kind: str) -> Reply:
    return stream(*_whole(name)) if kind == "good" else _failing(name, cut, kind)


def _run(script: list[tuple[int, str]], *, ours: bool = False) -> Served:
    """Walk one stream; *ours*: behind our own server."""

    async def run() -> Served:
        rig = Rig()
        rig.set(max_event=4096, early_commit_s=0.0)
        for name, (cut, kind) in zip(NAMES, script, strict=False):
            rig.script(**{name: _reply(name, cut, kind)})
        call = rig.call("two" if len(script) == 2 else "three", stream=True)
        call.peer = Seat() if ours else None
        served = await rig.ask(call=call)
        assert rig.idle
        return served

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())


def _endings(body: bytes) -> int:
    return body.count(b"data: [DONE]") + body.count(b'data: {"error"')


@given(st.lists(replies, min_size=2, max_size=3), st.booleans())
def test_the_client_sees_one_upstream_and_one_ending(script: list[tuple[int, str]], ours: bool) -> None:
    served = _run(script, ours=ours)
    body = served.exchange.body
    assert len({name for name in NAMES if re.search(rf"{name}\d".encode(), body)}) <= 1
    if served.exchange.status == 200:
        assert _endings(body) == 1
        assert body.count(b'"role"') == 1
        assert served.row.outcome == ("ok" if b"[DONE]" in body else "truncated")
    else:
        assert served.exchange.header("content-type") == "application/json"
        assert not served.call.ledger.served


@given(st.integers(0, 6), st.sampled_from(KINDS))
def test_a_failure_before_output_is_never_seen_when_another_member_works(cut: int, kind: str) -> None:
    served = _run([(min(cut, 1), kind), (0, "good")])
    assert (served.text, served.exchange.status) == ("beta1beta2", 200)


def test_the_answers_differ_so_that_a_splice_would_show() -> None:
    assert _whole("alpha") != _whole("beta")
    assert answer().status == 200
