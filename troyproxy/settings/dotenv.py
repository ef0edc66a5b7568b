"""A small reader of ``.env`` files: ``KEY=VALUE`` lines, quotes, ``export``, comments. No interpolation.

Errors name the line, never its text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from troyproxy.errors import ConfigError

MAX_BYTES: Final = 1 << 18
_LINE: Final = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.]*)[ \t]*=[ \t]*(.*)", re.DOTALL)
_SINGLE: Final = re.compile(r"'([^']*)'[ \t]*(?:#.*)?")
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"[ \t]*(?:#.*)?')
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}


def parse_dotenv(text: str, source: str = ".env") -> dict[str, str]:
    """Return the variables of *text*; of a repeated one the last. Raises ConfigError with the line's number."""
    found: dict[str, str] = {}
    for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        value = _value(match[2]) if match else None
        if match is None or value is None:
            raise ConfigError(f"{source}: line {number} is not NAME=VALUE, or a quote is not closed")
        found[match[1]] = value
    return found


def _value(written: str) -> str | None:
    if written.startswith("'"):
        match = _SINGLE.fullmatch(written)
        return match[1] if match else None
    if written.startswith('"'):
        match = _DOUBLE.fullmatch(written)
        return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), match[1]) if match else None
    if written.startswith("#"):
        return ""
    return re.split(r"[ \t]#", written, maxsplit=1)[0].rstrip()


def read_dotenv(path: Path) -> dict[str, str]:
    """Return the variables of the file *path*, none when it is missing. Raises ConfigError."""
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(f"{path.name}: cannot be read ({error.strerror})") from None
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path.name}: is larger than {MAX_BYTES} bytes")
    try:
        return parse_dotenv(raw.decode("utf-8"), path.name)
    except UnicodeDecodeError:
        raise ConfigError(f"{path.name}: is not UTF-8 text") from None
