"""The gateway as an app of its own, and its admin pages inside a host. `tests/test_embedding.py` has the hosts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.api.house import House, build
from tests.asgi import drive
from tests.fakes import FakeClock
from troyproxy.api.gateway import Embedded
from troyproxy.errors import ConfigError
from troyproxy.proxy.answers import Message, Receive, Send, send_json
from troyproxy.proxy.call import Scope

pytestmark = pytest.mark.anyio


@pytest.fixture
async def asleep(tmp_path: Path, anyio_backend: str) -> AsyncIterator[House]:
    """A gateway that nobody has started."""
    found = build(tmp_path, FakeClock(manual=True))
    yield found
    await found.gateway.life.stop()


async def host(scope: Scope, receive: Receive, send: Send) -> None:
    """Somebody else's app."""
    await send_json(send, 200, f"the host's {scope['path']}")


@pytest.fixture
def embedded(house: House) -> House:
    """The gateway inside a host."""
    house.app = Embedded(host, house.gateway)
    return house


async def lifespan(house: House, *messages: str) -> list[Message]:
    """Play a server's lifespan and return the answers."""
    sent: list[Message] = []
    script = [{"type": f"lifespan.{name}"} for name in messages]

    async def receive() -> Message:
        return script.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    await house.gateway({"type": "lifespan"}, receive, send)
    return sent


async def test_the_lifespan_starts_and_stops_it(asleep: House) -> None:
    sent = await lifespan(asleep, "startup", "shutdown")
    assert [m["type"] for m in sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert (asleep.gateway.life.started, asleep.gateway.life.stopping) == (False, True)


async def test_a_start_that_fails_tells_the_server_why(asleep: House) -> None:
    with patch.object(asleep.gateway.life, "start", side_effect=ConfigError("no such thing")):
        sent = await lifespan(asleep, "startup")
    assert sent == [{"type": "lifespan.startup.failed", "message": "no such thing"}]


async def test_it_starts_with_the_first_requests_and_says_so_once(
    asleep: House, caplog: pytest.LogCaptureFixture
) -> None:
    answers = await asyncio.gather(*(asleep.ask("GET", "/healthz") for _ in range(5)))
    said = [record for record in caplog.records if "starts with its first request" in record.message]
    assert ({a.status for a in answers}, len(said), asleep.gateway.life.started) == ({200}, 1, True)


async def test_a_started_gateway_says_nothing(house: House, caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    await house.ask("GET", "/healthz")
    assert "first request" not in caplog.text


async def test_the_lifespan_of_starlette_starts_it(asleep: House) -> None:
    async with asleep.gateway.lifespan(object()):
        assert asleep.gateway.life.started
    assert not asleep.gateway.life.started


async def test_a_websocket_is_closed(house: House) -> None:
    exchange = await drive(house.gateway, {"type": "websocket"}, [{"type": "websocket.connect"}])
    assert [m["type"] for m in exchange.sent] == ["websocket.close"]


async def test_an_unknown_scope_is_left_alone(house: House) -> None:
    assert (await drive(house.gateway, {"type": "mqtt"})).order == []


async def test_the_admin_api_stands_under_its_prefix(embedded: House) -> None:
    made = await embedded.post("/troy/api/combos", {"name": "one", "members": ["demo/ok"]})
    assert (made.status, made.header("location")) == (201, "/troy/api/combos/one")
    assert (await embedded.get(made.header("location") or ""))["name"] == "one"


@pytest.mark.parametrize(
    "path", ["/api/combos", "/troy/v1/models", "/troy/nothing", "/troy", "/healthz", "/v1/nothing"]
)
async def test_what_is_not_ours_is_the_hosts(embedded: House, path: str) -> None:
    assert (await embedded.ask("GET", path)).json() == f"the host's {path}"


@pytest.mark.parametrize("path", ["/troy/healthz", "/troy/readyz", "/troy/metrics", "/troy/api/status"])
async def test_health_and_metrics_stand_there_too(embedded: House, path: str) -> None:
    answer = await embedded.ask("GET", path)
    assert (answer.status, answer.body.startswith(b'"the host')) == (200, False)


async def test_the_metrics_of_an_embedded_gateway_are_closed_to_other_machines(embedded: House) -> None:
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/troy/metrics",
        "headers": [],
        "client": ("10.0.0.1", 1),
    }
    assert (await drive(embedded.app, scope)).status == 401


async def test_a_wrong_method_or_an_unknown_combo_there_is_ours_to_refuse(embedded: House) -> None:
    wrong, unknown = await embedded.ask("PUT", "/troy/api/status"), await embedded.ask("GET", "/troy/api/combos/none")
    assert [(a.status, json.loads(a.body)["error"]["code"]) for a in (wrong, unknown)] == [
        (405, "method_not_allowed"),
        (404, "not_found"),
    ]


async def test_the_admin_token_is_needed_there_too(embedded: House) -> None:
    assert (await embedded.ask("GET", "/troy/api/combos", authorization="")).status == 401
