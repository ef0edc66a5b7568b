"""Every clock, end to end: what the client is told when it fires, and that the upstream is closed then.

Which clock it was is told by the reason on record; when it fired is not measured.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.gateway import CHAT, Gateway, chat, client_headers, run_gateway
from tests.e2e.shapes import DONE, completion, delta, dumps, role
from tests.e2e.until import until
from tests.e2e.upstreams import HANG, HEALTHY, SILENCE, Drip, Gate, Pause, Reply, Upstreams, error, stream, whole
from tests.soak.watch import sockets

JSON: Final = (("content-type", "application/json"),)
PING: Final = b": ping\n\n"
COMMENT: Final = b": keep-alive\n\n"
CLOCKS: Final[dict[str, dict[str, float]]] = {
    "head": {"first_byte_s": 0.5, "first_output_s": 60, "idle_s": 60, "total_s": 0.5},
    "output": {"first_byte_s": 60, "first_output_s": 0.5, "idle_s": 60},
    "idle": {"first_byte_s": 60, "first_output_s": 60, "idle_s": 0.5},
    "walk": {"first_byte_s": 0.8, "total_s": 0.8},
    "walk2": {"first_byte_s": 0.8, "total_s": 0.8},
    "walk3": {"first_byte_s": 0.8, "total_s": 0.8},
    "walk4": {"first_byte_s": 0.8, "total_s": 0.8},
    "patient": {},
    "beta": {},
}
WALK: Final = ("walk", "walk2", "walk3", "walk4")
NO_OUTPUT: Final[dict[str, Reply]] = {
    "a head": stream(SILENCE),
    "a role": stream(role(), SILENCE),
    "comments": stream(Drip(PING, 0.1)),
    "half an event": stream(b"data: {", Drip(b" ", 0.1)),
    "roles": stream(Drip(role(), 0.1)),
}
NO_EVENT: Final[dict[str, Drip]] = {
    "comments": Drip(PING, 0.1),
    "named pings": Drip(b"event: ping\ndata: {}\n\n", 0.1),
    "half an event": Drip(b"data: {", 0.1),
    "blank lines": Drip(b"\n", 0.1),
}


@pytest.fixture(scope="module")
def config(upstreams: Upstreams) -> dict[str, Any]:
    providers = {
        name: {"base_url": upstreams.base_url(name), "auth": "none", "timeouts": timeouts}
        for name, timeouts in CLOCKS.items()
    }
    names = ("head", "output", "patient")
    models = [*(f"no-output-{at}" for at in range(len(NO_OUTPUT))), "late-False", "late-True", "open", "open-fails"]
    pairs = {f"{name}-{model}": {"members": [f"{name}/{model}", f"beta/{model}"]} for name in names for model in models}
    chains = {f"walk-{streams}": {"members": [f"{name}/w-{streams}" for name in WALK]} for streams in (False, True)}
    return {"providers": providers, "combos": {**pairs, **chains}}


@pytest.fixture(scope="module")
def gateway(folder: Path, config: dict[str, Any]) -> Iterator[Gateway]:
    limits = {"TROY_REQUEST_TIMEOUT_MS": "2000", "TROY_KEEPALIVE_S": "0.2", "TROY_WRITE_STALL_MS": "700"}
    with run_gateway(folder, config, TROY_RETRY_BUDGET="0", **limits) as running:
        yield running


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory, config: dict[str, Any]) -> Iterator[Gateway]:
    """A gateway that opens streams early."""
    folder = tmp_path_factory.mktemp("early")
    with run_gateway(folder, config, TROY_EARLY_COMMIT_MS="100", TROY_KEEPALIVE_S="0.1") as running:
        yield running


def reasons(gateway: Gateway, request_id: str) -> list[str]:
    """Return why each attempt failed."""
    return [attempt["reason"] for attempt in gateway.row(request_id)["attempts"]]


def without_comments(body: bytes) -> bytes:
    return body.replace(COMMENT, b"")


# --- first byte ---


@pytest.mark.parametrize("streams", [False, True])
def test_a_head_that_does_not_come_in_time_is_somebody_elses_turn(
    gateway: Gateway, upstreams: Upstreams, streams: bool
) -> None:
    model = f"late-{streams}"
    upstreams.script("head", HANG, model=model)
    answer = gateway.post(chat(f"head-{model}", stream=streams))
    assert (answer.status, answer.headers["x-troy-model"]) == (200, f"beta/{model}")
    until(lambda: upstreams.states("head", model=model) == ["left"])
    reason = "timeout first byte: transient" if streams else "timeout total: transient"
    assert reasons(gateway, answer.headers["x-troy-request-id"])[0] == reason


@pytest.mark.parametrize("streams", [False, True])
def test_alone_it_is_a_504(gateway: Gateway, upstreams: Upstreams, streams: bool) -> None:
    upstreams.script("head", HANG, model=f"alone-{streams}")
    answer = gateway.post(chat(f"head/alone-{streams}", stream=streams))
    assert (answer.status, answer.code) == (504, "timeout")
    until(lambda: upstreams.states("head", model=f"alone-{streams}") == ["left"])


def test_a_whole_answer_that_drips_is_cut_at_its_own_deadline(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("head", Reply(200, JSON, (Drip(b" ", 0.1),)), model="drips")
    answer = gateway.post(chat("head/drips"))
    assert (answer.status, answer.code) == (504, "timeout")
    until(lambda: upstreams.states("head", model="drips") == ["left"])


# --- first output ---


@pytest.mark.parametrize("number", range(len(NO_OUTPUT)), ids=list(NO_OUTPUT))
def test_whatever_comes_without_output_runs_against_the_first_output(
    gateway: Gateway, upstreams: Upstreams, number: int
) -> None:
    model = f"no-output-{number}"
    upstreams.script("output", list(NO_OUTPUT.values())[number], model=model)
    with closing(gateway.stream(chat(f"output-{model}"))) as answer:
        assert (answer.status, answer.headers["x-troy-model"]) == (200, f"beta/{model}")
        assert without_comments(answer.rest()).endswith(DONE)
    until(lambda: upstreams.states("output", model=model) == ["left"])
    assert reasons(gateway, answer.headers["x-troy-request-id"])[0] == "timeout total: transient"


def test_before_the_first_output_no_other_clock_of_a_stream_runs(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("idle", stream(role(), Pause(1.0), delta("late"), delta(finish="stop"), DONE), model="thinks")
    answer = gateway.post(chat("idle/thinks", stream=True))
    assert (answer.status, without_comments(answer.body)) == (
        200,
        role() + delta("late") + delta(finish="stop") + DONE,
    )


# --- idle ---


@pytest.mark.parametrize("kind", NO_EVENT)
def test_only_events_keep_a_stream_from_being_idle(gateway: Gateway, upstreams: Upstreams, kind: str) -> None:
    model = kind.replace(" ", "-")
    upstreams.script("idle", stream(role(), delta("half"), NO_EVENT[kind]), model=model)
    with closing(gateway.stream(chat(f"idle/{model}"))) as answer:
        body = without_comments(answer.rest())
    assert body.startswith(role() + delta("half"))
    assert body.count(b'"error"') == 1
    assert b"upstream idle for over 500 ms" in body
    assert DONE not in body
    until(lambda: upstreams.states("idle", model=model) == ["left"])
    assert reasons(gateway, answer.headers["x-troy-request-id"]) == ["timeout idle: transient"]


def test_a_stream_in_good_time_may_take_longer_than_any_of_its_clocks_and_than_the_walk(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    words = [step for _ in range(12) for step in (delta("x"), Pause(0.2))]
    upstreams.script("idle", stream(role(), *words, delta(finish="stop"), DONE), model="long")
    answer = gateway.post(chat("idle/long", stream=True))
    assert without_comments(answer.body) == role() + delta("x") * 12 + delta(finish="stop") + DONE


# --- the whole walk ---


@pytest.mark.parametrize("streams", [False, True])
def test_the_walk_ends_at_its_deadline_and_closes_what_it_waits_for(
    gateway: Gateway, upstreams: Upstreams, streams: bool
) -> None:
    for name in WALK:
        upstreams.script(name, HANG, model=f"w-{streams}")
    answer = gateway.post(chat(f"walk-{streams}", stream=streams))
    assert (answer.status, answer.code, answer.headers["x-troy-attempts"]) == (504, "timeout", "3")
    for name in WALK[:3]:
        until(lambda name=name: upstreams.states(name, model=f"w-{streams}") == ["left"])  # type: ignore[misc]
    assert upstreams.states(WALK[3], model=f"w-{streams}") == []


# --- keep-alives ---


def test_a_comment_keeps_a_silent_stream_alive_and_nothing_else_changes(gateway: Gateway, upstreams: Upstreams) -> None:
    rest = delta("b") + delta(finish="stop") + DONE
    upstreams.script("patient", stream(role(), delta("a"), Gate("alive"), rest), model="alive")
    with closing(gateway.stream(chat("patient/alive"))) as answer:
        body = b""
        while body.count(COMMENT) < 3:
            body += answer.read()
        upstreams.open("alive")
        body += answer.rest()
    assert without_comments(body) == role() + delta("a") + rest


def test_a_whole_answer_gets_no_comment(gateway: Gateway, upstreams: Upstreams) -> None:
    reply = Reply(200, JSON, (b" ", Pause(0.8), completion("late")))
    upstreams.script("patient", reply, model="no-comment")
    assert gateway.post(chat("patient/no-comment")).body == b" " + completion("late")


def test_an_early_head_leaves_every_way_open(early: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("patient", stream(role(), Gate("open"), b'data: {"error":{"code":503}}\n\n'), model="open")
    upstreams.script("beta", HEALTHY, model="open")
    with closing(early.stream(chat("patient-open"))) as answer:
        assert answer.status == 200
        body = b""
        while body.count(COMMENT) < 2:
            body += answer.read()
        assert body == COMMENT * body.count(COMMENT)
        upstreams.open("open")
        body += answer.rest()
    assert without_comments(body) == role() + delta("open by beta") + delta(finish="stop") + DONE
    assert early.row(answer.headers["x-troy-request-id"])["trail"].endswith("beta/open#beta-keyless=ok")


def test_after_an_early_head_a_last_failure_is_told_in_band(early: Gateway, upstreams: Upstreams) -> None:
    for name in ("patient", "beta"):
        upstreams.script(name, stream(Gate("open-fails"), b'data: {"error":{"code":503}}\n\n'), model="open-fails")
    with closing(early.stream(chat("patient-open-fails"))) as answer:
        assert (answer.status, answer.read()) == (200, COMMENT)
        upstreams.open("open-fails")
        body = without_comments(answer.rest())
    assert (body.count(b"data: "), body.count(b'"error"'), DONE in body) == (1, 1, False)


def test_an_answer_before_the_early_head_has_its_true_status(early: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("patient", error(400, "no such thing"), model="true-status")
    assert early.post(chat("patient/true-status", stream=True)).status == 400


# --- a client that does not read ---


@pytest.fixture
def deaf() -> Iterator[socket.socket]:
    """A client with a small ear that nobody listens with."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        yield client


