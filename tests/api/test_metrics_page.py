"""Who may read ``/metrics``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from tests.asgi import Exchange, drive, http_scope
from tests.fakes import FakeClock
from troyproxy.api.metrics import MetricsPage
from troyproxy.api.wrong_tokens import WrongTokens
from troyproxy.catalog.secret import Secret

pytestmark = pytest.mark.anyio

TOKENS = [Secret("metrics-token"), Secret("admin-token")]


async def page(
    headers: Mapping[str, str] = MappingProxyType({}),
    *,
    open_here: bool = True,
    client: tuple[str, int] | None = ("127.0.0.1", 1),
) -> Exchange:
    """Ask the page."""
    wrong = WrongTokens(FakeClock())
    app = MetricsPage(lambda accept: (accept.encode(), "text/plain; x"), TOKENS, open_here=open_here, wrong=wrong)
    return await drive(app, http_scope("/metrics", method="GET", headers=headers, client=client))


@pytest.mark.parametrize("client", [("127.0.0.1", 1), ("127.9.9.9", 1), ("::1", 1), None])
async def test_it_is_open_to_programs_on_this_machine(client: tuple[str, int] | None) -> None:
    assert (await page(client=client)).status == 200


@pytest.mark.parametrize("name", ["forwarded", "via", "x-real-ip", "x-forwarded-for", "X-Forwarded-Proto"])
async def test_it_is_closed_to_what_a_proxy_passes_on(name: str) -> None:
    assert (await page({name: "1.2.3.4"})).status == 401


@pytest.mark.parametrize("client", [("10.0.0.1", 1), ("2001:db8::1", 1), ("testclient", 1)])
async def test_it_is_closed_to_other_machines_wherever_a_host_listens(client: tuple[str, int]) -> None:
    assert (await page(client=client)).status == 401


@pytest.mark.parametrize(("host", "status"), [("127.0.0.1:9", 200), ("localhost", 200), ("evil.example", 401)])
async def test_it_is_closed_to_a_page_that_dns_led_here(host: str, status: int) -> None:
    assert (await page({"host": host})).status == status


async def test_it_is_closed_on_a_listener_that_is_not_loopback() -> None:
    assert (await page(open_here=False)).status == 401


@pytest.mark.parametrize("token", ["metrics-token", "admin-token"])
async def test_both_tokens_open_it(token: str) -> None:
    assert (await page({"authorization": f"Bearer {token}"}, open_here=False)).status == 200


@pytest.mark.parametrize(
    "value", ["", "Bearer", "Bearer x", "Bearer metrics-token2", "Bearer \xfc", "Basic metrics-token"]
)
async def test_nothing_else_does(value: str) -> None:
    answer = await page({"authorization": value}, open_here=False)
    assert (answer.status, answer.json()["error"]["code"]) == (401, "invalid_api_key")


async def test_the_format_follows_accept() -> None:
    answer = await page({"accept": "application/openmetrics-text"})
    assert (answer.body, answer.header("content-type")) == (b"application/openmetrics-text", "text/plain; x")
