"""Every seam on one page. What stands behind each is chosen in `app.py` and nowhere else.

Clock, Upstream, EventLog, StateMirror, UsageSink, Observer, then one repository per aggregate. `tests/fakes.py` has one
fake per Protocol, in the same order.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.catalog.combos import Combo
from troyproxy.catalog.keys import Key
from troyproxy.catalog.models import Model
from troyproxy.catalog.providers import Account, Provider
from troyproxy.resilience.events import Event
from troyproxy.resilience.faults import Fault

Headers = tuple[tuple[bytes, bytes], ...]
"""Raw header pairs with lower-case names, in order, repeats kept."""


class Clock(Protocol):
    """Time, read at the edge only."""

    def now(self) -> float:
        """Return unix seconds."""

    def monotonic(self) -> float:
        """Return seconds for measuring durations."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """One HTTP request to one provider. `headers` is complete: the adapter adds framing only."""

    provider: Provider
    method: str
    path: str
    """Behind the provider's base URL, with a leading slash: ``/chat/completions``."""
    headers: Headers = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    connect_s: float = 10.0


class UpstreamResponse(Protocol):
    """A response whose body is pulled. Closing it early closes or drains the connection, never leaks it."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Headers: ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, content-encoding undone. Raises UpstreamFailed."""

    async def aclose(self) -> None:
        """Close the response and free the connection; safe to call twice and after cancellation."""


class UpstreamFailed(Exception):
    """The transport failed. `body_sent`: the upstream may have accepted (and billed) the request."""

    def __init__(self, fault: Fault, detail: str = "", *, body_sent: bool = False) -> None:
        super().__init__(detail or fault.value)
        self.fault = fault
        self.body_sent = body_sent


class Upstream(Protocol):
    """Carries requests to providers: over httpx, a pooled HTTP/1.1 client, or into an ASGI app."""

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        """Send *request* and return when the response head is there. Raises UpstreamFailed; cancel-safe."""

    async def aclose(self) -> None:
        """Close every pool."""


class EventLog(Protocol):
    """The journal of the health state: append before apply, fold at start."""

    def append(self, event: Event) -> None:
        """Queue *event* for the writer; never waits, never raises (a full queue drops the oldest and counts)."""

    async def replay(self) -> Sequence[Event]:
        """Return the journalled events that can still have an effect, oldest first."""


@dataclass(frozen=True, slots=True)
class News:
    """What another instance says: events to merge (``resilience/shared.py``), and a revision of the control row."""

    events: tuple[Event, ...] = ()
    revision: int | None = None


class StateMirror(Protocol):
    """Where instances share locks and open circuits, and tell each other news. No request waits for it.

    Every method but `close` raises StoreUnavailable within a few seconds and is cancel-safe. After that, `open` again.
    """

    async def open(self) -> None:
        """Connect, and begin to listen: from now on no news is missed."""

    async def read(self, now: float) -> Sequence[Event]:
        """Return everything that is kept and has not run out at *now*. What is missing in it means nothing."""

    async def push(self, kept: Sequence[Event], *, now: float, news: News | None = None) -> None:
        """Make what this instance keeps there equal to *kept*, and tell the others what is new in it, and *news*."""

    async def listen(self) -> News:
        """Wait for the next news of another instance; one's own are not heard."""

    async def close(self) -> None:
        """Disconnect; safe to call twice, and when nothing was opened."""


class UsageSink(Protocol):
    """Takes usage rows; never waits, never raises."""

    def record(self, row: UsageRow) -> None: ...


@dataclass(frozen=True, slots=True)
class Failover:
    """The walk left one provider for another."""

    combo: str | None
    from_provider: str
    to_provider: str
    error_class: str


