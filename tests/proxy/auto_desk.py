"""A planner with providers for the auto engine, on a clock that the test moves."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tests.fakes import FakeClock
from tests.proxy.planning import Desk
from tests.proxy.rig import provider
from troyproxy.accounting.records import AttemptRecord
from troyproxy.catalog.combos import Combo
from troyproxy.catalog.keys import Key
from troyproxy.catalog.models import Model, Price
from troyproxy.catalog.providers import Account, Provider
from troyproxy.catalog.snapshot import Snapshot, build
from troyproxy.proxy.call import Call, MemoryKey
from troyproxy.proxy.outcome import Target
from troyproxy.resilience.classes import ErrorClass
from troyproxy.routing.candidates import candidate_of
from troyproxy.routing.names import resolve
from troyproxy.routing.needs import needs_of

KEYLESS = Key("k1", "one", b"")


def priced(name: str, usd: float, **given: object) -> Provider:
    """A provider with one model ``m``, whose tokens all cost *usd* per million."""
    return provider(name, Model("m", price=Price(usd, usd)), **given)  # type: ignore[arg-type]  # fields by name


FIVE = tuple(priced(f"p{at}", 1.0 + at) for at in range(5))
"""p0 is the best for being the cheapest, p4 the worst."""


class AutoDesk(Desk):
    """A `Desk` that makes its own calls, and lets their attempts end as the test says."""

    def __init__(self, clock: FakeClock, *parts: Provider | Combo, exploration: float = 0.0) -> None:
        super().__init__(clock)
        self.auto.exploration = exploration
        self.snapshot: Snapshot
        self.use(*(parts or FIVE))
        self._seeds = itertools.count()

    def use(self, *parts: Provider | Combo) -> None:
        """Put a new configuration in force."""
        providers = [part for part in parts if isinstance(part, Provider)]
        self.snapshot = build(providers, [part for part in parts if isinstance(part, Combo)])

    def call(
        self, model: str = "auto", *, key: Key | None = None, headers: Mapping[str, str] | None = None, **fields: object
    ) -> Call:
        """Return a call up to its plan."""
        payload: dict[str, object] = {"model": model, "messages": [{"role": "user", "content": "hi"}], **fields}
        seed = next(self._seeds)
        call = Call(
            request_id=f"req_{seed}",
            at=self.clock.now(),
            started=self.clock.monotonic(),
            route="/v1/chat/completions",
            headers=tuple((name.encode(), text.encode()) for name, text in (headers or {}).items()),
            snapshot=self.snapshot,
            key=key,
            seed=seed * 0x9E3779B97F4A7C15 % 2**64,
            body=json.dumps(payload).encode(),
            payload=payload,
        )
        call.resolution = resolve(model, self.snapshot)
        call.needs = needs_of(payload)
        return call

    def plan(self, model: str = "auto", **given: object) -> Call:
        """Plan a new call."""
        call = self.call(model, **given)  # type: ignore[arg-type]  # as `call` has them
        self.planner.plan(call)
        return call

    def order(self, model: str = "auto", **given: object) -> list[str]:
        """Return the provider ids of a new plan, in order."""
        return providers(self.plan(model, **given))

    def target(self, name: str, limit_s: float = 60.0) -> Target:
        """Return the target ``m`` of a provider's first account."""
        found = self.snapshot.providers[name]
        account: Account = found.accounts[0]
        candidate = candidate_of(found, "m", account=account.name)
        return Target(candidate, found, account, self.clock.now(), limit_s=limit_s)

    @contextmanager
    def attempt(
        self, name: str, outcome: str = "ok", *, whole: bool = True, remember: tuple[MemoryKey, ...] = ()
    ) -> Iterator[Target]:
        """Make an attempt that ends with *outcome* when the test has done what it does meanwhile."""
        target = self.target(name)
        self.measuring.began(target)
        yield target
        record = AttemptRecord(
            name, "m", target.account.name, outcome, 200 if outcome == "ok" else 500, target.started_at, 100.0
        )
        self.measuring.ended(target, record, whole=whole, remember=remember)

    def attempts(self, name: str, outcomes: str, word: str = ErrorClass.TRANSIENT) -> None:
        """Make attempts one after another: ``+`` goes well, anything else fails as *word* says."""
        for outcome in outcomes:
            with self.attempt(name, "ok" if outcome == "+" else word):
                pass

    def open(self, *names: str) -> None:
        """Let the circuits of these providers open."""
        for name in names:
            for _ in range(3):
                self.fail(self.snapshot.providers[name], "m", ErrorClass.TRANSIENT)

    def half_open(self, name: str) -> None:
        """Let a circuit open, and its wait be over."""
        self.open(name)
        self.clock.move(31.0)

    def quota(self, name: str, percent: int) -> None:
        """Let an upstream say what is left."""
        said = ((b"x-ratelimit-limit-requests", b"100"), (b"x-ratelimit-remaining-requests", b"%d" % percent))
        self.measuring.heard(self.target(name).account, said)

    def marks(self, call: Call) -> list[str]:
        """Return what the engine says of its order."""
        return call.ledger.marks


def providers(call: Call) -> list[str]:
    """Return the provider ids of a call's plan, in order."""
    plan = call.plan
    assert plan is not None
    return [candidate.provider.id for candidate in plan.candidates if candidate.provider is not None]


def skipped(call: Call) -> list[tuple[str, str]]:
    """Return who was left out and why."""
    return [(skip.provider, str(skip.reason)) for skip in call.ledger.skipped]


def with_account(of: Provider, **changes: object) -> Provider:
    """Return a provider with its accounts changed."""
    accounts: Sequence[Account] = of.accounts
    return replace(of, accounts=tuple(replace(a, **changes) for a in accounts))  # type: ignore[arg-type]  # by name