def ask(deaf: socket.socket, gateway: Gateway, payload: dict[str, object]) -> None:
    body = dumps(payload)
    head = "\r\n".join(f"{name}: {value}" for name, value in (*client_headers(), ("content-length", len(body))))
    deaf.connect(("127.0.0.1", gateway.port))
    deaf.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: x\r\n{head}\r\n\r\n".encode() + body)


def test_a_client_that_does_not_read_is_dropped_and_the_upstream_closed(
    gateway: Gateway, upstreams: Upstreams, deaf: socket.socket
) -> None:
    upstreams.script("patient", stream(role(), Drip(delta("y" * 60_000), 0.001)), model="stalled")
    ask(deaf, gateway, chat("patient/stalled", stream=True))
    until(lambda: upstreams.states("patient", model="stalled") == ["left"])
    until(lambda: gateway.metric("account_inflight") == 0)
    row = until(lambda: [row for row in gateway.rows() if row["model"] == "stalled"])[0]
    assert (row["outcome"], row["status"], "ASGI" in gateway.output()) == ("cancelled", 499, False)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system cannot drop the deaf")
@pytest.mark.parametrize("streams", [False, True])
def test_what_waits_for_a_client_that_never_reads_is_given_up_with_its_connection(
    gateway: Gateway, upstreams: Upstreams, deaf: socket.socket, streams: bool
) -> None:
    reply = stream(Drip(delta("y" * 60_000), 0.001)) if streams else whole(completion("y" * (24 << 20)))
    upstreams.script("patient", reply, model=f"deaf-{streams}")
    before = sockets(gateway.pid)
    ask(deaf, gateway, chat(f"patient/deaf-{streams}", stream=streams))
    row = until(lambda: [row for row in gateway.rows() if row["model"] == f"deaf-{streams}"])[0]
    assert (row["outcome"], row["status"]) == ("cancelled", 499)
    until(lambda: sockets(gateway.pid) <= before)
    assert deaf.getpeername()[1] == gateway.port  # all the while nobody here has hung up


@pytest.mark.parametrize("sent", [b"", b'{"model": '])
def test_a_client_that_does_not_send_its_body_is_told_so_and_let_go(
    gateway: Gateway, deaf: socket.socket, sent: bytes
) -> None:
    head = "\r\n".join(f"{name}: {value}" for name, value in (*client_headers(), ("content-length", 100)))
    deaf.settimeout(20)
    deaf.connect(("127.0.0.1", gateway.port))
    deaf.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: x\r\n{head}\r\n\r\n".encode() + sent)
    answer = b"".join(iter(lambda: deaf.recv(1 << 16), b""))  # to the end of the connection
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"the request body did not arrive in time" in answer
    until(lambda: gateway.metric("inflight_requests") == 0)
