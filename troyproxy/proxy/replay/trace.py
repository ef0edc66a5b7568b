"""The format of a trace: JSON lines, a head that names the version and then one line per request, oldest first.

    {"trace": "troyproxy", "version": 1, "exported_at": 1767225600.0, "since": 1766620800.0}
    {"request_id": "req_1", "at": 1766620801.5, "model": "daily", "seed": "77", "attempts": [...], ...}

What is in a line is a field of `TracedRequest`; others are ignored, so that a later version may add some. Nothing that
a client or an upstream wrote is in it, but for the names of models.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Final

import msgspec

from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.accounting.usage import Usage
from troyproxy.auto.gist import Gist
from troyproxy.catalog.keys import Key
from troyproxy.errors import TroyError
from troyproxy.resilience.classes import ErrorClass
from troyproxy.routing.needs import Needs

VERSION: Final = 1
NAME: Final = "troyproxy"
HEADERS: Final = "headers"
AUTO: Final = "auto"
"""Members of a row's needs: the request's routing headers, and its gist."""
OK: Final = "ok"
ATTEMPT_OUTCOMES: Final = frozenset({OK, *map(str, ErrorClass)})
LONGEST_LINE: Final = 16 << 20
"""Bytes; a request with hundreds of attempts has a few ten thousand."""


class TraceError(TroyError):
    """A trace cannot be read; the message names file and line."""


@dataclass(frozen=True, slots=True)
class TracedKey:
    """What routing needs to know of the key that a request came with, as it was when the trace was written."""

    id: str
    provider: str | None = None
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """Who served a request; *account* is its name."""

    provider: str
    model: str
    account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRequest:
    """One request and what became of it. Moments are unix seconds, durations milliseconds."""

    request_id: str
    at: float
    model: str
    """As the client asked for it."""
    route: str = "/v1/chat/completions"
    stream: bool = False
    seed: str | None = None
    """Sixty-four bits, in decimal: a text, since other languages' numbers have fewer."""
    needs: Needs = field(default_factory=Needs)
    headers: Mapping[str, str] = field(default_factory=dict)
    """The routing headers that came with it, by name."""
    auto: Gist | None = None
    """What the auto engine read of it, if it was asked."""
    key: TracedKey | None = None
    attempts: tuple[AttemptRecord, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    """(spec, reason) pairs."""
    served: Target | None = None
    outcome: str = OK
    status: int = 200
    usage: Usage | None = None
    cost_usd: float | None = None
    duration_ms: float = 0.0
    first_token_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceHead:
    """The first line."""

    trace: str
    version: int
    exported_at: float | None = None
    since: float | None = None


def head_line(*, exported_at: float, since: float) -> bytes:
    """Return the first line of a trace."""
    return _line(TraceHead(trace=NAME, version=VERSION, exported_at=exported_at, since=since))


def request_line(request: TracedRequest) -> bytes:
    """Return the line of one request."""
    return _line(request)


def _line(value: TraceHead | TracedRequest) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def routed(row: UsageRow) -> bool:
    """Whether the request of *row* came as far as routing: others were refused before, and say nothing of a policy."""
    return bool(row.attempts or row.skipped or row.status >= 500) and row.requested_model != ""


def traced(row: UsageRow, key: Key | None) -> TracedRequest:
    """Return what a trace keeps of *row*; *key* is the one it came with, if it is still known."""
    told = row.needs.get(HEADERS)
    served = row.provider is not None and row.model is not None and row.account is not None
    return TracedRequest(
        request_id=row.request_id,
        at=row.at,
        model=row.requested_model,
        route=row.route,
        stream=row.stream,
        seed=str(row.seed),
        needs=msgspec.convert(dict(row.needs), Needs),
        headers={str(name): str(value) for name, value in told.items()} if isinstance(told, Mapping) else {},
        auto=msgspec.convert(row.needs.get(AUTO), Gist | None),
        key=_key(row, key),
        attempts=row.attempts,
        skipped=row.skipped,
        served=Target(row.provider or "", row.model or "", row.account or "") if served else None,
        outcome=row.outcome,
        status=row.status,
        usage=row.usage,
        cost_usd=row.cost_usd,
        duration_ms=row.duration_ms,
        first_token_ms=row.first_token_ms,
    )


def _key(row: UsageRow, key: Key | None) -> TracedKey | None:
    if row.key_id is None:
        return None
    return TracedKey(row.key_id) if key is None else TracedKey(key.id, key.provider, key.models)


def lines_of(file: IO[bytes], name: str) -> Iterator[bytes]:
    """Yield the lines of *file*. Raises TraceError for one that is too long to be one."""
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            raise TraceError(f"{name}:{number}: is longer than {LONGEST_LINE} bytes")
        yield line


def read_trace(lines: Iterable[bytes], name: str) -> Iterator[TracedRequest]:
    """Yield the requests in *lines*. Raises TraceError with *name* and the line's number."""
    reader = _Reader(name)
    for number, line in enumerate(lines, start=1):
        if (request := reader.read(number, line)) is not None:
            yield request
    if not reader.headed:
        raise TraceError(f"{name}: is empty; a trace begins with its head")


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name
        self._heads = msgspec.json.Decoder(TraceHead)
        self._requests = msgspec.json.Decoder(TracedRequest)
        self._latest = 0.0
        self.headed = False

    def read(self, number: int, line: bytes) -> TracedRequest | None:
        """Return the request in a line; None for the head and for a blank line."""
        if not line.strip():
            return None
        try:
            if not self.headed:
                _check_head(self._heads.decode(line))
                self.headed = True
                return None
            request = self._requests.decode(line)
            _check(request, self._latest)
        except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
            raise TraceError(f"{self._name}:{number}: {_said(error, headed=self.headed)}") from None
        self._latest = request.at
        return request


def _said(error: Exception, *, headed: bool) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    told = str(error) or "is no text"
    return told if headed else f"is not the head of a trace: {told}"


def _check_head(head: TraceHead) -> None:
    if head.trace != NAME:
        raise ValueError(f"trace is {head.trace[:40]!r}; allowed: {NAME}")
    if head.version != VERSION:
        raise ValueError(f"version {head.version} is unknown; this program reads version {VERSION}")


def _check(request: TracedRequest, latest: float) -> None:
    if request.at < latest:
        raise ValueError("came before the request of the line above; a trace is in the order of arrival")
    if request.seed is not None and not (request.seed.isascii() and request.seed.isdecimal()):
        raise ValueError(f"seed is {request.seed[:40]!r}; allowed: a number as a text")
    times = [request.at, request.duration_ms, *(attempt.duration_ms for attempt in request.attempts)]
    if any(not math.isfinite(time) or time < 0 for time in times):
        raise ValueError("a moment or a duration is below 0")
    for attempt in request.attempts:
        if attempt.outcome not in ATTEMPT_OUTCOMES:
            raise ValueError(
                f"outcome {attempt.outcome[:40]!r} is unknown; allowed: {', '.join(sorted(ATTEMPT_OUTCOMES))}"
            )
