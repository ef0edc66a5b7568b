"""The runner of pages: what it finds wrong, so that a page that passes is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.pages import Block, differences, missing_pieces, run_session, shell_blocks

BLOCK = """```bash
curl -sS -X PUT "$TROY/api/x?y=1" \\
  --json '{}'
```

→ 200, and words

```json
{"a": 1}
```
"""


def test_a_block_has_its_status_its_answer_and_its_call() -> None:
    (block,) = shell_blocks(f"text\n\n{BLOCK}\nmore\n")
    assert (block.status, block.kind, block.shown, block.calls) == (200, "json", '{"a": 1}\n', [("PUT", "/api/x")])


def test_a_block_without_a_status_is_an_error() -> None:
    with pytest.raises(AssertionError, match="without its"):
        shell_blocks(BLOCK + '```bash\ncurl "$TROY/livez"\n```\n')


@pytest.mark.parametrize(
    ("arguments", "method"),
    [
        ('"$TROY/a"', "GET"),
        ("\"$TROY/a\" -d '{}'", "POST"),
        ("\"$TROY/a\" -F 'f=x'", "POST"),
        ('-X DELETE "$TROY/a"', "DELETE"),
    ],
)
def test_the_method_of_a_curl(arguments: str, method: str) -> None:
    assert Block(f"curl -sS {arguments}\n", 200, None, "").calls == [(method, "/a")]


@pytest.mark.parametrize(
    ("shown", "got"),
    [
        ({"a": 1}, {"b": 1}),
        ({"a": {"b": 1}}, {"a": {}}),
        ({"a": "text"}, {"a": 1}),
        ({"a": True}, {"a": 1}),
        ({"a": [{"b": 1}]}, {"a": [{"c": 1}]}),
        ([1], []),
        ({"a": {}}, {"a": []}),
    ],
)
def test_an_answer_that_lacks_what_is_shown_differs(shown: object, got: object) -> None:
    assert differences(shown, got) != []


@pytest.mark.parametrize(
    ("shown", "got"),
    [
        ({"a": 1}, {"a": 2.5, "b": "more"}),
        ({"a": None}, {"a": "known here"}),
        ({"a": [{"b": 1}]}, {"a": [{"c": 1}, {"b": 7, "c": 8}]}),
        ({"a": []}, {"a": [1]}),
    ],
)
def test_an_answer_may_have_more_and_other_values(shown: object, got: object) -> None:
    assert differences(shown, got) == []


def test_a_line_that_was_not_printed_is_missed() -> None:
    assert missing_pieces("one…two\nthree\n", "one and two") == ["three"]


def test_a_session_stops_at_its_first_failure_and_keeps_its_variables(tmp_path: Path) -> None:
    codes = ("WORD=kept\n", 'echo "$WORD"\n', "false | true\n", "echo never\n")
    said = [answer.body for answer in run_session([Block(code, 0, None, "") for code in codes], tmp_path, {})]
    assert said == ["", "kept\n", "", ""]
