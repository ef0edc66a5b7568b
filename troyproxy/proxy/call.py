"""The `Call`: one client request on its way through the layers, kept in the ASGI scope under one namespaced key.

Layers talk to each other through this object and the accessors below, and through nothing else. It is made once per
request, by the edge of the gateway or by the first layer that stands alone, and dropped with the scope.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final, Protocol

from msgspec import Struct, field

from troyproxy.accounting.limits import Standing
from troyproxy.accounting.records import Traced
from troyproxy.auto.gist import Gist
from troyproxy.catalog.keys import Key
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.leaks.gate import GateVerdict
from troyproxy.leaks.repair import Repair
from troyproxy.ports import Headers
from troyproxy.proxy.answers import PEER, Peer
from troyproxy.proxy.ledger import Ledger
from troyproxy.routing.effort import EffortDecision
from troyproxy.routing.names import NameKind, Resolution
from troyproxy.routing.needs import Needs
from troyproxy.routing.order import Plan
from troyproxy.wire import splice
from troyproxy.wire.multipart import Form
from troyproxy.wire.sse import Frame

Scope = MutableMapping[str, Any]

MemoryKey = tuple[str, str, str, str]
"""Client key, session, combo and its edition, weights: what a good target is remembered under."""
SCOPE_KEY: Final = "troyproxy.call"
CHAT_PATH: Final = "/v1/chat/completions"
PASS_THROUGH: Final = frozenset({"/v1/audio/{path}", "/v1/images/{path}", "/v1/moderations", "/v1/rerank"})
"""Routes whose bodies are the client's and the upstream's own: nothing but the model's name is read or changed."""
STREAMLESS: Final = PASS_THROUGH | {"/v1/embeddings"}
"""Routes whose answers are never chat events, whatever the request says."""


class Gate(Protocol):
    """A pure per-request judge of an answer that has not been sent yet (`design`: gates decide the commit)."""

    def reset(self) -> None:
        """A new attempt begins."""
        ...

    def feed(self, event: object, can_reject: bool, /) -> GateVerdict:  # noqa: FBT001 -- the gates' protocol
        """Judge one decoded stream event."""
        ...

    def judge(self, body: object, can_reject: bool, /) -> GateVerdict:  # noqa: FBT001 -- the gates' protocol
        """Judge one decoded non-stream answer."""
        ...


Rescue = Callable[[str, object], Repair | None]
"""From a provider and its decoded refusal to the tool call that was meant, or None."""


