"""Takes secrets out of an upstream's own words before a client reads them. Nothing else of the text changes.

Upstreams quote what they were sent: the whole key, its first or last characters around stars, or their own URL with a
key in the query. What is looked for is what is configured, in plain and in the spellings of JSON and of URLs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from troyproxy.catalog.providers import Provider
from troyproxy.catalog.secret import Secret
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.ports import Headers

MASK: Final = b"***"
MIN_SECRET: Final = 6
HEAD: Final = 8
SHORT_HEAD: Final = 3
TAIL: Final = 4

_CREDENTIAL: Final = re.compile(r"key|token|secret|passw|auth|cookie|sig", re.IGNORECASE)
"""Names of fixed headers and query parameters whose values are secrets; versions and regions are none."""
_PLAIN: Final = re.compile(r"[0-9A-Za-z]+")
_ESCAPE: Final = rb"(?:\\u00[0-7][0-9A-Fa-f]|%[0-7][0-9A-Fa-f])"
_DISGUISED: Final = re.compile(rb"(?:\\u00|%)(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])")
"""A letter or digit that nobody needs to escape."""
_UNIT: Final = re.compile(_ESCAPE + rb"|[\x00-\xff]")
_RUN: Final = re.compile(rb"(?:" + _ESCAPE + rb"|[^\s\"'<>\\%])+")
_GLUED: Final = r"[^\s\"'<>,;)\]}\\]"
_STARS: Final = "(?:[*.xX]|•|…|\\\\u20(?:22|26))"
_REST_OF_URL: Final = rb"(?:\\/|[^\s\"'<>\\])*"


def secrets_of(snapshot: Snapshot) -> list[str]:
    """Return every configured upstream secret, the longest first."""
    found = {secret for provider in snapshot.providers.values() for secret in _secrets(provider)}
    return sorted((secret for secret in found if len(secret) >= MIN_SECRET), key=len, reverse=True)


def _secrets(provider: Provider) -> Iterator[str]:
    yield from (account.api_key.reveal() for account in provider.accounts if account.api_key is not None)
    fixed = (*provider.headers, *provider.query)
    yield from (value.removeprefix("Bearer ") for name, value in fixed if _CREDENTIAL.search(name))
    base = _split(provider.base_url)
    yield unquote(base.password or "") if base is not None else ""


def masked(text: bytes, snapshot: Snapshot, provider: Provider) -> bytes:
    """Return *text* without a configured secret, its visible head or tail, or the address of *provider*."""
    secrets = secrets_of(snapshot)
    for secret in secrets:
        if (shown := _shown(secret, text)) is not None:
            text = shown.sub(MASK, text)
    if (b"%" in text or b"\\u00" in text) and _DISGUISED.search(text):
        known = [(tuple(_anchor(part) for part, _ in _forms(secret)), _pattern(secret)) for secret in secrets]
        text = _RUN.sub(lambda run: _unveiled(run[0], known), text)
    for pattern, mask in _addresses(provider):
        text = pattern.sub(mask, text)
    return text


def _shown(secret: str, text: bytes) -> re.Pattern[bytes] | None:
    """Return the pattern of those spellings of *secret* that can be in *text*, None when none can."""
    forms = [form for part, form in _forms(secret) if _anchor(part) in text]
    return _compiled(forms) if forms else None


def _pattern(secret: str) -> re.Pattern[bytes]:
    return _compiled(form for _, form in _forms(secret))


def _compiled(forms: Iterable[str]) -> re.Pattern[bytes]:
    return re.compile("|".join(forms).encode("utf-8", "surrogatepass"))


def _unveiled(run: bytes, secrets: Iterable[tuple[Iterable[bytes], re.Pattern[bytes]]]) -> bytes:
    """Return *run* with what shows a secret masked, once letters and digits are read that stand there as escapes.

    *secrets*: of each the parts of which one must be there, and its pattern.
    """
    if len(run) < MIN_SECRET or (b"%" not in run and b"\\" not in run):
        return run
    units = _UNIT.findall(run)
    plain = bytes(int(unit[-2:], 16) if len(unit) > 1 else unit[0] for unit in units)
    for parts, pattern in secrets:
        shown = list(pattern.finditer(plain)) if any(part in plain for part in parts) else []
        for found in reversed(shown):
            start, end = found.span()
            units[start:end] = [MASK]
            plain = plain[:start] + b"*" + plain[end:]
    return b"".join(units)


def discreet(headers: Headers, secret: Secret | None) -> Headers:
    """Return *headers* without those that show *secret*, whole or in part: an upstream may build an id from it."""
    key = secret.reveal().strip() if secret is not None else ""
    if not key:
        return headers
    # Nearly every header is let off by these two; patterns are made for the few that are left.
    head, tail = key[:SHORT_HEAD].encode(), key[-TAIL:].encode()
    for _, value in headers:
        if head in value or tail in value:
            break
    else:
        return headers
    return tuple(pair for pair in headers if not ((head in pair[1] or tail in pair[1]) and _shows(pair[1], key)))


def _shows(value: bytes, key: str) -> bool:
    forms = (form for _, form in _forms(key))
    return any(re.search(form.encode("utf-8", "surrogatepass"), value) for form in forms)


def _forms(secret: str) -> Iterator[tuple[str, str]]:
    """Yield patterns, each behind the part of the secret that it spells out; all of them take linear time.

    The secret; its head with what is glued to it; a shorter head before stars; stars with its tail glued to them.
    """
    yield secret, _spelt(secret)
    if len(secret) >= 2 * HEAD:
        head, short, tail = secret[:HEAD], secret[:SHORT_HEAD], secret[-TAIL:]
        yield head, f"{_spelt(head)}{_GLUED}*"
        yield short, f"(?<![0-9A-Za-z]){_spelt(short)}{_GLUED}{{0,12}}?{_STARS}{{3}}{_GLUED}*"
        yield tail, f"{_STARS}{{2}}{_spelt(tail)}"


def _anchor(part: str) -> bytes:
    """Return the longest run of letters and digits in *part*: it stands in the text as it is, however odd the rest."""
    return max(_PLAIN.findall(part), key=len, default="").encode()


def _spelt(text: str) -> str:
    """Return a pattern for *text* as it may stand in plain text, in JSON and in a URL."""
    return "".join(char if char.isascii() and char.isalnum() else _odd(char) for char in text)


def _odd(char: str) -> str:
    quoted = "".join(f"%{byte:02x}" for byte in char.encode("utf-8", "replace"))
    units = char.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(rf"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
    return rf"(?:\\?{re.escape(char)}|(?i:{escaped}|{quoted}))"


def _addresses(provider: Provider) -> Iterable[tuple[re.Pattern[bytes], bytes]]:
    """Yield the provider's URLs; and its host alone where it tells of the inside: an address or an explicit port."""
    base = _split(provider.base_url)
    if base is None or not base.hostname:
        return
    host = re.escape(f"[{base.hostname}]".encode() if ":" in base.hostname else base.hostname.encode())
    where = host if base.port is None else host + b":%d" % base.port
    yield re.compile(rb"(?i:https?:(?:\\?/){2}(?:[^\s/@\"']*@)?" + where + rb")" + _REST_OF_URL), b"https://" + MASK
    if base.port is not None or re.fullmatch(r"[0-9.]+|.*:.*", base.hostname):
        yield re.compile(rb"(?i:(?<![\w.-])" + where + rb"(?![\w.-]))"), MASK


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts
