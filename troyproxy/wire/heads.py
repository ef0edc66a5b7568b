"""The head of a request to an upstream: what is the same for every request of an account is put together once.

The strongest source of a name wins and the others are gone: credential, then the provider's fixed headers, then ours,
then the client's. Framing is not among them: the hop that writes the body writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from troyproxy.catalog.providers import Account, Provider
from troyproxy.catalog.secret import Secret
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.version import VERSION
from troyproxy.wire.headers import CONTROL, FRAMING, TOKEN, Headers, crossing, safe_value

USER_AGENT: Final = f"troyproxy/{VERSION}".encode()
JSON: Final = b"application/json"
ANYTHING: Final = b"*/*"
_AGENT: Final = (b"user-agent", USER_AGENT)
_IDENTITY: Final = (b"accept-encoding", b"identity")
OURS: Final = frozenset(
    {
        *(b"content-type", b"accept", b"user-agent", b"x-request-id", b"accept-encoding"),
        *(b"traceparent", b"tracestate"),
    },
)
"""What we set ourselves, unless a provider's fixed headers do."""


class Template:
    """What all requests with one credential of one provider have in common."""

    __slots__ = ("_all_ours", "_strong", "_taken", "api_key", "provider")

    def __init__(self, provider: Provider, api_key: Secret | None) -> None:
        self.provider, self.api_key = provider, api_key
        mine = credential(provider, api_key)
        carried = {name for name, _ in mine}
        fixed = [pair for pair in _pairs(provider.headers) if pair[0] not in FRAMING and pair[0] not in carried]
        self._strong = _safe((*mine, *fixed))
        self._taken = frozenset(name for name, _ in self._strong)
        self._all_ours = self._taken.isdisjoint(OURS)

    def head(
        self, client: Headers, request_id: str, *, content_type: bytes | None = None, extra: Headers = ()
    ) -> Headers:
        """Return everything that goes to the upstream except framing. *request_id* is of our own making.

        *client*: what of the client's headers crosses (`headers.crossing`). *content_type* overrides the client's (a
        body that was encoded anew is JSON). *extra* is for trace context.
        """
        accept: bytes | None = None
        vendor: Headers = ()
        for name, value in client:
            safe = safe_value(value)
            if name == b"accept":
                accept = accept or safe
            elif name == b"content-type":
                content_type = content_type or safe
            elif safe is not None and name not in self._taken:
                vendor = (*vendor, (name, safe))
        ours: Headers = (
            (b"content-type", content_type or JSON),
            (b"accept", accept or ANYTHING),
            _AGENT,
            (b"x-request-id", request_id.encode("ascii")),
            *(_safe(extra) if extra else ()),
            _IDENTITY,
        )
        if not self._all_ours:
            ours = tuple(pair for pair in ours if pair[0] not in self._taken)
        return (*self._strong, *ours, *vendor)


class Heads:
    """The templates of one snapshot; another snapshot begins anew, so nothing of a removed account stays."""

    __slots__ = ("_made", "_snapshot")

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._made: dict[str, Template] = {}

    def template(self, snapshot: Snapshot, provider: Provider, account: Account) -> Template:
        """Return the template of *account*."""
        if snapshot is not self._snapshot:
            self._snapshot, self._made = snapshot, {}
        found = self._made.get(account.id)
        if found is None or found.provider is not provider or found.api_key is not account.api_key:
            found = self._made[account.id] = Template(provider, account.api_key)
        return found


def build_headers(
    provider: Provider,
    api_key: Secret | None,
    client: Headers,
    request_id: str,
    *,
    content_type: bytes | None = None,
    extra: Headers = (),
) -> Headers:
    """Return the head of one request, as `Template.head`, from the *client*'s headers as they came."""
    mine = crossing(client, typed=content_type is None)
    return Template(provider, api_key).head(mine, request_id, content_type=content_type, extra=extra)


def credential(provider: Provider, api_key: Secret | None) -> Headers:
    """Return the one header that carries *api_key*, or none: keyless provider, no key, or a key no header can carry."""
    text = api_key.reveal().strip() if api_key is not None else ""
    if provider.auth.header is None or not text:
        return ()
    value = f"{provider.auth.prefix}{text}"
    if not value.isascii() or CONTROL.search(value.encode()):
        return ()
    return _pairs([(provider.auth.header, value)])


def _pairs(headers: Iterable[tuple[str, str]]) -> Headers:
    encoded = ((name.lower().encode(), value.encode()) for name, value in headers)
    return tuple((name, value) for name, value in encoded if TOKEN.fullmatch(name))


def _safe(headers: Headers) -> Headers:
    made = ((name, safe_value(value)) for name, value in headers)
    return tuple((name, value) for name, value in made if value is not None)
