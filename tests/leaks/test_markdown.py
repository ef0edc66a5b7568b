from __future__ import annotations

import pytest

from troyproxy.leaks.markdown import Markdown

F = "```"


def masked(text: str) -> bool:
    whole, single = Markdown(), Markdown()
    whole.read(text)
    for char in text:
        single.read(char)
    found = whole.masked()
    assert (single.masked(), single.line_start, single.fence) == (found, whole.line_start, whole.fence)
    return found


@pytest.mark.parametrize(
    "text",
    [
        "a `",
        "``",
        "`a` `",
        "> a",
        "a\n  > ",
        f"{F}\n",
        f"{F}xml\na\n",
        f"a\n  {F}\n> a",
        "~~~\n",
        f"~~~\n{F}\n",
        f"````\n{F}\n",
        f"{F}\n{F}x\n",
        f"{F}\n{F} x\n",
        f"{F}\na {F}\n",
        "~~~ `x`\n",
        f"{F}\n\n",
    ],
)
def test_code_and_quotations_are_masked(text: str) -> None:
    assert masked(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "`a`",
        "`a\n",
        "> a\nb",
        "a > b",
        f"{F}\na\n{F}\n",
        f"{F}\na\n{F}  \nb",
        f"{F}\na\n````\nb",
        f"{F}xml` a",
        "~~",
        "~~ a",
        "a ~~~\n",
        "a\n\n",
        f"{F}a{F}\n",
    ],
)
def test_prose_is_not(text: str) -> None:
    assert not masked(text)


def test_a_line_start_is_one_until_something_stands_there() -> None:
    starts = []
    for text in ("", "a\n", "a\n  ", "a\n b", "a\n`"):
        markdown = Markdown()
        markdown.read(text)
        starts.append(markdown.line_start)
    assert starts == [True, True, True, False, False]


def test_a_token_that_is_no_markdown_ends_a_run_and_a_line_start() -> None:
    markdown = Markdown()
    markdown.read(F)
    markdown.text()
    assert (markdown.fence, markdown.line_start) == (F, False)
