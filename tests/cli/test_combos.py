from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Shell


def test_the_demo_combo_is_there_when_nothing_is_configured(shell: Shell) -> None:
    assert [combo["name"] for combo in shell("combos", "list", "--json").json()] == ["demo"]


def test_a_combo_is_created_with_its_members_in_order(shell: Shell) -> None:
    words = ("create", "daily", "--strategy", "round-robin", "--member", "demo/ok", "--member", "combo/demo")
    made = shell("combos", *words, "--json").json()
    assert (made["strategy"], made["members"]) == (
        "round-robin",
        [{"model": "demo/ok", "weight": 1.0}, {"combo": "demo", "weight": 1.0}],
    )
    assert shell("combos", "show", "daily", "--json").json() == made


def test_an_auto_combo_is_created_from_what_the_api_takes(shell: Shell) -> None:
    auto = {"candidatePool": ["demo", "nosuch"], "weights": {"tierPriority": 0.3, "costInv": 0.05}}
    shell.write("auto.json", json.dumps({"id": "my-auto", "name": "x", "config": {"auto": auto}}))
    done = shell("combos", "create", "Auto Coder", "--strategy", "auto", "--body", "auto.json", "--json")
    made = done.json()
    assert (made["id"], made["name"], made["members"], made["config"]) == ("my-auto", "Auto Coder", [], {"auto": auto})
    assert round(made["effective_weights"]["tierPriority"], 4) == 0.2655
    assert "candidatePool: 'nosuch' is no configured provider" in done.err
    shown = [line.split() for line in shell("combos", "show", "my-auto").out.split("\n")]
    assert ["tierPriority", "0.2655"] in shown
    assert any(line[:2] == ["auto", '{"candidatePool":'] for line in shown)


def test_what_is_wrong_in_a_written_combo_is_named_by_its_path(shell: Shell) -> None:
    written = '{"strategy": "auto", "config": {"auto": {"weights": {"speed": 1}}}}'
    done = shell("combos", "create", "daily", "--body", "-", stdin=written)
    assert done.status == 1
    assert "config.auto.weights.speed: is no factor" in done.err


def test_members_of_the_options_come_before_those_that_are_written(shell: Shell) -> None:
    made = shell(
        "combos", "create", "daily", "-m", "demo/ok", "--body", "-", "--json", stdin='{"models": ["demo/chat"]}'
    )
    assert made.json()["members"] == [{"model": "demo/ok", "weight": 1.0}]


def test_a_combo_is_shown_as_a_table(shell: Shell) -> None:
    shown = shell("combos", "show", "demo").out.split("\n")
    assert shown[0].split() == ["NAME", "ID", "STRATEGY", "MEMBERS", "ORIGIN"]
    assert shown[3].split() == ["1", "demo/fail-429-retry-1", "1"]


def test_the_list_is_a_table(shell: Shell) -> None:
    assert shell("combos", "list").out.split("\n")[1].split()[:3] == ["demo", "demo", "fallback"]


def test_an_odd_member_is_a_warning(shell: Shell) -> None:
    made = shell("combos", "create", "daily", "-m", "nowhere/model")
    assert made.status == 0
    assert "member 'nowhere/model' is skipped" in made.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("auto", "-m", "demo/ok"), "auto is reserved"),
        (("daily", "-m", "demo/ok", "-s", "nonsense"), "strategy"),
        (("demo", "-m", "demo/ok"), "is built in"),
        (("daily", "-m", "combo/daily"), "daily → daily"),
    ],
)
def test_what_the_api_refuses_is_refused_here(shell: Shell, words: tuple[str, ...], told: str) -> None:
    done = shell("combos", "create", *words)
    assert (done.status, done.out) == (1, "")
    assert told in done.err


def test_a_combo_of_the_file_is_changed_there(shell: Shell) -> None:
    shell.write("troyproxy.yaml", "combos: {daily: {members: [demo/ok]}}\n")
    done = shell("combos", "delete", "daily")
    assert done.status == 1
    assert "troyproxy.yaml" in done.err


def test_a_deleted_combo_is_gone(shell: Shell) -> None:
    shell("combos", "create", "daily", "-m", "demo/ok")
    assert shell("combos", "delete", "daily").out == "the combo daily is gone\n"
    done = shell("combos", "show", "daily")
    assert (done.status, done.err) == (1, "troyproxy: there is no combo 'daily'\n")


def test_delete_speaks_json(shell: Shell) -> None:
    shell("combos", "create", "daily", "-m", "demo/ok")
    assert shell("combos", "delete", "daily", "--json").json() == {"id": "daily", "deleted": True}


def test_a_test_prints_what_came_of_each_member(shell: Shell) -> None:
    done = shell("combos", "test", "demo")
    assert done.status == 0
    rows = [line.split() for line in done.out.split("\n")]
    assert rows[0] == ["MEMBER", "ACCOUNT", "RESULT", "STATUS", "MS", "ANSWER"]
    assert rows[1][:3] == ["demo/fail-429-retry-1", "rate", "429"]
    assert rows[2][:3] == ["demo/chat", "ok", "200"]


def test_a_test_speaks_json(shell: Shell) -> None:
    told = shell("combos", "test", "demo", "--json").json()
    assert (told["ok"], [(one["ok"], one["status"]) for one in told["members"]]) == (True, [(False, 429), (True, 200)])


def test_a_test_of_a_combo_that_cannot_answer_fails(shell: Shell) -> None:
    shell("combos", "create", "broken", "-m", "demo/fail-500", "-m", "nowhere/model")
    done = shell("combos", "test", "broken")
    assert done.status == 1
    assert "troyproxy: no member of broken answered" in done.err
    assert "skipped: unknown-provider" in done.out


def test_a_failed_test_is_json_and_status_1(shell: Shell) -> None:
    shell("combos", "create", "broken", "-m", "demo/fail-500")
    done = shell("combos", "test", "broken", "--json")
    assert (done.status, json.loads(done.out)["ok"]) == (1, False)


def test_a_combo_that_is_not_there_cannot_be_tested(shell: Shell) -> None:
    assert shell("combos", "test", "ghost").status == 1