class Call(Struct):
    """One request. `body` and `payload` are the client's until a layer in front of a foreign app edits them."""

    request_id: str
    at: float
    """Arrival, unix seconds."""
    started: float
    """Arrival, on the monotonic clock."""
    route: str
    """Route template, for metrics and rows."""
    upstream_path: str = "/chat/completions"
    headers: Headers = ()
    snapshot: Snapshot = field(default_factory=Snapshot)
    key: Key | None = None
    seed: int = 0
    body: bytes = b""
    payload: dict[str, object] = field(default_factory=dict)
    """The decoded body; of what is passed through, the model's name alone. Another one comes by `take`."""
    stream: bool = False
    """Whether the client asked for a stream: exactly ``true``, nothing that merely looks so."""
    passing: bool = False
    """Whether the route passes bodies through."""
    form: Form | None = None
    """The places of the fields, when the body is a multipart form."""
    quiet: bool = False
    """The client is not told which providers and accounts there are (``TROY_EXPOSE=id``)."""
    foreign: bool = False
    """Behind the layers stands somebody else's app: decisions are applied to the body at once."""
    resolution: Resolution | None = None
    effort: EffortDecision | None = None
    needs: Needs | None = None
    gist: Gist | None = None
    """What the auto engine read of the request; None until it is asked."""
    plan: Plan | None = None
    gates: list[Gate] = field(default_factory=list)
    usage_wanted: bool = False
    """The gateway wants usage events in the stream, whether or not the client asked."""
    framed: bool = False
    """Each body message holds the whole frames of `frames`; layers need not frame again."""
    frames: list[Frame] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    client_left: bool = False
    remember: tuple[MemoryKey, ...] = ()
    """Under which keys a success of this request is remembered (`memory`)."""
    probe: str | None = None
    """The identity of the candidate that this plan tries as the probe of its exclusion."""
    tool_turn: bool = False
    """The request offers tools, and what comes back is watched for calls that are written as text."""
    rescue: Rescue | None = None
    """Reads the call out of an upstream's refusal that holds what it could not make out; None: nothing is rescued."""
    standing: tuple[Standing, ...] | None = None
    """Where the key stands after this request was admitted or refused; None before, and without limits."""
    traced: Traced | None = None
    """Its place in a trace; None while no spans are made."""
    peer: Peer | None = None
    """Who waits for the answer; None behind a server that is not ours, where only `receive` tells of a leaving."""
    begun: bool = False
    """The head of an answer is on its way."""
    complete: Callable[[Call, Headers], list[tuple[bytes, bytes]]] | None = None
    """Adds what the edge tells in every head; None where there is no edge."""
    single: dict[str, object] | None = None
    """The payload, where it is known that no member stands twice in the body; another object says nothing of it."""
    fields: Mapping[bytes, bytes] = field(default_factory=dict)
    """The first value of each header; made of the `headers`."""

    def __post_init__(self) -> None:
        self.passing, self.fields = self.route in PASS_THROUGH, dict(reversed(self.headers))
        if self.payload:
            self.take(self.payload)

    def take(self, payload: dict[str, object]) -> None:
        """Take the decoded body, and note what it says of the answer."""
        self.payload = payload
        self.stream = payload.get("stream") is True and self.route not in STREAMLESS

    def head(self, status: int, headers: Headers) -> list[tuple[bytes, bytes]]:
        """Note that an answer begins; return its *headers* with what the edge adds. For whoever sends the head."""
        self.begun, self.ledger.status = True, status
        return list(headers) if self.complete is None else self.complete(self, headers)

    @property
    def combo_name(self) -> str | None:
        """The combo that was asked for, an ``auto`` id included; None for anything else."""
        found = self.resolution
        if found is None or found.kind is NameKind.AUTO:
            return None if found is None else found.canonical
        return found.combo.name if found.combo is not None else None

    @property
    def strategy(self) -> str | None:
        """The strategy that orders the members; None where there is no combo."""
        found = self.resolution
        if found is not None and found.kind is NameKind.AUTO:
            return "auto"
        return found.combo.strategy if found is not None and found.combo is not None else None

    @property
    def wants_tools(self) -> bool:
        """Whether tools are wanted: the request offers some, or says that they come later (``x-troy-wants-tools``)."""
        return (self.needs is not None and self.needs.tools) or self.header(b"x-troy-wants-tools") == "1"

    @property
    def asked_usage(self) -> bool:
        """Whether the client itself asked for usage in the stream."""
        options = self.payload.get("stream_options")
        return isinstance(options, Mapping) and options.get("include_usage") is True

    def header(self, name: bytes) -> str | None:
        """Return the first value of a request header as text, or None."""
        value = self.fields.get(name)
        return None if value is None else value.decode("latin-1").strip()

    def sends(self, names: frozenset[bytes]) -> bool:
        """Whether the client sent any of these headers."""
        return not names.isdisjoint(self.fields)

    def over(self) -> None:
        """Let go of whoever watched the answer: they hold the call, and only the collector would free both."""
        self.gates, self.rescue = [], None

    def edit(self, changes: Mapping[str, object], drop: frozenset[str] = frozenset()) -> None:
        """Change top-level members of the request, in place of the client's; other bytes stay as they are."""
        self.body = splice.edit(self.body, changes, drop)
        self.take({k: v for k, v in self.payload.items() if k not in drop} | dict(changes))


def call_of(scope: Scope) -> Call | None:
    """Return the call of this request, or None when no layer has made one yet."""
    found = scope.get(SCOPE_KEY)
    return found if isinstance(found, Call) else None


def put_call(scope: Scope, call: Call) -> Scope:
    """Return a copy of *scope* that carries *call*."""
    return {**scope, SCOPE_KEY: call}


def peer_of(scope: Scope) -> Peer | None:
    """Return who waits for the answer, as our own server says; None behind any other."""
    extensions = scope.get("extensions")
    found: Peer | None = extensions.get(PEER) if extensions else None
    return found


def raw_headers(scope: Scope) -> Headers:
    """Return the request's headers with lower-case names."""
    return tuple((bytes(name).lower(), bytes(value)) for name, value in scope.get("headers", ()))


def local_path(scope: Scope) -> str:
    """Return the path below the mount point (``root_path``)."""
    path, root = str(scope["path"]), scope.get("root_path")
    if not root:
        return path
    mounted = path == root or path.startswith(f"{root.rstrip('/')}/")
    return path[len(root.rstrip("/")) :] if mounted else path
