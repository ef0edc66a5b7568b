"""Where in Markdown are we? As much of it as is needed to tell code and quotations from prose, by the piece.

Not CommonMark: a fence may be indented, a span of code ends with its line, a block quote is one line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_INDENT: Final = re.compile(r"[^\S\n]*")
_TOKEN: Final = re.compile(r"[\n`]")
_RUN: Final = {char: re.compile(f"{char}+") for char in "`~"}


@dataclass(slots=True)
class Markdown:
    """The state behind the text that was read."""

    line_start: bool = True
    """Only blanks were read since the line began."""
    fence: str = ""
    """The characters that opened the fence we are in."""
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
        while index < len(text):
            if self.line_start:
                index = self._line(text, index)
                continue
            found = _TOKEN.search(text, index)
            stop = found.start() if found else len(text)
            if self._closing and text[index:stop].strip():
                self._closing = False
            index = stop
            if found and found[0] == "\n":
                self._newline()
                index += 1
            elif found:
                index = self._start_run(text, index)

    def _line(self, text: str, index: int) -> int:
        """Read what begins a line; return where it ends."""
        indent = _INDENT.match(text, index)
        index = indent.end() if indent else index
        if index == len(text):
            return index
        char = text[index]
        if char in _RUN:
            return self._start_run(text, index)
        if char == "\n":
            self._newline()
            return index + 1
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
        if self.fence and not self._info:
            self._closing = begins and run[0] == self.fence[0] and len(run) >= len(self.fence)
        elif self._info:
            if run[0] == "`" == self.fence[0]:
                self.fence, self._info = "", False  # it was a span of code after all
        elif begins and len(run) >= 3:
            self.fence, self._info = run, True
        elif run[0] == "`":
            self._spans = not self._spans
