"""A gateway in front of four providers that differ in one thing each, on a clock that their latencies move."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from tests.api.house import KEY, NO_DEMO, House, build
from tests.asgi import Exchange
from tests.fakes import FakeClock, FakeResponse, Reply
from tests.proxy.rig import COMPLETION
from troyproxy.app import Wiring
from troyproxy.ports import UpstreamRequest, UpstreamResponse

OTHER_KEY: Final = "other-key-0123456789"
LIMITED_KEY: Final = "limited-key-0123456789"
PROVIDERS: Final = ("quick", "cheap", "clever", "roomy")
LATENCY_S: Final[Mapping[str, float]] = {"quick": 0.1, "cheap": 3.0, "clever": 2.8, "roomy": 2.9}
LOW: Final = ((b"x-ratelimit-limit-requests", b"100"), (b"x-ratelimit-remaining-requests", b"40"))
TRUSTED: Final = 12
"""Answers after which a latency is believed."""
FILE: Final = f"""
providers:
  quick:
    base_url: http://127.0.0.1:9/v1
    accounts: [{{name: A, api_key: quick-secret}}]
    models: {{m: {{price: {{input: 6, output: 6}}, fitness: {{default: 0.3}}}}}}
  cheap:
    base_url: http://127.0.0.1:9/v1
    accounts: [{{name: A, api_key: cheap-secret}}]
    models: {{m: {{price: {{input: 0.1, output: 0.1}}, fitness: {{default: 0.3}}}}}}
  clever:
    base_url: http://127.0.0.1:9/v1
    accounts: [{{name: A, api_key: clever-secret}}]
    models: {{m: {{price: {{input: 6, output: 6}}, fitness: {{default: 1.0}}}}}}
  roomy:
    base_url: http://127.0.0.1:9/v1
    accounts: [{{name: A, api_key: roomy-secret}}]
    models: {{m: {{price: {{input: 6, output: 6}}, fitness: {{default: 0.3}}}}}}
combos:
  outer: {{members: [quick/m, inner]}}
  inner: {{strategy: auto, members: [cheap/m, clever/m], config: {{auto: {{modePack: cost-saver}}}}}}
keys:
  - {{name: all, key: {KEY}}}
  - {{name: other, key: {OTHER_KEY}}}
  - {{name: limited, key: {LIMITED_KEY}, models: ["cheap/*"]}}
"""


def written(accounts: str, models: str = "{m: {}, n: {}}", more: str = "") -> str:
    """Return a file with one provider, and *more*."""
    return f"""
providers:
  quick: {{base_url: "http://127.0.0.1:9/v1", {accounts}, models: {models}}}
{more}
keys: [{{name: all, key: {KEY}}}]
"""


SEED: Final = 1
"""A seed by which nothing is explored, at whatever rate a variant has."""


class Answering:
    """An upstream that answers for everybody, in his time; *sick*: who answers with which status instead."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.latency_s = dict(LATENCY_S)
        self.sick: dict[str, int] = {}
        self.headers: dict[str, tuple[tuple[bytes, bytes], ...]] = {}
        self.asked: list[str] = []

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        name = request.provider.id
        self.asked.append(name)
        uneven = 1.0 + 0.2 * (len(self.asked) % 2)
        self._clock.move(self.latency_s.get(name, 0.0) * uneven)
        status = self.sick.get(name, 200)
        body = COMPLETION if status == 200 else {"error": {"message": "no", "type": "server_error"}}
        headers = ((b"content-type", b"application/json"), *self.headers.get(name, ()))
        return FakeResponse(Reply(status, [json.dumps(body).encode()], headers))

    async def aclose(self) -> None:
        """Nothing is open."""


class Pool:
    """The gateway and how to ask it."""

    def __init__(self, folder: Path, *, text: str = FILE, **options: object) -> None:
        self.clock, self._ids = FakeClock(manual=True), count(1)
        self.upstream = Answering(self.clock)
        database = f"sqlite+aiosqlite:///{folder}/troy.db"
        settings = {"database_url": database, "auto_exploration": 0.0, **options}
        self.house: House = build(
            folder, self.clock, wiring=Wiring(upstream=self.upstream), text=NO_DEMO + text, **settings
        )

    async def ask(self, model: str = "auto", key: str = KEY, text: str = "hi", **headers: str) -> Exchange:
        """Ask for one completion; ``x_troy_mode="fast"`` is a header. A second has passed since the last one."""
        self.clock.move(1.0)
        body = {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 1000}
        with patch("troyproxy.api.edge.Noise.take", lambda *_: (f"req_{next(self._ids):024x}", SEED)):
            return await self.house.post("/v1/chat/completions", body, authorization=f"Bearer {key}", **headers)

    async def first(self, model: str = "auto", key: str = KEY, **headers: str) -> str:
        """Ask, and return the provider that served."""
        answer = await self.ask(model, key, **headers)
        assert answer.status == 200, answer.body
        return (answer.header("x-troy-model") or "").partition("/")[0]

    async def warm(self) -> None:
        """Let everybody be measured, and everybody but one say that his quota is half used."""
        self.upstream.headers.update({name: LOW for name in PROVIDERS if name != "roomy"})
        for name in PROVIDERS:
            for _ in range(TRUSTED):
                await self.ask(f"{name}/m")
        self.upstream.asked.clear()

    async def explain(self, model: str = "auto", text: str = "hi", task: str = "", **more: object) -> Any:  # noqa: ANN401 -- JSON
        """Return what explain says of the auto engine; a second has passed since the last plan."""
        self.clock.move(1.0)
        body = {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 1000, **more}
        answer = await self.house.post("/api/explain", body, x_troy_task=task)
        assert answer.status == 200, answer.body
        return answer.json()

    async def factors(self, candidate: str = "quick/m#A", **asked: Any) -> dict[str, float]:  # noqa: ANN401 -- JSON
        """Return the nine factors of one candidate, and its score."""
        told = (await self.explain(**asked))["auto"][0]["candidates"]
        row = next(each for each in told if each["candidate"] == candidate)
        return {**row["factors"], "score": row["score"]}

    async def open(self, name: str) -> None:
        """Let a provider's circuit open."""
        self.upstream.sick[name] = 500
        for _ in range(6):
            await self.ask(f"{name}/m")
        circuits = (await self.house.get("/api/status"))["circuits"]
        assert [each["state"] for each in circuits if each["provider"] == name] == ["open"]
