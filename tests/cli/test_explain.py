from __future__ import annotations

import socket
from typing import Never

import pytest

from tests.cli.conftest import Shell
from troyproxy.auto.weights import DEFAULT, FACTORS, PACKS


@pytest.fixture
def _no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Never:
        raise AssertionError("explain opens no socket")

    for method in ("connect", "connect_ex", "bind", "listen", "sendto"):
        monkeypatch.setattr(socket.socket, method, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("_no_sockets")
def test_the_decision_is_made_without_a_socket(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk_0123456789abcdefghijklmnop")
    told = shell("explain", "groq/llama-3.3-70b-versatile").json()
    assert told["order"] == ["groq/llama-3.3-70b-versatile"]


def test_json_is_printed_where_nobody_looks(shell: Shell) -> None:
    told = shell("explain", "demo").json()
    assert told["order"] == ["demo/fail-429-retry-1", "demo/chat"]


@pytest.mark.usefixtures("terminal")
def test_a_table_is_printed_on_a_terminal(shell: Shell) -> None:
    shown = shell("explain", "demo").out
    assert "a combo has this name" in shown
    assert "demo/fail-429-retry-1 → demo/chat" in shown
    assert "eligible" in shown


@pytest.mark.usefixtures("terminal")
def test_json_may_be_asked_for_on_a_terminal(shell: Shell) -> None:
    assert shell("explain", "demo", "--json").json()["refused"] is None


IMAGE = '{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]}'


def test_the_body_is_that_of_the_file(shell: Shell) -> None:
    shell.write("request.json", IMAGE)
    told = shell("explain", "demo", "--body", "request.json").json()
    assert {member["reason"] for member in told["members"]} == {"no-vision"}
    assert told["refused"]["status"] == 503


def test_headers_and_a_key_are_those_of_the_request(shell: Shell) -> None:
    shell("keys", "create", "narrow", "--models", "demo/*")
    asked = ("explain", "auto", "--header", "x-troy-mode: ship-fast", "-H", "X-Troy-Task: coding", "--key", "narrow")
    (scored,) = shell(*asked).json()["auto"]
    assert (scored["task"], scored["weights"]) == ("coding", dict(PACKS["ship-fast"]))
    refused = shell("explain", "groq/x", "--key", "narrow")
    assert (refused.status, "not found" in refused.err or "may not use" in refused.err) == (1, True)


@pytest.mark.parametrize("header", ["x-troy-mode", ": x", "x-troy-mode: f\u00fcr"])
def test_what_is_no_header_is_one_line(shell: Shell, header: str) -> None:
    done = shell("explain", "auto", "-H", header)
    assert (done.status, done.err.count("\n")) == (1, 1)
    assert "is no header, as in 'x-troy-mode: cheap'" in done.err


def test_the_body_may_come_by_standard_input(shell: Shell) -> None:
    assert shell("explain", "demo", "--body", "-", stdin=IMAGE).json()["needs"]["vision"] is True


@pytest.mark.usefixtures("terminal")
def test_a_refusal_is_told_on_a_terminal(shell: Shell) -> None:
    shell.write("request.json", IMAGE)
    assert "no member of 'demo' can serve this request" in shell("explain", "demo", "--body", "request.json").out


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("nowhere.json", None, "cannot be read"),
        ("bad.json", "{", "not valid JSON"),
        ("list.json", "[]", "must be a JSON object"),
    ],
)
def test_a_bad_body_is_one_line(shell: Shell, name: str, content: str | None, told: str) -> None:
    if content is not None:
        shell.write(name, content)
    done = shell("explain", "demo", "--body", name)
    assert (done.status, done.out, done.err.count("\n")) == (1, "", 1)
    assert told in done.err


def test_an_unknown_model_is_one_line_with_near_names(shell: Shell) -> None:
    done = shell("explain", "dem")
    assert (done.status, done.err.count("\n")) == (1, 1)
    assert "model 'dem' not found" in done.err


@pytest.mark.usefixtures("terminal", "_no_sockets")
def test_the_factors_of_auto_are_a_table(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("GROQ_API_KEY", "gsk_0123456789abcdefghijklmnop")
    shown = shell("explain", "auto").out
    rows = {line.split()[0]: line.split() for line in shown.split("\n") if line.split()}
    assert rows["member"] == ["member", "score", *FACTORS, "out"]
    assert [float(cell) for cell in rows["weight"][1:]] == [round(each, 3) for each in DEFAULT.values()]
    [scored] = [cells for name, cells in rows.items() if name.startswith("groq/") and "#" in name]
    score, factors = float(scored[1]), [float(cell) for cell in scored[2:]]
    assert score == pytest.approx(sum(w * f for w, f in zip(DEFAULT.values(), factors, strict=True)), abs=1e-2)


def test_json_has_the_factors_of_auto(shell: Shell) -> None:
    [decision] = shell("explain", "auto").json()["auto"]
    assert set(decision["candidates"][0]["factors"]) == set(FACTORS)
