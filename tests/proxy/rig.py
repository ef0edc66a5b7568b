"""A walk with everything around it that is ours, in front of a scripted upstream."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from tests import asgi
from tests.asgi import DISCONNECT, AfterSent, Exchange, Message, Receive, Scope, Send, When, drive, http_scope
from tests.fakes import FakeEventLog, FakeObserver, FakeUpstream, Reply, Step
from tests.virtual import LoopClock
from troyproxy.accounting.records import UsageRow
from troyproxy.app.scoring import auto_engine
from troyproxy.catalog.combos import Combo, Member
from troyproxy.catalog.keys import Key
from troyproxy.catalog.models import Capabilities, Limits, Model
from troyproxy.catalog.providers import Account, Provider
from troyproxy.catalog.secret import Secret
from troyproxy.catalog.snapshot import Snapshot, build
from troyproxy.leaks.leak_rate import LeakRates
from troyproxy.ports import UpstreamFailed
from troyproxy.proxy.accounts import AccountDesk
from troyproxy.proxy.call import Call, Gate
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.health import HealthKeeper
from troyproxy.proxy.learned import LearnedParameters
from troyproxy.proxy.measuring import Measuring
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.policy import WalkPolicy
from troyproxy.proxy.retries import Retries
from troyproxy.proxy.rows import row_of
from troyproxy.proxy.walk import Walk
from troyproxy.resilience.faults import Fault
from troyproxy.resilience.health import EMPTY, HealthPolicy
from troyproxy.resilience.retry_budget import RetryPolicy
from troyproxy.routing.effort import decide
from troyproxy.routing.names import resolve
from troyproxy.routing.needs import needs_of

CHAT = "/v1/chat/completions"
SSE = ((b"content-type", b"text/event-stream"),)
COMPLETION: Mapping[str, object] = {
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}
DONE = b"data: [DONE]\n\n"
_ids = itertools.count(1)


def event(value: object) -> bytes:
    """One SSE event."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta(text: str, index: int = 0, finish: str | None = None) -> bytes:
    """One chunk of a streamed answer."""
    return event({"choices": [{"index": index, "delta": {"content": text}, "finish_reason": finish}]})


