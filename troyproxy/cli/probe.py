"""One tiny chat request through the whole gateway, in this process: what a client would get, and how it came about."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from troyproxy.accounting.records import AttemptRecord, UsageRow
from troyproxy.api.gateway import Gateway
from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import Origin, Provider
from troyproxy.cli.output import print_json, print_table
from troyproxy.cli.session import Session
from troyproxy.errors import TroyError
from troyproxy.ports import UpstreamRequest
from troyproxy.proxy.answers import Message
from troyproxy.proxy.authenticator import digest_of, generate_key
from troyproxy.proxy.call import CHAT_PATH
from troyproxy.proxy.trials import ASK, message_of
from troyproxy.upstream.asgi import scope_of


class ProbeFailed(TroyError):
    """Nobody answered."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of the request. *message* is the answer's text, or the error's."""

    model: str
    status: int
    message: str
    row: UsageRow | None

    @property
    def ok(self) -> bool:
        """Whether somebody answered."""
        return self.status == 200

    @property
    def attempts(self) -> tuple[AttemptRecord, ...]:
        """Who was tried, in order."""
        return () if self.row is None else self.row.attempts

    @property
    def trail(self) -> str:
        """The attempts, compact."""
        return "" if self.row is None else self.row.trail

    @property
    def skipped(self) -> tuple[tuple[str, str], ...]:
        """Who was left out, and why."""
        return () if self.row is None else self.row.skipped


def probe_key() -> tuple[str, Key]:
    """Return a client key for this process and what the gateway keeps of it. It is stored nowhere."""
    secret = generate_key()
    return secret, Key(id="cli", name="cli", digest=digest_of(secret.encode()), origin=Origin.BUILTIN)


async def probe(found: Session, secret: str, model: str) -> Probe:
    """Ask *model* with the client key *secret*."""
    status, headers, body = await _post(found.gateway, secret, {"model": model, **ASK})
    request_id = headers.get(b"x-troy-request-id", b"").decode("ascii")
    return Probe(model, status, message_of(body), found.services.ring.find(request_id))


async def _post(gateway: Gateway, secret: str, payload: object) -> tuple[int, Mapping[bytes, bytes], bytes]:
    """Post *payload* to the gateway in this task: when this returns, the request's row is written."""
    headers = ((b"content-type", b"application/json"), (b"authorization", b"Bearer " + secret.encode()))
    body = json.dumps(payload).encode()
    request = UpstreamRequest(Provider(id="cli"), "POST", CHAT_PATH.removeprefix("/v1"), headers, body)
    arriving: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        if not arriving:
            await asyncio.Event().wait()  # stays, until it is no longer asked
        return arriving.pop()

    async def send(message: Message) -> None:
        sent.append(message)

    await gateway(scope_of(request), receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(message.get("body", b"") for message in sent[1:])


def report(found: Probe, *, as_json: bool) -> None:
    """Print what came of *found*. Raises ProbeFailed when nobody answered."""
    if as_json:
        print_json(_told(found))
    else:
        rows = [(a.provider, a.model, a.account, a.outcome, a.status, f"{a.duration_ms:.0f}") for a in found.attempts]
        skips = [(*spec.partition("/")[::2], "", f"skipped: {reason}", "", "") for spec, reason in found.skipped]
        print_table(("provider", "model", "account", "outcome", "status", "ms"), [*rows, *skips])
        if found.ok:
            print_table(("trail", "answer"), [(found.trail, found.message)])
    if not found.ok:
        raise ProbeFailed(f"{found.model} did not answer: HTTP {found.status}: {found.message}")


def _told(found: Probe) -> dict[str, object]:
    return {
        "model": found.model,
        "ok": found.ok,
        "status": found.status,
        "message": found.message,
        "trail": found.trail,
        "attempts": [msgspec.to_builtins(attempt) for attempt in found.attempts],
        "skipped": [{"member": spec, "reason": reason} for spec, reason in found.skipped],
    }
