"""gpt-oss's segments: ``<|channel|>commentary to=functions.NAME …<|message|>{json}`` (format F30), the recipient at
either place, and the residue ``commentary to=functions.NAME json{…}``."""

from __future__ import annotations

import re
from typing import Final

from troyproxy.leaks.grammars.cursor import Cursor, NotThis, TextCall, TextEnded
from troyproxy.leaks.grammars.json_text import read_object

_NAME: Final = r"[\w.:-]{1,128}"
_HEADER: Final = re.compile(
    r"(?P<start><\|start\|>)?(?:assistant)?\s*+"
    rf"(?:to=[\"']?(?P<first>{_NAME})[\"']?)?\s*+"
    r"(?P<channel><\|channel\|>)?\s*+(?:commentary|analysis)?\s*+"
    rf"(?:to=[\"']?(?P<second>{_NAME})[\"']?)?\s*+"
    r"(?:<\|constrain\|>)?\s*+(?:json|code)?\s*+(?:<\|message\|>)?\s*+(?=\{)"
)
_BEGINNINGS: Final = ("<|start|>assistant", "<|channel|>", "commentary to=", "assistantcommentary to=", "analysis to=")
_HEADER_CHARS: Final = 512
ASIDE: Final = re.compile(r"(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary)<\|message\|>")
_ASIDE_END: Final = re.compile(r"<\|end\|>|(?=<\|start\|>|<\|channel\|>)")


def segment(cursor: Cursor, calls: list[TextCall]) -> None:
    """One segment that has a recipient."""
    header = _HEADER.match(cursor.canon, cursor.at)
    group = next((name for name in ("second", "first") if header and header[name]), None)
    if header is None or group is None:
        raise TextEnded if _unfinished(cursor) else NotThis
    cursor.marked |= bool(header["start"] or header["channel"])
    name = cursor.named(cursor.original(header, group))
    cursor.at = header.end()
    calls.append(TextCall(name, read_object(cursor)))


def over_aside(cursor: Cursor) -> bool:
    """Go over a message of the model to itself; whether there was one, whole."""
    found = ASIDE.match(cursor.canon, cursor.at)
    end = _ASIDE_END.search(cursor.canon, found.end()) if found else None
    if end:
        cursor.at = end.end()
    return end is not None


def _unfinished(cursor: Cursor) -> bool:
    """Whether the text ends inside a header that may yet name a recipient."""
    rest = cursor.canon[cursor.at : cursor.at + _HEADER_CHARS]
    if cursor.at + len(rest) < len(cursor.text) or "{" in rest:
        return False
    header, message, _ = rest.partition("<|message|>")
    if (message and "to=" not in header) or header.startswith("<|channel|>final"):
        return False
    return any(rest.startswith(head) or head.startswith(rest) for head in _BEGINNINGS)