def role(index: int = 0) -> bytes:
    """The first chunk, which says nothing yet."""
    return event({"choices": [{"index": index, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})


def finish(index: int = 0) -> bytes:
    return event({"choices": [{"index": index, "delta": {}, "finish_reason": "stop"}]})


def usage(given: int = 3, output: int = 2) -> bytes:
    """The usage event at the end of a stream."""
    counts = {"prompt_tokens": given, "completion_tokens": output, "total_tokens": given + output}
    return event({"choices": [], "usage": counts})


def stream(*steps: Step, before: Sequence[Step] = (), close_s: float = 0.0) -> Reply:
    """A streamed answer."""
    return Reply(body=steps, headers=SSE, before=before, close_s=close_s)


def good(text: str = "ok") -> Reply:
    """A streamed answer without fault."""
    return stream(role(), delta(text), finish(), usage(), DONE)


def answer(value: object = COMPLETION, status: int = 200, before: Sequence[Step] = (), **headers: str) -> Reply:
    """A whole JSON answer; ``retry_after="3"`` is the header ``retry-after``."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    named = tuple((name.replace("_", "-").encode(), text.encode()) for name, text in headers.items())
    return Reply(status, [body], ((b"content-type", b"application/json"), *named), before)


def refusal(status: int, message: str = "no", code: object = None, param: str | None = None, **headers: str) -> Reply:
    """An upstream's error answer."""
    error = {"message": message, "type": "some_error", "code": code, "param": param}
    return answer({"error": error}, status, (), **headers)


def fault(kind: Fault = Fault.CONNECT, *, sent: bool = False) -> Reply:
    """No answer at all."""
    return Reply(before=[UpstreamFailed(kind, body_sent=sent)])


def reset(*, sent: bool = True) -> UpstreamFailed:
    return UpstreamFailed(Fault.RESET, body_sent=sent)


def provider(name: str, *models: Model | str, accounts: str = "A", **given: object) -> Provider:
    """A provider whose accounts are the letters of *accounts*."""
    known = [model if isinstance(model, Model) else Model(model) for model in models]
    made = tuple(
        Account(f"{name}#{letter}", name, letter, Secret(f"sk-up-{name}-{letter}-1234567890abcd"))
        for letter in accounts
    )
    base = {"base_url": f"https://{name}.example/v1", "models": {model.id: model for model in known}}
    return Provider(id=name, accounts=made, **{**base, **given})  # type: ignore[arg-type]  # fields by name


def model(name: str, *, context: int | None = None, output: int | None = None, **has: bool) -> Model:
    return Model(name, Capabilities(**has), Limits(context, output))


def combo(name: str, *members: str | Member, strategy: str = "fallback", **config: object) -> Combo:
    made = tuple(Member(model=member) if isinstance(member, str) else member for member in members)
    return Combo(id=name, name=name, strategy=strategy, members=made, config=config)


ALPHA, BETA, GAMMA = provider("alpha", "m1", "m3"), provider("beta", "m2"), provider("gamma", "m4")
TWO = combo("two", "alpha/m1", "beta/m2")
THREE = combo("three", "alpha/m1", "beta/m2", "gamma/m4")


@dataclass(slots=True)
class Served:
    """What one request led to."""

    exchange: Exchange
    call: Call

    @property
    def row(self) -> UsageRow:
        return row_of(self.call, duration_s=0.0)

    @property
    def outcomes(self) -> list[str]:
        return [attempt.outcome for attempt in self.call.ledger.attempts]

    @property
    def tried(self) -> list[str]:
        """``provider#account`` of every attempt."""
        return [f"{attempt.provider}#{attempt.account}" for attempt in self.call.ledger.attempts]

    @property
    def error(self) -> Mapping[str, object]:
        """The error in a JSON answer."""
        found: Mapping[str, object] = self.exchange.json()["error"]
        return found

    @property
    def events(self) -> list[bytes]:
        """The data of every SSE event the client got."""
        frames = self.exchange.body.split(b"\n\n")
        return [frame[6:] for frame in frames if frame.startswith(b"data: ")]

    @property
    def stream_error(self) -> Mapping[str, object]:
        """The error that ended a stream."""
        return dict(json.loads(self.events[-1])["error"])

    @property
    def text(self) -> str:
        """The content that a stream brought."""
        chunks = [json.loads(data) for data in self.events if data != b"[DONE]"]
        choices = [choice for chunk in chunks for choice in chunk.get("choices", ())]
        return "".join(choice["delta"].get("content") or "" for choice in choices)


class Rig:
    """Builds its parts on first use, so that a test may set what it needs before."""

    def __init__(
        self, *parts: Provider | Combo, policy: WalkPolicy | None = None, health: HealthPolicy | None = None
    ) -> None:
        given = parts or (ALPHA, BETA, GAMMA, TWO, THREE)
        self.snapshot = snapshot(*given)
        self.policy = policy or WalkPolicy()
        self.clock, self.log, self.observer, self.upstream = LoopClock(), FakeEventLog(), FakeObserver(), FakeUpstream()
        self.exploration = 0.0
        self.health = HealthKeeper(
            clock=self.clock, log=self.log, observer=self.observer, policy=health or HealthPolicy(), rng=Random(7)
        )
        self.build()

    def build(self) -> None:
        """Put the parts together anew, with another policy."""
        self.desk = AccountDesk(max_inflight=self.policy.max_inflight, observer=self.observer)
        self.learned, self.leak_rates = LearnedParameters(self.clock), LeakRates()
        self.measuring = Measuring(health=self.health, clock=self.clock)
        self.auto = auto_engine(self.measuring, self.clock, self.observer, exploration=self.exploration)
        self.planner = Planner(
            health=self.health,
            measuring=self.measuring,
            auto=self.auto,
            clock=self.clock,
            policy=self.policy,
            observer=self.observer,
            drifting=self.leak_rates.late,
        )
        self.gear = Gear(
            upstream=self.upstream,
            health=self.health,
            desk=self.desk,
            learned=self.learned,
            retries=Retries(self.clock, RetryPolicy(self.policy.retry_budget)),
            measuring=self.measuring,
            auto=self.auto,
            observer=self.observer,
            clock=self.clock,
            policy=self.policy,
            leak_rates=self.leak_rates,
        )
        self.walk = Walk(self.gear, self.planner)

    def set(self, **policy: object) -> None:
        self.policy = replace(self.policy, **policy)  # type: ignore[arg-type]  # fields by name
        self.build()

    def use(self, *parts: Provider | Combo) -> None:
        self.snapshot = snapshot(*parts)

    def script(self, **replies: Reply | Iterable[Reply]) -> None:
        """Say what each provider answers, in order."""
        for name, given in replies.items():
            self.upstream.add(name, *((given,) if isinstance(given, Reply) else given))

    def call(
        self,
        model: str = "two",
        *,
        route: str = CHAT,
        gates: Iterable[Gate] = (),
        key: Key | None = None,
        headers: Mapping[str, str] | None = None,
        **fields: object,
    ) -> Call:
        """Return a call as the layers outside would have made it, up to the plan."""
        payload: dict[str, object] = {"model": model, "messages": [{"role": "user", "content": "hi"}], **fields}
        call = Call(
            request_id=f"req_{next(_ids)}",
            at=self.clock.now(),
            started=self.clock.monotonic(),
            route=route,
            upstream_path=route.removeprefix("/v1"),
            headers=tuple((name.encode(), text.encode()) for name, text in (headers or {}).items()),
            snapshot=self.snapshot,
            key=key,
            seed=7,
            body=json.dumps(payload).encode(),
            payload=payload,
            gates=list(gates),
            usage_wanted=True,
        )
        call.resolution = resolve(payload["model"], call.snapshot)
        call.effort = decide(payload, call.resolution.effort, call.snapshot.default_effort)
        call.needs = needs_of(payload)
        return call

    async def ask(
        self, model: str = "two", *, client: Iterable[asgi.Step] = (), call: Call | None = None, **fields: object
    ) -> Served:
        """Plan and walk one request; *client* is what arrives from the client meanwhile."""
        made = call or self.call(model, **fields)  # type: ignore[arg-type]  # fields of the payload
        if made.plan is None:
            self.planner.plan(made)

        async def app(_: Scope, receive: Receive, send: Send) -> None:
            await self.walk.run(made, receive, send)

        return Served(await drive(app, http_scope(), client, limit_s=100_000), made)

    @property
    def idle(self) -> bool:
        """Whether no request holds anything: no slot, no open response."""
        slots = [self.desk.inflight(a) for p in self.snapshot.providers.values() for a in p.accounts]
        return not any(slots) and all(response.closed for response in self.upstream.responses)

    @property
    def untouched(self) -> bool:
        """Whether the health state is as new."""
        return self.health.state == EMPTY and not self.log.events


def snapshot(*parts: Provider | Combo) -> Snapshot:
    return build([p for p in parts if isinstance(p, Provider)], [p for p in parts if isinstance(p, Combo)])


__all__ = ["DISCONNECT", "AfterSent", "Message", "When"]
