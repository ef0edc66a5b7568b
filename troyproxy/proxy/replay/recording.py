"""What the attempts of a trace came to, to be drawn from for attempts that were never made.

The nearest evidence counts, in this order:

1. the attempts of the same account at the same model, around that moment, if there are `LEAST` of them;
2. those of the provider's model, around that moment, else the `NEAREST` of all times;
3. those of the provider, likewise;
4. `default`: it is served, after the median time of everything that was served.

What speaks of one request or of its client (`request`, `context`, `cancelled`, `saturated`) is no evidence for others.
Memory is bounded: of a series that is too long every second attempt is kept.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Final

from troyproxy.accounting.records import AttemptRecord
from troyproxy.proxy.replay.trace import OK, TracedRequest
from troyproxy.resilience.classes import ErrorClass

NEAR_S: Final = 900.0
"""Around a moment: so many seconds before and after it."""
LEAST: Final = 5
NEAREST: Final = 20
MOST: Final = 20_000
"""Attempts that are kept of one series."""
MOST_SERIES: Final = 10_000
DEFAULT_MS: Final = 1000.0
"""How long an answer takes where a trace holds none."""
OF_THE_REQUEST: Final = frozenset(
    map(str, (ErrorClass.REQUEST, ErrorClass.CONTEXT, ErrorClass.CANCELLED, ErrorClass.SATURATED))
)

Place = tuple[str, str, str]
"""Provider, model and the account's name."""


class Source(StrEnum):
    """Where the outcome of a simulated attempt comes from."""

    RECORDED = "recorded"
    """This request was tried there."""
    ACCOUNT = "account"
    MODEL = "model"
    PROVIDER = "provider"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Sample:
    """One recorded attempt. *first_ms*: until its first output, where it served; *cut*: it broke off after that."""

    at: float
    attempt: AttemptRecord
    first_ms: float | None = None
    cut: bool = False


def place_of(attempt: AttemptRecord) -> Place:
    """Return where *attempt* went."""
    return attempt.provider, attempt.model, attempt.account


def samples_of(request: TracedRequest) -> Iterator[Sample]:
    """Yield the attempts of *request* at an answer, in order; a hand-off's summary is none."""
    attempts = [attempt for attempt in request.attempts if not attempt.handoff]
    last = len(attempts) - 1
    for number, attempt in enumerate(attempts):
        serving = number == last and request.served is not None
        first_ms = _first_ms(request, attempt) if serving else None
        yield Sample(request.at, attempt, first_ms, serving and attempt.outcome != OK)


def _first_ms(request: TracedRequest, attempt: AttemptRecord) -> float:
    if request.first_token_ms is None:
        return attempt.duration_ms
    began_ms = (attempt.started_at - request.at) * 1000
    return min(max(0.0, request.first_token_ms - began_ms), attempt.duration_ms)


@dataclass(slots=True)
class _Series:
    """Samples in the order of their requests' arrival."""

    samples: list[Sample] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    _every: int = 1
    _seen: int = 0

    def add(self, sample: Sample) -> None:
        self._seen += 1
        if self._seen % self._every:
            return
        self.samples.append(sample)
        self.times.append(sample.at)
        if len(self.samples) > MOST:
            self.samples, self.times = self.samples[::2], self.times[::2]
            self._every *= 2

    def near(self, at: float) -> tuple[int, int]:
        """Return the range of the samples around *at*."""
        return bisect_left(self.times, at - NEAR_S), bisect_right(self.times, at + NEAR_S)

    def nearest(self, at: float) -> tuple[int, int]:
        """Return the range of samples that lie next to *at*, whenever that was."""
        middle = bisect_left(self.times, at)
        low = max(0, min(middle - NEAREST // 2, len(self.times) - NEAREST))
        return low, min(len(self.times), low + NEAREST)


class Recording:
    """Filled from a trace, then asked. *first_at* and *last_at* are the arrivals of its first and last request."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, ...], _Series] = {}
        self._served = _Series()
        self._median_ms: float | None = None
        self.requests = 0
        self.first_at = self.last_at = 0.0

    def add(self, request: TracedRequest) -> None:
        """Take the attempts of *request*; requests come in the order of their arrival."""
        self.first_at = self.first_at if self.requests else request.at
        self.last_at = request.at
        self.requests += 1
        self._median_ms = None
        for sample in samples_of(request):
            attempt = sample.attempt
            if attempt.outcome in OF_THE_REQUEST:
                continue
            for key in ((attempt.provider,), (attempt.provider, attempt.model), place_of(attempt)):
                self._of(key).add(sample)
            if attempt.outcome == OK:
                self._served.add(sample)

    def _of(self, key: tuple[str, ...]) -> _Series:
        found = self._series.get(key)
        if found is None:
            found = _Series()
            if len(self._series) < MOST_SERIES:
                self._series[key] = found
        return found

    def draw(self, place: Place, at: float, rng: Random) -> tuple[Sample, Source]:
        """Return an attempt that may stand for one at *place* at *at* (unix seconds), and how near it lies."""
        own = self._series.get(place)
        if own is not None:
            low, high = own.near(at)
            if high - low >= LEAST:
                return own.samples[rng.randrange(low, high)], Source.ACCOUNT
        for key, source in ((place[:2], Source.MODEL), (place[:1], Source.PROVIDER)):
            series = self._series.get(key)
            if series is not None and series.samples:
                low, high = series.near(at)
                low, high = (low, high) if high > low else series.nearest(at)
                return series.samples[rng.randrange(low, high)], source
        return self._default(place, at), Source.DEFAULT

    def _default(self, place: Place, at: float) -> Sample:
        if self._median_ms is None:
            taken = sorted(sample.attempt.duration_ms for sample in self._served.samples)
            self._median_ms = taken[len(taken) // 2] if taken else DEFAULT_MS
        provider, model, account = place
        attempt = AttemptRecord(provider, model, account, OK, 200, at, self._median_ms)
        return Sample(at, attempt, self._median_ms)
