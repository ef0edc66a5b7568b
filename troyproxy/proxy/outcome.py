"""What an attempt came to, as data."""

from __future__ import annotations

import math

import msgspec

from troyproxy.accounting.usage import Usage
from troyproxy.catalog.providers import Account, Provider
from troyproxy.ports import Headers
from troyproxy.resilience.classify import Failure
from troyproxy.resilience.faults import Fault
from troyproxy.routing.members import Candidate


class Target(msgspec.Struct, frozen=True):
    """Where one attempt goes: a member, one of its accounts, and when it began."""

    candidate: Candidate
    provider: Provider
    account: Account
    started_at: float
    probe: bool = False
    limit_s: float = 0.0
    """Seconds this attempt may take to its first output (non-stream: to its end)."""
    walk_until: float = math.inf
    """The loop's time by which the walk has to begin its answer."""
    can_reject: bool = True
    """Another eligible member is left, so a gate may send the walk on."""
    seed: int | None = None
    """What the jitter of a lock is drawn with, so that the same request can be walked again; None = by chance."""

    def within(self, limit_s: float) -> Target:
        """Return the same target with another limit."""
        return msgspec.structs.replace(self, limit_s=limit_s)

    def failure(
        self,
        status: int | None = None,
        *,
        fault: Fault | None = None,
        headers: Headers = (),
        body: bytes = b"",
        in_band: bool = False,
        body_sent: bool = True,
    ) -> Failure:
        """Return what went wrong here, for the classifier; *body_sent*: the upstream may have taken the request."""
        return Failure(
            status=status,
            headers=headers,
            body=body,
            fault=fault,
            provider=self.provider.id,
            model=self.candidate.model,
            body_sent=body_sent,
            in_band=in_band,
        )


class Answer(msgspec.Struct, frozen=True):
    """An upstream's own answer, kept for the client in case it is the last."""

    status: int
    headers: Headers
    body: bytes


class Broken(msgspec.Struct, frozen=True):
    """The attempt failed before anything of it was sent."""

    failure: Failure
    answer: Answer | None = None
    usage: Usage | None = None
    message: str = ""
    """The upstream's own words, for failures without an HTTP answer of their own."""
    left: bytes = b""
    """The whole answer that was left for another member, since its tool call leaked."""


class Served(msgspec.Struct, frozen=True):
    """The client has the answer, or (with *cut*) its beginning and one in-band error."""

    usage: Usage | None = None
    cut: Failure | None = None
