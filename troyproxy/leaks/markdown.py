"""Where in Markdown are we? As much of it as is needed to tell code and quotations from prose, by the piece.

Not CommonMark: a fence may be indented, a span of code ends with its line, a block quote is one line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from troyproxy.leaks.effort import Effort

_INDENT: Final = re.compile(r"[^\S\n]*")
_PLAIN_LINES: Final = re.compile(r"(?:[^\S\n]*+(?:[^\s`~][^\n]*+)?\n)*+")
"""Whole lines that leave no trace: whatever they hold ends with them, but for a fence, and none begins there."""
_TOKEN: Final = re.compile(r"[\n`]")
_BACKTICKS: Final = re.compile("`+")
_RUN: Final = {char: re.compile(f"{char}+") for char in "`~"}


@dataclass(slots=True)
class Markdown:
    """The state behind the text that was read."""

    line_start: bool = True
    """Only blanks were read since the line began."""
    fence: str = ""
    """The characters that opened the fence we are in."""
    effort: Effort = field(default_factory=Effort)
    """A step is spent for each line that begins as a fence does; when it is over, nothing is read any more."""
    _run: str = ""  # backticks or tildes that may go on
    _begins: bool = False  # the run stands at the start of its line
    _info: bool = False  # on the line that opened the fence
    _closing: bool = False  # behind what closes the fence, if nothing else stands on its line
    _quoted: bool = False
    _spans: bool = False  # an odd number of backtick runs on this line

    def masked(self) -> bool:
        """Whether what stands here is code or a quotation."""
        self._end_run()
        return bool(self.fence) or self._quoted or self._spans

    def text(self) -> None:
        """Something was read that is neither blank nor Markdown's."""
        self._end_run()
        self.line_start = self._closing = False

    def read(self, text: str) -> None:
        """Read a piece of canonical text."""
        index = self._go_on(text) if self._run else 0
        while index < len(text) and self.effort.left > 0:
            if self.line_start:
                index = self._line(text, index)
            elif self._info:
                index = self._info_line(text, index)
            else:
                index = self._rest_of_line(text, index)

    def _info_line(self, text: str, index: int) -> int:
        """Read on behind what opened a fence; return how far it was read."""
        found = _TOKEN.search(text, index)
        if not found:
            return len(text)
        if found[0] == "`":
            return self._start_run(text, found.start())
        self._newline()
        return found.end()

    def _rest_of_line(self, text: str, index: int) -> int:
        """Read the rest of a line, or as much of it as there is; return where the next one begins."""
        end = text.find("\n", index)
        rest = text[index:end] if end >= 0 else text[index:]
        self._closing = self._closing and not rest.strip()
        if end >= 0:  # what else the line holds ends with it
            self._newline()
            return end + 1
        runs = _BACKTICKS.findall(rest)
        going_on = rest.endswith("`")
        if not self.fence and (len(runs) - going_on) % 2:
            self._spans = not self._spans
        if going_on:
            self._run, self._begins = runs[-1], False
        return len(text)

    def _line(self, text: str, index: int) -> int:
        """Read what begins a line; return where it ends."""
        lines = _PLAIN_LINES.match(text, index)
        index = lines.end() if lines else index
        indent = _INDENT.match(text, index)
        index = indent.end() if indent else index
        if index == len(text):
            return index
        char = text[index]
        if char in _RUN:
            return self._start_run(text, index)
        self.text()
        self._quoted = char == ">" and not self.fence
        return index + 1

    def _newline(self) -> None:
        if self._closing:
            self.fence = ""
        self.line_start = True
        self._info = self._closing = self._quoted = self._spans = False

    def _start_run(self, text: str, index: int) -> int:
        found = _RUN[text[index]].match(text, index)
        self._run, self._begins, self.line_start = found[0] if found else "", self.line_start, False
        return self._ended(text, index + len(self._run))

    def _go_on(self, text: str) -> int:
        found = _RUN[self._run[0]].match(text)
        more = found[0] if found else ""
        self._run += more
        return self._ended(text, len(more))

    def _ended(self, text: str, index: int) -> int:
        if index < len(text):
            self._end_run()
        return index

    def _end_run(self) -> None:
        run, begins, self._run = self._run, self._begins, ""
        if not run:
            return
        self.effort.left -= begins
        if self.fence and not self._info:
            self._closing = begins and run[0] == self.fence[0] and len(run) >= len(self.fence)
        elif self._info:
            if run[0] == "`" == self.fence[0]:
                self.fence, self._info = "", False  # it was a span of code after all
        elif begins and len(run) >= 3:
            self.fence, self._info = run, True
        elif run[0] == "`":
            self._spans = not self._spans