class Observer(Protocol):
    """Hears what happens, from the walk and the endpoint. Must not raise and must not wait."""

    def request_started(self) -> None: ...

    def request_finished(self, row: UsageRow) -> None: ...

    def attempt_finished(self, attempt: AttemptRecord) -> None: ...

    def failed_over(self, failover: Failover) -> None: ...

    def skipped(self, provider: str, reason: str) -> None: ...

    def circuit_changed(self, provider: str, model: str, before: str, after: str) -> None: ...

    def inflight_changed(self, provider: str, account: str, count: int) -> None: ...

    def leaked(self, provider: str, model: str, leak_format: str, action: str) -> None: ...

    def adapted(self, provider: str, param: str, action: str) -> None: ...

    def events_seen(self, provider: str, model: str, gaps_s: Sequence[float]) -> None:
        """Gaps between the events of one finished stream, in seconds (bounded sample)."""

    def trace(self, request_id: str, lines: Sequence[str]) -> None:
        """The play-by-play of one finished request; called only when tracing is on."""


class ComboRepository(Protocol):
    """Combos and their members. Writers bump the control revision in the same transaction."""

    async def list(self) -> list[Combo]: ...

    async def add(self, combo: Combo) -> Combo:
        """Raises Conflict when the name (case-insensitively) or id is taken."""

    async def replace(self, combo: Combo, *, expected_version: int | None = None) -> Combo:
        """Raises NotFound, or PreconditionFailed when the stored version is another."""

    async def remove(self, combo_id: str) -> None:
        """Raises NotFound."""


class ConnectionRepository(Protocol):
    """Accounts of providers (connections). Secrets are encrypted at rest."""

    async def list(self) -> list[Account]: ...

    async def add(self, account: Account) -> Account:
        """Raises Conflict when the provider already has an account of this name."""

    async def remove(self, account_id: str) -> None:
        """Raises NotFound."""


class KeyRepository(Protocol):
    """Client keys, by digest."""

    async def list(self) -> list[Key]: ...

    async def find(self, digest: bytes) -> Key | None: ...

    async def add(self, key: Key) -> Key:
        """Raises Conflict when the name is taken."""

    async def revoke(self, key_id: str, *, at: float) -> Key:
        """Raises NotFound; revoking twice is fine."""


class ModelRepository(Protocol):
    """Overrides of the catalogue, by ``provider/model``."""

    async def list(self) -> dict[str, Model]: ...

    async def put(self, spec: str, model: Model) -> None: ...

    async def remove(self, spec: str) -> None:
        """Raises NotFound."""


class RequestRepository(Protocol):
    """Usage rows, read back."""

    async def find(self, request_id: str) -> UsageRow | None: ...

    async def recent(self, *, limit: int = 50) -> list[UsageRow]: ...


@dataclass(frozen=True, slots=True)
class ControlEvent:
    """One thing that every process must do once: *kind* says what, *payload* on what. `id` grows."""

    id: int
    at: float
    kind: str
    payload: Mapping[str, object]


class Control(Protocol):
    """The control row that tells every process to reload, and what it must do besides."""

    async def revision(self) -> int: ...

    async def bump(self) -> int: ...

    async def publish(self, kind: str, payload: Mapping[str, object]) -> int:
        """Store an event for every process, bump the revision in the same transaction, and return the revision."""

    async def newest(self) -> int:
        """Return the id of the newest event, 0 when there was none."""

    async def since(self, event_id: int) -> list[ControlEvent]:
        """Return the next events behind *event_id*, oldest first; a bounded number, so ask again until none is left."""


class Store(Protocol):
    """The database as one value: its repositories, journal and sink, started and stopped by the lifespan."""

    @property
    def combos(self) -> ComboRepository: ...

    @property
    def connections(self) -> ConnectionRepository: ...

    @property
    def keys(self) -> KeyRepository: ...

    @property
    def models(self) -> ModelRepository: ...

    @property
    def requests(self) -> RequestRepository: ...

    @property
    def control(self) -> Control: ...

    @property
    def events(self) -> EventLog: ...

    @property
    def usage(self) -> UsageSink: ...

    @property
    def up(self) -> bool:
        """Whether the last database operation of the writer succeeded."""

    @property
    def queue_depths(self) -> Mapping[str, int]: ...

    @property
    def dropped(self) -> Mapping[str, int]:
        """Rows dropped at the bound, per queue."""

    async def start(self) -> None:
        """Migrate where that is automatic, open the engine, start the writer."""

    async def stop(self) -> None:
        """Drain the queues, stop the writer, close the engine."""
