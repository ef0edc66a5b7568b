"""Apps by name, and which adapter a provider gets."""

from __future__ import annotations

import pytest

from tests.asgi import Receive, Scope, Send
from tests.upstream.loopback import Answer, over_http, read
from troyproxy.catalog.providers import Provider
from troyproxy.errors import ConfigError
from troyproxy.ports import UpstreamFailed, UpstreamRequest
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.loading import load_app
from troyproxy.upstream.router import RoutedUpstream

HERE = "tests.upstream.test_router"


async def hello(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


class Holder:
    """An app that is an attribute of an attribute."""

    app = staticmethod(hello)


number = 7


@pytest.mark.parametrize("reference", [f"{HERE}:hello", f"{HERE}:Holder.app"])
def test_an_app_is_found_by_name(reference: str) -> None:
    assert callable(load_app(reference))


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("nonsense", "expected 'package.module:attribute'"),
        (":app", "expected"),
        (f"{HERE}:", "expected"),
        ("no_such_package.main:app", "cannot import 'no_such_package.main'"),
        (f"{HERE}:missing", "has no 'missing'"),
        (f"{HERE}:number", "not callable"),
    ],
)
def test_a_wrong_name_says_what_is_wrong(reference: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_app(reference)


@pytest.mark.anyio
@pytest.mark.parametrize("app", ["inner", f"{HERE}:hello"])
async def test_a_provider_with_an_app_stays_in_process(app: str) -> None:
    async with over_http(Answer()) as rig:
        upstream = RoutedUpstream(rig.upstream, {"inner": hello})
        request = UpstreamRequest(Provider(id="p", app=app), "POST", "/x", ())
        bodies = [await read(await upstream.send(request)) for _ in range(2)]
        await upstream.aclose()
        assert (bodies, rig.log.requests) == ([b"hello", b"hello"], [])


@pytest.mark.anyio
async def test_a_provider_without_an_app_goes_over_the_network() -> None:
    async with over_http(Answer(steps=(b"net",))) as rig:
        upstream = RoutedUpstream(rig.upstream, {"inner": hello})
        assert await read(await upstream.send(rig.request())) == b"net"


@pytest.mark.anyio
async def test_an_app_that_is_not_there_is_a_connect_fault() -> None:
    async with over_http(Answer()) as rig:
        upstream = RoutedUpstream(rig.upstream, {})
        with pytest.raises(UpstreamFailed) as caught:
            await upstream.send(UpstreamRequest(Provider(id="p", app="inner"), "POST", "/x", ()))
        assert (caught.value.fault, caught.value.body_sent) == (Fault.CONNECT, False)
