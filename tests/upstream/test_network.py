"""Which adapter carries what, and what is loaded for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.upstream.loopback import Answer, handler_of, read, server
from troyproxy.catalog.providers import Provider
from troyproxy.ports import UpstreamRequest
from troyproxy.upstream.http import HttpxUpstream
from troyproxy.upstream.network import MAX_KEPT, FastUpstream, network

OK = Answer(headers=((b"content-length", b"2"),), steps=(b"ok",))


@pytest.mark.parametrize(("transport", "adapter"), [("fast", FastUpstream), ("httpx", HttpxUpstream)])
def test_the_setting_names_the_adapter(transport: str, adapter: type) -> None:
    assert type(network(transport, env={})) is adapter


@pytest.mark.anyio
async def test_what_lies_behind_a_proxy_is_carried_by_httpx_and_nothing_else_is() -> None:
    async with server(handler_of(OK)) as (port, log):
        upstream = FastUpstream({"HTTPS_PROXY": f"http://127.0.0.1:{port}"})
        plain = Provider(id="p", base_url=f"http://127.0.0.1:{port}/v1")
        proxied = Provider(id="q", base_url="http://api.example/v1", proxy=f"http://127.0.0.1:{port}")
        assert await read(await upstream.send(UpstreamRequest(plain, "POST", "/x", ()))) == b"ok"
        before = upstream._proxied
        assert await read(await upstream.send(UpstreamRequest(proxied, "POST", "/x", ()))) == b"ok"
        await upstream.aclose()
        assert (before, isinstance(upstream._proxied, HttpxUpstream)) == (None, True)
        assert [seen.target for seen in log.requests] == ["/v1/x", "http://api.example/v1/x"]


def test_what_is_remembered_of_providers_is_bounded() -> None:
    upstream = network("fast", env={})
    assert isinstance(upstream, FastUpstream)
    for number in range(MAX_KEPT + 1):
        upstream._way(Provider(id=f"p{number}", base_url="http://p"))
    assert len(upstream._ways) <= MAX_KEPT


def test_no_client_library_is_loaded_before_it_is_needed() -> None:
    asked = "import troyproxy.app.building, sys; print({'httpx', 'aiohttp', 'certifi'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == "set()"
