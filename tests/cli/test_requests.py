from __future__ import annotations

import json
import stat

import pytest

from tests.cli.conftest import Shell
from troyproxy.proxy.replay.export import Export


@pytest.fixture
def asked(shell: Shell) -> Shell:
    """A folder whose database knows two requests."""
    shell("providers", "test", "demo")
    shell("providers", "test", "demo", "--model", "fail-500")
    return shell


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_trace_goes_to_standard_output(asked: Shell) -> None:
    done = asked("requests", "export")
    head, first, second = lines(done.out)
    assert (head["trace"], head["version"]) == ("troyproxy", 1)
    assert (first["model"], first["outcome"]) == ("demo/chat", "ok")
    assert second["outcome"] == "upstream_error"
    assert done.err == "troyproxy: exported 2 requests\n"


def test_no_text_and_no_secret_is_in_it(asked: Shell) -> None:
    out = asked("requests", "export").out
    assert "word" not in out
    assert "sk-" not in out


def test_a_file_is_written_whole_and_for_its_owner(asked: Shell) -> None:
    assert asked("requests", "export", "--out", "week.jsonl").out == ""
    path = asked.folder / "week.jsonl"
    assert len(lines(path.read_text(encoding="utf-8"))) == 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_was_there_stays_when_the_export_fails(asked: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    asked.write("week.jsonl", "mine")

    async def broken(_: Export) -> object:
        yield b"half"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Export, "lines", broken)
    done = asked("requests", "export", "-o", "week.jsonl")
    assert (done.status, done.err) == (1, "troyproxy: week.jsonl: cannot be written (No space left on device)\n")
    assert (asked.folder / "week.jsonl").read_text(encoding="utf-8") == "mine"
    assert [path.name for path in asked.folder.glob(".week*")] == []


def test_a_folder_that_is_not_there_is_one_line(asked: Shell) -> None:
    done = asked("requests", "export", "-o", "nowhere/week.jsonl")
    assert (done.status, done.err.count("\n")) == (1, 1)
    assert "nowhere/week.jsonl: cannot be written" in done.err


def test_only_what_is_young_enough_is_exported(asked: Shell) -> None:
    assert len(lines(asked("requests", "export", "--since", "0m").out)) == 1
    assert len(lines(asked("requests", "export", "--since", "2020-01-31").out)) == 3


@pytest.mark.parametrize("since", ["soon", "-1d", ""])
def test_a_bad_moment_is_a_usage_error(shell: Shell, since: str) -> None:
    done = shell("requests", "export", "--since", since)
    assert (done.status, done.out) == (2, "")


def test_what_is_exported_can_be_simulated(asked: Shell) -> None:
    asked("requests", "export", "-o", "t.jsonl")
    asked.write("p.yaml", "providers: {demo: {base_url: 'http://127.0.0.1:1/v1', auth: none}}\n")
    told = asked("simulate", "t.jsonl", "-p", "p.yaml").json()
    assert told["policies"][0]["attempts"] == told["recorded"]["attempts"] == 2
    assert told["policies"][0]["outcomes"] == told["recorded"]["outcomes"]


def test_the_group_says_what_it_is_for(shell: Shell) -> None:
    assert "export" in shell("requests", "--help").out
