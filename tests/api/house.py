"""A whole gateway in process: the demo provider, a file with providers and a combo, a SQLite file, time that stands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.asgi import App, Exchange, drive, http_scope, request_body
from tests.fakes import FakeClock
from troyproxy.api.gateway import Gateway
from troyproxy.api.services import Services
from troyproxy.app import Wiring, create_with_services
from troyproxy.proxy.clock import SystemClock
from troyproxy.settings.load import Configuration, load
from troyproxy.store.secrets import SecretBox
from troyproxy.store.store import SqlStore
from troyproxy.store.writer import Pace

TOKEN = "admin-token-of-the-tests"
KEY = "client-key-0123456789"
NARROW_KEY = "narrow-key-0123456789"
BRISK = Pace(linger_s=0.0, retry_s=0.01, retry_max_s=0.02, heartbeat_s=0.01, drain_s=5.0)

NO_DEMO = "# without the demo provider\n"
FILE = f"""
providers:
  alpha:
    base_url: http://127.0.0.1:9/v1
    accounts: [{{name: team-a, api_key: alpha-secret}}, {{name: team-b, api_key: alpha-other}}]
    models:
      gpt-x: {{tools: true, context: 8000, output: 1000}}
      bare: {{tools: false, vision: false, reasoning: false, context: 4000}}
  local: {{base_url: "http://127.0.0.1:9/v1", auth: none, models: {{tiny: {{}}}}}}
combos:
  filed: {{members: [alpha/gpt-x, alpha/bare]}}
keys:
  - {{name: all, key: {KEY}}}
  - {{name: narrow, key: {NARROW_KEY}, models: [filed]}}
"""


@dataclass
class House:
    """One gateway and how to ask it."""

    gateway: Gateway
    store: SqlStore
    clock: FakeClock
    file: Path
    app: App
    services: Services
    headers: dict[str, str] = field(default_factory=lambda: {"authorization": f"Bearer {TOKEN}"})

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> Exchange:
        """Send a request with the admin token; *path* may be percent-encoded and have a query, as in a URL."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        plain, _, query = path.partition("?")
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        scope = http_scope(unquote(plain), method=method, headers=self.headers | named, query=query.encode())
        return await drive(self.app, scope, request_body(raw))

    async def get(self, path: str, **headers: str) -> Any:  # noqa: ANN401 -- JSON is what the test expects it to be
        """Return the JSON of a 200."""
        exchange = await self.ask("GET", path, **headers)
        assert exchange.status == 200, exchange.body
        return exchange.json()

    async def post(self, path: str, body: object, **headers: str) -> Exchange:
        return await self.ask("POST", path, body, **headers)

    async def chat(self, model: str, **fields: object) -> Exchange:
        """Send a chat request with a client key."""
        body = {"model": model, "messages": [{"role": "user", "content": "hello"}], **fields}
        return await self.post("/v1/chat/completions", body, authorization=f"Bearer {KEY}")


def configured(folder: Path, *, text: str = FILE, **options: object) -> Configuration:
    """Return the configuration that a file in *folder* gives."""
    file = folder / "troyproxy.yaml"
    file.write_text(text, encoding="utf-8")
    return load({"TROY_ADMIN_TOKEN": TOKEN}, config=file, options=options)


def build(
    folder: Path,
    clock: FakeClock,
    *,
    wiring: Wiring | None = None,
    text: str = FILE,
    **options: object,
) -> House:
    """Return a gateway that is not started; its file, which says *text*, and its database lie in *folder*.

    The demo provider is there, unless the file begins with `NO_DEMO`.
    """
    first = configured(folder, text=text, **options)
    store = SqlStore(
        f"sqlite+aiosqlite:///{folder}/troy.db", secret_key=SecretBox.generate(), clock=SystemClock(), pace=BRISK
    )
    wiring = wiring or Wiring()
    wiring.clock, wiring.store, wiring.demo = clock, wiring.store or store, not text.startswith(NO_DEMO)
    again = lambda: load({"TROY_ADMIN_TOKEN": TOKEN}, config=first.path, options=options)  # noqa: E731 -- short
    gateway, services = create_with_services(first, load_again=again, wiring=wiring)
    return House(gateway, store, clock, folder / "troyproxy.yaml", gateway, services)


def fields_of(answer: Mapping[str, Mapping[str, list[Mapping[str, str]]]]) -> list[str]:
    """Return the fields that a 422 complains of."""
    return [detail["field"] for detail in answer["error"]["details"]]
