"""The arguments of a call written in Python: literals only, by keyword only. Nothing is ever evaluated.

A pass over the tokens finds the closing parenthesis and lets nothing but literals through; `ast` then reads them.
Two rewrites: names become placeholders (so that Python's keywords may be parameters: ``from=1``), and zero-padded
integers lose their padding. What else Python would refuse, or warn about, is refused.
"""

from __future__ import annotations

import ast
import math
import re
from dataclasses import dataclass, field
from typing import Final

from troyproxy.leaks.grammars.cursor import Cursor, NotThis, TextEnded

MAX_CHARS: Final = 64 * 1024
MAX_DEPTH: Final = 32
_CONSTANTS: Final = {
    "True": "True",
    "False": "False",
    "None": "None",
    "true": "True",
    "false": "False",
    "null": "None",
}
_TOKEN: Final = re.compile(
    r'(?P<text>"""(?:[^"\\]|\\.|"(?!""))*+(?P<end1>""")?'
    r"|'''(?:[^'\\]|\\.|'(?!''))*+(?P<end2>''')?"
    r'|"(?:[^"\\\n]|\\.)*+(?P<end3>")?'
    r"|'(?:[^'\\\n]|\\.)*+(?P<end4>')?)"
    r"|(?P<word>[^\W\d]\w*+)"
    r"|(?P<number>\d[\w.]*+)"
    r"|(?P<mark>[\[\](){},:=.+-])"
    r"|(?P<blank>[ \t\r\n]++)",
    re.DOTALL,
)
_CLOSES: Final = {"(": ")", "[": "]", "{": "}"}
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][0-9]*)?")  # the sign of an exponent is a token of its own
_IS_KEY: Final = re.compile(r"[ \t\r\n]*+=(?!=)")
_ODD_ESCAPE: Final = re.compile(r"\\(?:([^\n\\'\"abfnrtvxuUN0-7]|[4-7][0-7]{2})|.)", re.DOTALL)


@dataclass(slots=True)
class _Arguments:
    """What was read so far: the rewritten source and the real names of the placeholders."""

    source: list[str] = field(default_factory=lambda: ["f("])
    keys: list[str] = field(default_factory=list)
    awaited: list[str] = field(default_factory=lambda: [")"])


def read_arguments(cursor: Cursor) -> dict[str, object]:
    """Go over ``K=V, …)``, closing parenthesis included, and return the arguments."""
    read, start = _Arguments(), cursor.at
    while read.awaited:
        cursor.step()
        token = _TOKEN.match(cursor.text, cursor.at)
        if token is None:
            raise TextEnded if cursor.ended else NotThis
        _take(token, read)
        cursor.at = token.end()
        if cursor.at - start > MAX_CHARS:
            raise NotThis
    return _arguments("".join(read.source), read.keys)


def _take(token: re.Match[str], read: _Arguments) -> None:
    kind, text = token.lastgroup, token.group()
    if kind == "text":
        read.source.append(_string(token))
    elif kind == "word":
        read.source.append(_word(token, read))
    elif kind == "number":
        read.source.append(_number(text))
    else:
        if kind == "mark":
            _nest(text, read.awaited)
        read.source.append(text)


def _string(token: re.Match[str]) -> str:
    if not any(token.group("end1", "end2", "end3", "end4")):
        at_end = token.string[token.end() :] in {"", "\\"}
        raise TextEnded if at_end else NotThis
    # Python keeps an unknown escape as it is, and warns
    return _ODD_ESCAPE.sub(lambda found: f"\\{found.group()}" if found[1] else found.group(), token.group())


def _word(token: re.Match[str], read: _Arguments) -> str:
    word = token.group()
    if len(read.awaited) == 1 and _IS_KEY.match(token.string, token.end()):
        read.keys.append(word)
        return f"k{len(read.keys) - 1}"
    if word not in _CONSTANTS:
        raise NotThis if token.string[token.end() :].strip() else TextEnded
    return _CONSTANTS[word]


def _number(digits: str) -> str:
    if not _NUMBER.fullmatch(digits):
        raise NotThis
    return (digits.lstrip("0") or "0") if digits.isdecimal() else digits


def _nest(mark: str, awaited: list[str]) -> None:
    if mark in _CLOSES:
        awaited.append(_CLOSES[mark])
        if len(awaited) > MAX_DEPTH:
            raise NotThis
    elif mark in ")]}" and awaited.pop() != mark:
        raise NotThis


def _arguments(source: str, keys: list[str]) -> dict[str, object]:
    try:
        tree = ast.parse(source, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as exc:
        raise NotThis from exc
    call = tree.body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise NotThis
    arguments: dict[str, object] = {}
    for key, word in zip(keys, call.keywords, strict=True):
        arguments.setdefault(key, _value(word.value))
    return arguments


def _value(node: ast.expr) -> object:
    match node:
        case ast.Constant(value=bool() | int() | str() | None as value):
            return value
        case ast.Constant(value=float() as value) if _plain(value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if _plain(value):
            return -value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return {_key(key): _value(value) for key, value in zip(keys, values, strict=True)}
    raise NotThis


def _plain(number: float) -> bool:
    return not isinstance(number, bool) and (isinstance(number, int) or math.isfinite(number))


def _key(node: ast.expr | None) -> str:
    match node:
        case ast.Constant(value=str() as value):
            return value
    raise NotThis


def python_value(text: str) -> object:
    """Return the value of *text* as one Python literal; raises ValueError."""
    cursor = Cursor(f"v={text})", "", frozenset())
    try:
        arguments = read_arguments(cursor)
    except (NotThis, TextEnded) as exc:
        raise ValueError(text) from exc
    if cursor.at != len(cursor.text) or arguments.keys() != {"v"}:
        raise ValueError(text)
    return arguments["v"]
