"""The single values of the config file: how each is read, and what is allowed. No I/O."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from troyproxy.catalog.secret import Secret
from troyproxy.settings.document import Credential
from troyproxy.settings.report import Wrong
from troyproxy.settings.shapes import Shape, leaf

ENV: Final = "env:"
_TEXT: Final = {"type": "string"}
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_FRAMING: Final = frozenset(
    {"accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > 500:
        raise ValueError
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    try:
        number = float(value)
    except OverflowError:
        raise ValueError from None
    if not math.isfinite(number):
        raise ValueError
    return number


def printable(name: str) -> str:
    """Return *name* if it is a printable, non-empty text of at most 500 characters; for keys of a mapping."""
    try:
        return _text(name)
    except ValueError as error:
        raise ValueError("it is no printable text of 1 to 500 characters") from error


def text(allowed: str = "a text", *, hidden: bool = False) -> Shape[str]:
    """Return the shape of a printable, non-empty text of at most 500 characters."""
    return leaf(_text, allowed, _TEXT, hidden=hidden)


FLAG: Final = leaf(_flag, "on or off", {"type": "boolean"})


def whole(low: int, high: int = 2_000_000_000) -> Shape[int]:
    """Return the shape of a whole number within a range."""

    def parse(value: object) -> int:
        if not low <= _whole(value) <= high:
            raise ValueError
        return _whole(value)

    return leaf(parse, f"a whole number from {low} to {high}", {"type": "integer", "minimum": low, "maximum": high})


def number(low: float, high: float = 1e12) -> Shape[float]:
    """Return the shape of a finite number within a range."""

    def parse(value: object) -> float:
        if not low <= _number(value) <= high:
            raise ValueError
        return _number(value)

    return leaf(parse, f"a number from {low:g} to {high:g}", {"type": "number", "minimum": low, "maximum": high})


def choice(values: Mapping[str, str]) -> Shape[str]:
    """Return the shape of one of the texts that *values* maps to their meaning; a YAML boolean counts as on or off."""

    def parse(value: object) -> str:
        spoken = ("on" if value else "off") if isinstance(value, bool) else value
        if not isinstance(spoken, str) or spoken not in values:
            raise ValueError
        return values[spoken]

    return leaf(parse, " or ".join(values), {"enum": [*values, *([False] if "off" in values else [])]})


def one_of(*values: str) -> Shape[str]:
    """Return the shape of one of these texts."""
    return choice({value: value for value in values})


def named(rule: Callable[[str], str]) -> Shape[str]:
    """Return the shape of a name under a rule of `catalog.naming`, which says why it refuses."""

    def parse(value: object) -> str:
        try:
            return rule(_text(value))
        except ValueError as error:
            raise Wrong("", str(error) or "no text") from error

    return leaf(parse, "a name", _TEXT)


def _url(value: object, schemes: frozenset[str], *, userinfo: bool) -> str:
    parts = urlsplit(_text(value))
    if parts.username is not None and not userinfo:
        raise Wrong("", "credentials do not belong into a URL")
    if parts.scheme not in schemes or not parts.hostname or parts.query or parts.fragment or " " in str(value):
        raise ValueError
    _ = parts.port  # raises ValueError when it is no port
    return str(value).rstrip("/")


BASE_URL: Final = leaf(
    lambda value: _url(value, frozenset({"http", "https"}), userinfo=False),
    "http://… or https://…, without query and credentials",
    {"type": "string", "pattern": "^https?://"},
    hidden=True,
)
OPEN_PROXY: Final = leaf(
    lambda value: _url(value, frozenset({"http", "https", "socks5", "socks5h"}), userinfo=False),
    "http://…, https:// or socks5://…, without credentials",
    _TEXT,
    hidden=True,
)
PROXY: Final = leaf(
    lambda value: _url(value, frozenset({"http", "https", "socks5", "socks5h"}), userinfo=True),
    "http://…, https:// or socks5://…",
    _TEXT,
    hidden=True,
)


def credential(value: object) -> Credential:
    """Return the secret or reference that a value holds. Raises ValueError without showing it."""
    secret = _text(value)
    if not secret.isascii() or secret != secret.strip():
        raise Wrong("", "it is no printable ASCII text")
    if secret.startswith(ENV):
        if not _VARIABLE.fullmatch(secret.removeprefix(ENV)):
            raise Wrong("", "the name behind env: is no variable name")
        return Credential(env=secret.removeprefix(ENV))
    return Credential(literal=Secret(secret))


CREDENTIAL: Final = leaf(credential, "env:NAME, or the secret itself", _TEXT, hidden=True)


def _client_key(value: object) -> Credential:
    # A client key may be any bytes: a non-ASCII one works, because keys are compared as UTF-8 bytes.
    if isinstance(value, str) and not value.startswith(ENV):
        if not 16 <= len(value.encode("utf-8", "surrogatepass")) <= 512:
            raise Wrong("", "it has not 16 to 512 bytes")
        return Credential(literal=Secret(value))
    return credential(value)


CLIENT_KEY: Final = leaf(_client_key, "env:NAME, or 16 to 512 bytes of text", _TEXT, hidden=True)


def header_value(value: object) -> str:
    """Return *value* as it stands in a header. Raises ValueError without showing it."""
    spoken = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    if not isinstance(spoken, str) or not spoken.isascii() or not (spoken.isprintable() and spoken == spoken.strip()):
        raise ValueError
    return spoken


HEADER_VALUE: Final = leaf(header_value, "printable ASCII, or env:NAME", {"type": ["string", "number"]}, hidden=True)


def header_name(name: str) -> str:
    """Return *name* in lower case if it may be a fixed request header."""
    if not _TOKEN.fullmatch(name):
        raise ValueError("it is no HTTP header name")
    if name.lower() in _FRAMING:
        raise ValueError("the transport sets this header itself")
    return name.lower()


def _app(value: object) -> str:
    package, colon, attribute = _text(value).partition(":")
    names = [*package.split("."), *(attribute.split(".") if colon else ())]
    if value != "inner" and not (colon and all(name.isidentifier() for name in names)):
        raise ValueError
    return str(value)


APP: Final = leaf(_app, "package.module:attribute, or inner", _TEXT)


LATEST: Final = 253_402_300_799.0
"""The end of the year 9999, in unix seconds: dates go no further."""


def _moment(value: object) -> float:
    at = _seconds(datetime.fromisoformat(value) if isinstance(value, str) else value)
    if not 0 <= at <= LATEST:
        raise ValueError
    return at


def _seconds(value: object) -> float:
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp()
    return _number(value)


MOMENT: Final = leaf(_moment, "unix seconds, or a date like 2030-01-31T12:00:00Z", {"type": ["number", "string"]})


def _free(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError
    return MappingProxyType(value)


FREE: Final = leaf(_free, "a mapping", {"type": "object"})
