"""When an upstream says to come back: every form of retry hint, from headers and bodies, in one order.

The order goes from the most precise and most deliberate to the least: ``retry-after-ms``, ``Retry-After``, Google's
``RetryInfo``, reset times in an error body, the reset of an exhausted rate-limit bucket, text. A source that cannot be
read is passed over as if it were not there. Numbers may be durations or epochs, see `seconds_from`.

Whether a class of failure cools at all, and so whether a hint counts, is not decided here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import Final

from troyproxy.resilience.bodies import Object, objects_in

MIN_S: Final = 1.0
EPOCH_S: Final = 1e9
"""A number from here on is a moment, not a duration: epoch seconds."""
EPOCH_MS: Final = 1e11
"""A number from here on is epoch milliseconds."""
VALUE_CHARS: Final = 128
TEXT_CHARS: Final = 16_384

_NUMBER: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_UNIT: Final = (
    r"(milliseconds?|msecs?|ms|microseconds?|us|µs|nanoseconds?|ns|seconds?|secs?|s|minutes?|mins?|m"
    r"|hours?|hrs?|h|days?|d)"
)
_FLAGS: Final = re.IGNORECASE | re.ASCII  # beyond ASCII other letters fold to "s" and "k"
_PART: Final = re.compile(rf"([0-9]+(?:\.[0-9]+)?)\s?{_UNIT}", _FLAGS)
_PROSE_PART: Final = re.compile(rf"\s?,?\s?(?:and\s)?([0-9]+(?:\.[0-9]+)?)\s?{_UNIT}(?![a-z])", _FLAGS)
# OpenAI, Groq "try again in 6.2s"; Gemini "retry in 41.6s"; others "resets after 26h10m5s", "wait 5 minutes".
_LEAD: Final = re.compile(
    r"\b(?:try again (?:in|after)|retry (?:in|after)|resets? (?:in|after)|available (?:again )?in|wait(?: for)?)"
    r"(?: about| approximately| another)?:? ?(?=[0-9])",
    _FLAGS,
)
_UNITS_S: Final[Mapping[str, float]] = {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "s": 1.0, "h": 3600.0, "d": 86400.0}

# z.ai 1308 (five-hour limit) and 1310 (weekly or monthly limit) name the reset in the text, in Beijing's time.
_ZAI_CODES: Final = frozenset({"1308", "1310"})
_ZAI_RESET: Final = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}")
_BEIJING: Final = timezone(timedelta(hours=8))

_MS_FIELDS: Final = ("retry_after_ms", "retryAfterMs")
_FIELDS: Final = (
    "retry_after",
    "retryAfter",
    "retry_after_seconds",
    "resets_in_seconds",  # OpenAI usage_limit_reached
    "resets_at",
    "reset_at",
    "resetsAt",
)

Headers = Mapping[str, str]


def retry_hint(
    headers: Sequence[tuple[bytes, bytes]],
    body: object | None,
    text: str,
    *,
    now: float,
    cap_s: float,
    buckets: bool = True,
) -> float | None:
    """Return how long the upstream asks to be left alone, in seconds from *now*; None when it does not say.

    *headers* are raw, in any case; *body* is the decoded JSON or None; *text* is the body or message as text; *now* is
    unix seconds. The answer is at least 1 s and at most *cap_s*. With *buckets* False the rate-limit headers are not
    read: healthy answers carry them too, so they explain a rate limit, and nothing else. Never raises.
    """
    objects = tuple(objects_in(body))
    named = _named(headers, objects)
    sources: Iterable[Callable[[], float | None]] = (
        lambda: _number(named.get("retry-after-ms", ""), now, scale=1e-3),
        lambda: wait_from(named.get("retry-after", ""), now),
        lambda: _google(objects, now),
        lambda: _reset_field(objects, now),
        lambda: _zai_reset(objects, text, now),
        lambda: _bucket_reset(named, now) if buckets else None,
        lambda: _text_wait(text),
    )
    found = next((wait for source in sources if (wait := source()) is not None), None)
    return None if found is None else min(max(found, MIN_S), cap_s)


def seconds_from(value: float, now: float) -> float | None:
    """Return *value* as seconds from *now*: below 1e9 a duration, up to 1e11 epoch seconds, above epoch milliseconds.

    A moment in the past is 0. nan, inf and negatives are None.
    """
    if not math.isfinite(value) or value < 0:
        return None
    if value < EPOCH_S:
        return value
    return max(0.0, (value if value <= EPOCH_MS else value / 1000) - now)


def _named(headers: Sequence[tuple[bytes, bytes]], objects: tuple[Object, ...]) -> Headers:
    """Return the headers by lower-case name; real ones before those that OpenRouter quotes in the error's metadata."""
    named: dict[str, str] = {}
    for raw_name, raw_value in headers:
        named.setdefault(raw_name.decode("latin-1").lower(), raw_value.decode("latin-1").strip()[:VALUE_CHARS])
    for owner in objects:
        quoted = owner.get("headers")
        for name, value in quoted.items() if isinstance(quoted, dict) else ():
            named.setdefault(name.lower(), str(value).strip()[:VALUE_CHARS])
    return named


