"""A scripted load with an outage in it, for whoever looks at what is measured: clients of every kind, and two faults.

with watched(folder) as (gateway, upstreams, load):
    strike(upstreams)       # alpha fails, gamma refuses for its rate
    mend(upstreams)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

from tests.e2e.background import in_background
from tests.e2e.gateway import CHAT, KEY, Gateway, chat, run_gateway
from tests.e2e.shapes import completion, delta, dumps, role, usage_event
from tests.e2e.upstreams import CUT, HEALTHY, SILENCE, Upstreams, error, run_upstreams, stream, whole
from tests.services import redis

CLIENTS: Final = 4
PAUSE_S: Final = 0.05
SPENDER: Final = "client-key-of-a-small-budget"
LEAK: Final = whole(completion('<function=get_weather>{"city": "Ghent"}</function>'))
TOOLS: Final = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
PRICE: Final = {"price": {"input": 2.0, "output": 8.0}, "tools": True}


def _provider(upstreams: Upstreams, name: str, accounts: str, **facts: object) -> dict[str, Any]:
    keys = [{"name": letter, "api_key": f"sk-up-{name}-{letter}"} for letter in accounts]
    return {"base_url": upstreams.base_url(name), "accounts": keys, "models": {"m1": {**PRICE, **facts}}}


def config(upstreams: Upstreams) -> dict[str, Any]:
    """Return the configuration: three providers behind one combo, one that leaks, one that fails always."""
    return {
        "keys": [
            {"name": "e2e", "key": KEY},
            {"name": "spender", "key": SPENDER, "limits": {"budget_usd_per_day": 0.0005}},
        ],
        "providers": {
            "alpha": _provider(upstreams, "alpha", "AB"),
            "beta": _provider(upstreams, "beta", "A"),
            "gamma": _provider(upstreams, "gamma", "AB"),
            "leaky": _provider(upstreams, "leaky", "A"),
            "plain": _provider(upstreams, "plain", "A", reasoning=False),
            "dead": _provider(upstreams, "dead", "A"),
        },
        "combos": {
            "main": {"members": ["alpha/m1", "gamma/m1", "beta/m1"]},
            "agents": {"members": ["leaky/m1", "beta/m1"]},
            "torn": {"members": ["beta/torn", "beta/m1"]},
        },
    }


def mend(upstreams: Upstreams) -> None:
    """Let everybody answer as usual."""
    for name in ("alpha", "beta", "gamma", "plain"):
        upstreams.script(name, HEALTHY)


def strike(upstreams: Upstreams) -> None:
    """Let alpha fail, and gamma refuse for its rate."""
    upstreams.script("alpha", error(500))
    upstreams.script("gamma", error(429, "slow down", retry_after="60"))


class Load:
    """Clients of every kind, one request after another each, until they are told to stop."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._stop = gateway, threading.Event()
        self._kinds: tuple[Callable[[], object], ...] = (
            lambda: gateway.post(chat("main")),
            lambda: self._stream("main"),
            lambda: self._stream("beta/m1"),
            lambda: gateway.post(chat("alpha/m1")),
            lambda: gateway.post(chat("agents", tools=TOOLS)),
            lambda: gateway.post(chat("auto/coding")),
            lambda: gateway.post(chat("auto")),
            lambda: gateway.post(chat("plain/m1", reasoning_effort="high")),
            lambda: self._stream("torn"),
            lambda: gateway.post(chat("nobody-knows-this")),
            self._spend,
            self._leave,
        )
        self._threads = [threading.Thread(target=self._ask, args=(at,), daemon=True) for at in range(CLIENTS)]

    def _stream(self, model: str) -> None:
        with closing(self._gateway.stream(chat(model))) as answer:
            answer.rest()

    def _spend(self) -> None:
        headers = [("authorization", f"Bearer {SPENDER}"), ("content-type", "application/json")]
        self._gateway.whole("POST", CHAT, dumps(chat("beta/m1")), headers)

    def _leave(self) -> None:
        with closing(self._gateway.stream(chat("beta/endless"))) as answer:
            answer.read()

    def _ask(self, first: int) -> None:
        at = first
        while not self._stop.wait(PAUSE_S):
            self._kinds[at % len(self._kinds)]()
            at += 1

    def running(self) -> AbstractContextManager[None]:
        """Ask in the background."""
        return in_background(self._threads, self._stop)


ENDLESS: Final = stream(role(), delta("a "), delta("b "), SILENCE)
TORN: Final = stream(role(), usage_event(), CUT)
ODD: Final = (("beta", "endless", ENDLESS), ("beta", "torn", TORN), ("dead", "m1", error(500)), ("leaky", "m1", LEAK))


@contextmanager
def watched(folder: Path) -> Iterator[tuple[Gateway, Upstreams]]:
    """Run a gateway with a Redis under the load; everybody is well at first."""
    with ExitStack() as running:
        server, upstreams = running.enter_context(redis()), running.enter_context(run_upstreams())
        mend(upstreams)
        for provider, model, reply in ODD:
            upstreams.script(provider, reply, model=model)
        env = {"TROY_REDIS_URL": server.url, "TROY_AUTO_EXPLORATION": "0.5", "TROY_RETRY_BUDGET": "0"}
        gateway = running.enter_context(run_gateway(folder, config(upstreams), **env))
        running.enter_context(Load(gateway).running())
        yield gateway, upstreams
