from __future__ import annotations

import json
import socket
from dataclasses import replace
from typing import Never

import pytest

from tests.cli.conftest import Shell
from tests.proxy.replaying import attempt, request
from troyproxy.cli import progress
from troyproxy.proxy.replay.trace import Target, TracedRequest, head_line, request_line

A = """
providers:
  alpha: {base_url: "http://127.0.0.1:1/v1", auth: none, models: {m1: {price: {input: 1, output: 2}}}}
  beta: {base_url: "http://127.0.0.1:1/v1", accounts: [{name: x, api_key: env:NOBODY_SET_THIS}], models: {m2: {}}}
combos: {two: {members: [alpha/m1, beta/m2]}}
"""
B = A.replace("members: [alpha/m1, beta/m2]", "members: [beta/m2]")


def traffic(count: int) -> list[TracedRequest]:
    """Requests whose first member fails half the time, and whose second serves."""
    failing = (attempt("alpha/m1#alpha-keyless", "member", status=404), attempt("beta/m2#x"))
    good = (attempt("alpha/m1#alpha-keyless"),)
    made = []
    for n in range(count):
        attempts = failing if n % 2 else good
        served = Target(attempts[-1].provider, attempts[-1].model, attempts[-1].account)
        made.append(request(*attempts, at=1000.0 + n, name=f"r{n}", served=served))
    return made


def write(shell: Shell, *requests: TracedRequest, name: str = "t.jsonl") -> None:
    lines = [head_line(exported_at=1.0, since=0.0), *map(request_line, requests)]
    (shell.folder / name).write_bytes(b"".join(lines))
    shell.write("a.yaml", A)
    shell.write("b.yaml", B)


def test_policies_stand_side_by_side_with_what_was_recorded(shell: Shell) -> None:
    write(shell, *traffic(20))
    told = shell("simulate", "t.jsonl", "--policy", "a.yaml", "--policy", "b.yaml").json()
    assert told["trace"] == {"file": "t.jsonl", "requests": 20, "since": 1000.0, "until": 1019.0}
    recorded, (a, b) = told["recorded"], told["policies"]
    assert (a["policy"], b["policy"]) == ("a.yaml", "b.yaml")
    assert recorded["members"] == a["members"] == {"alpha/m1": 10, "beta/m2": 10}
    assert recorded["attempts"] == a["attempts"] == 30
    assert b["members"] == {"beta/m2": 20}
    assert b["attempts_per_request"] == 1.0
    assert b["outcomes_from"]["recorded"] == 10
    assert a["success_rate"] == b["success_rate"] == 1.0


@pytest.mark.usefixtures("terminal")
def test_a_table_is_printed_on_a_terminal(shell: Shell) -> None:
    write(shell, *traffic(20))
    shown = shell("simulate", "t.jsonl", "-p", "a.yaml", "-p", "b.yaml").out
    assert "a.yaml" in shown
    assert "attempts per request" in shown
    assert "1.500" in shown
    assert "20  100%" in shown
    assert "10  50%" in shown


@pytest.mark.usefixtures("terminal")
def test_the_table_shows_what_is_not_known_and_who_did_not_serve(shell: Shell) -> None:
    write(shell, request(attempt("alpha/m1#alpha-keyless", "rate", status=429)))
    shown = shell("simulate", "t.jsonl", "-p", "a.yaml").out
    assert "0.00%" in shown
    assert "(1 unknown)" in shown


@pytest.mark.usefixtures("terminal")
def test_members_are_not_shown_where_nobody_served(shell: Shell) -> None:
    write(shell, request(attempt("alpha/m1#alpha-keyless", "request", status=400), outcome="client_error"))
    assert "served by" not in shell("simulate", "t.jsonl", "-p", "a.yaml").out


@pytest.mark.usefixtures("terminal")
def test_json_may_be_asked_for_on_a_terminal(shell: Shell) -> None:
    write(shell, *traffic(2))
    assert shell("simulate", "t.jsonl", "-p", "a.yaml", "--json").json()["seed"] == 0


def test_the_seed_is_told(shell: Shell) -> None:
    write(shell, *traffic(2))
    assert shell("simulate", "t.jsonl", "-p", "a.yaml", "--seed", "9").json()["seed"] == 9


def test_a_trace_may_come_by_standard_input(shell: Shell) -> None:
    write(shell, *traffic(4))
    text = (shell.folder / "t.jsonl").read_text(encoding="utf-8")
    assert shell("simulate", "-", "-p", "a.yaml", stdin=text).json()["recorded"]["requests"] == 4


def test_names_that_a_policy_does_not_know_are_said(shell: Shell) -> None:
    write(shell, replace(request(attempt("alpha/m1#alpha-keyless")), model="other/x"))
    done = shell("simulate", "t.jsonl", "-p", "a.yaml")
    assert done.json()["policies"][0]["unknown_models"] == {"other/x": 1}
    assert "a.yaml: 1 requests asked for 'other/x', which it does not know" in done.err


def test_no_socket_is_opened_and_nothing_is_written(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Never:
        raise AssertionError("simulate opens no socket")

    for method in ("connect", "connect_ex", "bind", "listen", "sendto"):
        monkeypatch.setattr(socket.socket, method, refuse)
    write(shell, *traffic(4))
    before = sorted(path.name for path in shell.folder.iterdir())
    assert shell("simulate", "t.jsonl", "-p", "a.yaml").status == 0
    assert sorted(path.name for path in shell.folder.iterdir()) == before


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (b"", "t.jsonl: is empty"),
        (b"{}\n", "t.jsonl:1: is not the head of a trace"),
        (head_line(exported_at=1.0, since=0.0), "t.jsonl: holds no request"),
        (head_line(exported_at=1.0, since=0.0) + b'{"at": 1}\n', "t.jsonl:2: Object missing required field"),
    ],
)
def test_a_bad_trace_is_one_line_with_its_place(shell: Shell, lines: bytes, told: str) -> None:
    write(shell)
    (shell.folder / "t.jsonl").write_bytes(lines)
    done = shell("simulate", "t.jsonl", "-p", "a.yaml")
    assert (done.status, done.out, done.err.count("\n")) == (1, "", 1)
    assert told in done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nowhere.jsonl", "-p", "a.yaml"), "nowhere.jsonl: cannot be read"),
        ((".", "-p", "a.yaml"), "cannot be read"),
        (("t.jsonl", "-p", "nowhere.yaml"), "nowhere.yaml"),
        (("t.jsonl", "-p", "bad.yaml"), "bad.yaml"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(shell: Shell, words: tuple[str, ...], told: str) -> None:
    write(shell, *traffic(1))
    shell.write("bad.yaml", "providers: {x: {}}\n")
    done = shell("simulate", *words)
    assert (done.status, done.out) == (1, "")
    assert told in done.err


@pytest.mark.parametrize("words", [(), ("t.jsonl",), ("t.jsonl", "-p", "a.yaml", "--seed", "x")])
def test_a_missing_argument_is_a_usage_error(shell: Shell, words: tuple[str, ...]) -> None:
    assert shell("simulate", *words).status == 2


def test_a_bar_is_shown_for_a_long_trace_where_somebody_looks(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "watched", lambda: True)
    monkeypatch.setattr(progress, "LONG", 10)
    write(shell, *traffic(20))
    assert json.loads(shell("simulate", "t.jsonl", "-p", "a.yaml").out)["trace"]["requests"] == 20
    assert "simulating" in shell("simulate", "t.jsonl", "-p", "a.yaml").err


def test_no_bar_is_shown_on_a_pipe(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LONG", 10)
    write(shell, *traffic(20))
    assert shell("simulate", "t.jsonl", "-p", "a.yaml").err == ""