def _number(value: str, now: float, *, scale: float = 1.0) -> float | None:
    return seconds_from(float(value) * scale, now) if _NUMBER.fullmatch(value) else None


def wait_from(value: str, now: float) -> float | None:
    """Return the seconds from *now* that a single value names: a number, ``1m30s``, an ISO 8601 time, an HTTP-date."""
    for read in (_number, _duration_value, _iso_date, _http_date):
        if (wait := read(value, now)) is not None:
            return wait
    return None


def _duration_value(value: str, now: float) -> float | None:
    del now  # a duration starts at the answer
    wait, end = _duration(value, 0, _PART)
    return wait if end == len(value) else None


def _duration(text: str, start: int, part: re.Pattern[str]) -> tuple[float | None, int]:
    """Return the seconds of the duration that begins at *start*, and where it ends."""
    total: float | None = None
    end = start
    while match := part.match(text, end):
        total = (total or 0.0) + float(match[1]) * _unit_s(match[2].lower())
        end = match.end()
    return (total if total is not None and math.isfinite(total) else None), end


def _unit_s(unit: str) -> float:
    if unit[0] != "m":
        return _UNITS_S[unit[0]]
    return 1e-6 if unit.startswith("mic") else 1e-3 if unit.startswith(("ms", "mil")) else 60.0


def _until(moment: datetime, now: float, zone: timezone = UTC) -> float:
    """Return the seconds from *now* to *moment*, 0 when it is past; a naive one is in *zone*."""
    return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp() - now)


def _iso_date(value: str, now: float) -> float | None:
    try:
        return _until(datetime.fromisoformat(value), now)
    except (ValueError, OverflowError):
        return None


def _http_date(value: str, now: float) -> float | None:
    """Read the three forms of RFC 9110, section 5.6.7. "-0000" and asctime come out naive: GMT by the standard."""
    try:
        return _until(parsedate_to_datetime(value), now)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _plain(value: object, now: float, *, scale: float = 1.0) -> float | None:
    """Read a JSON value as `wait_from` reads a header's."""
    if isinstance(value, str):
        return wait_from(value.strip()[:VALUE_CHARS], now) if scale == 1.0 else _number(value, now, scale=scale)
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return seconds_from(float(value) * scale, now)
        except OverflowError:
            return None
    return None


def _fields(objects: tuple[Object, ...], names: Sequence[str]) -> Iterator[object]:
    return (owner[name] for owner in objects for name in names if name in owner)


def _google(objects: tuple[Object, ...], now: float) -> float | None:
    """Read ``RetryInfo.retryDelay``: ``"41.6s"``, or protobuf's ``{"seconds": 41}``."""
    for delay in _fields(objects, ("retryDelay",)):
        wait = _plain(delay.get("seconds") if isinstance(delay, dict) else delay, now)
        if wait is not None:
            return wait
    return None


def _reset_field(objects: tuple[Object, ...], now: float) -> float | None:
    in_ms = (_plain(value, now, scale=1e-3) for value in _fields(objects, _MS_FIELDS))
    plain = (_plain(value, now) for value in _fields(objects, _FIELDS))
    return next((wait for wait in chain(in_ms, plain) if wait is not None), None)


def _zai_reset(objects: tuple[Object, ...], text: str, now: float) -> float | None:
    match = _ZAI_RESET.search(text[:TEXT_CHARS])
    if match is None or not any(str(code) in _ZAI_CODES for code in _fields(objects, ("code",))):
        return None
    try:
        # A past time would only mean that the zone is not the one we assume: then the text says nothing.
        return _until(datetime.fromisoformat(match[0]), now, _BEIJING) or None
    except (ValueError, OverflowError):
        return None


def _bucket_reset(named: Headers, now: float) -> float | None:
    """Return the reset of the exhausted bucket, the latest if there are several.

    ``x-ratelimit-reset-<bucket>`` needs its ``remaining`` to be 0. The bare ``x-ratelimit-reset`` and Anthropic's count
    unless their own ``remaining`` is above 0; of several without one the soonest, as none of them is known to be empty.
    """
    pairs = {name: name.replace("reset", "remaining") for name in named if "ratelimit" in name and "reset" in name}
    empty = [
        wait
        for name, left in pairs.items()
        if _left(named, left) == 0
        if (wait := wait_from(named[name], now)) is not None
    ]
    if empty:
        return max(empty)
    for known in (("x-ratelimit-reset", "ratelimit-reset"), tuple(n for n in pairs if n.startswith("anthropic-"))):
        waits = [wait_from(named[name], now) for name in known if name in pairs and _left(named, pairs[name]) is None]
        if (soonest := min((wait for wait in waits if wait is not None), default=None)) is not None:
            return soonest
    return None


def _left(named: Headers, name: str) -> float | None:
    value = named.get(name, "")
    return float(value) if _NUMBER.fullmatch(value) else None


def _text_wait(text: str) -> float | None:
    head = text[:TEXT_CHARS]
    waits = (_duration(head, lead.end(), _PROSE_PART)[0] for lead in _LEAD.finditer(head))
    return next((wait for wait in waits if wait is not None), None)
