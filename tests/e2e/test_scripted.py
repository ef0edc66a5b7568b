"""The harness itself: the scripted upstream does what it is told, and tells what it saw."""

from __future__ import annotations

import http.client
from contextlib import closing
from typing import Final

import pytest

from tests.e2e.client import send
from tests.e2e.gateway import chat
from tests.e2e.shapes import dumps
from tests.e2e.until import until
from tests.e2e.upstreams import (
    CUT,
    ECHO,
    HANG,
    HEALTHY,
    RESET,
    RST,
    SILENCE,
    Drip,
    Gate,
    Pause,
    Reply,
    Upstreams,
    error,
    reads_in,
    stream,
)

CASE: Final = (
    "200, content-type: text/event-stream; chunks=[b'data: [\\xe5', b'\\x8c\\x97]\\n\\n', b'x']; then close. chunks=[]"
)


def ask(upstreams: Upstreams, model: str, key: str = "sk-up-A") -> http.client.HTTPConnection:
    headers = [("authorization", f"Bearer {key}")]
    return send(upstreams.port, "POST", "/alpha/v1/chat/completions", dumps(chat(model)), headers)


def test_each_chunk_arrives_as_one_read(upstreams: Upstreams) -> None:
    chunks = (b"data: {\xe5", b"\x8c", b"\x97}\n", b"\n")
    upstreams.script("alpha", stream(*chunks, framing="close"), model="reads")
    with closing(ask(upstreams, "reads")) as connection:
        connection.sock.settimeout(20)
        got = [connection.sock.recv(1 << 16)]
        while got[-1]:
            got.append(connection.sock.recv(1 << 16))
    assert tuple(got[1:-1]) == chunks
    assert got[0].startswith(b"HTTP/1.1 200 ")


def test_replies_come_in_turn_and_the_last_one_stays(upstreams: Upstreams) -> None:
    upstreams.script("alpha", error(429, retry_after="3"), HEALTHY, model="turns")
    statuses = []
    for _ in range(3):
        with closing(ask(upstreams, "turns")) as connection:
            statuses.append(connection.getresponse().status)
    assert statuses == [429, 200, 200]


def test_the_most_specific_script_answers(upstreams: Upstreams) -> None:
    upstreams.script("alpha", error(500), model="specific")
    upstreams.script("alpha", ECHO, model="specific", key="sk-up-B")
    statuses = {}
    for key in ("sk-up-A", "sk-up-B"):
        with closing(ask(upstreams, "specific", key)) as connection:
            statuses[key] = connection.getresponse().status
    assert statuses == {"sk-up-A": 500, "sk-up-B": 200}
    assert [request.key for request in upstreams.requests("alpha", model="specific")] == list(statuses)


@pytest.mark.parametrize("reply", [RESET, stream(b"half", RST)], ids=["at once", "in the body"])
def test_a_reset_is_a_reset(upstreams: Upstreams, reply: Reply) -> None:
    upstreams.script("alpha", reply, model="reset")
    with closing(ask(upstreams, "reset")) as connection, pytest.raises(ConnectionResetError):
        connection.getresponse().read()


def test_a_cut_ends_without_the_end_that_the_framing_asks_for(upstreams: Upstreams) -> None:
    upstreams.script("alpha", stream(b"half", CUT), model="cut")
    with closing(ask(upstreams, "cut")) as connection, pytest.raises(http.client.IncompleteRead):
        connection.getresponse().read()
    until(lambda: upstreams.states("alpha", model="cut") == ["cut"])


@pytest.mark.parametrize("reply", [HANG, stream(SILENCE), stream(Drip(b"x", 0.01))], ids=["hang", "silence", "drip"])
def test_a_peer_that_leaves_is_seen(upstreams: Upstreams, reply: Reply) -> None:
    upstreams.script("alpha", reply, model="left")
    before = len(upstreams.states("alpha", model="left"))
    connection = ask(upstreams, "left")
    until(lambda: upstreams.states("alpha", model="left")[before:] == ["open"])
    assert upstreams.connections()["open"] >= 1
    connection.close()
    until(lambda: upstreams.states("alpha", model="left")[before:] == ["left"])


def test_a_gate_holds_until_it_is_opened(upstreams: Upstreams) -> None:
    upstreams.script("alpha", stream(b"one", Gate("two"), Pause(0.001), b"two"), model="gate")
    with closing(ask(upstreams, "gate")) as connection:
        response = connection.getresponse()
        assert response.read1(100) == b"one"
        assert upstreams.states("alpha", model="gate") == ["open"]
        upstreams.open("two")
        assert response.read() == b"two"
    until(lambda: upstreams.states("alpha", model="gate") == ["done"])


def test_the_reads_of_a_field_case_are_taken_as_they_are_written() -> None:
    assert reads_in(CASE) == (b"data: [\xe5", b"\x8c\x97]\n\n", b"x")
