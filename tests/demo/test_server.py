"""The demo provider as a process, called through the network adapter."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
import uvicorn

from tests.upstream.loopback import read
from troyproxy.catalog.providers import Provider
from troyproxy.demo.__main__ import main
from troyproxy.demo.app import demo_app
from troyproxy.ports import UpstreamFailed, UpstreamRequest
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.asgi import AsgiUpstream
from troyproxy.upstream.http import HttpxUpstream

pytestmark = pytest.mark.anyio
HI = b'{"model":"%b","stream":%b,"messages":[{"role":"user","content":"hi"}]}'


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    command = [sys.executable, "-m", "troyproxy.demo", "--port", "0", "--pace-ms", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


@pytest.fixture(params=["network", "process"])
def upstream(request: pytest.FixtureRequest) -> HttpxUpstream | AsgiUpstream:
    return HttpxUpstream(env={}) if request.param == "network" else AsgiUpstream(demo_app(pace_s=0))


def request(base_url: str, model: bytes, *, stream: bool = False) -> UpstreamRequest:
    body = HI % (model, b"true" if stream else b"false")
    return UpstreamRequest(Provider(id="demo", base_url=base_url), "POST", "/chat/completions", (), body)


async def test_it_answers(base_url: str, upstream: HttpxUpstream | AsgiUpstream) -> None:
    body = await read(await upstream.send(request(base_url, b"ok")))
    await upstream.aclose()
    assert b"Hello from the demo provider" in body


@pytest.mark.parametrize("stream", [True, False])
async def test_a_cut_is_a_reset_behind_the_head(
    base_url: str, upstream: HttpxUpstream | AsgiUpstream, stream: bool
) -> None:
    response = await upstream.send(request(base_url, b"cut", stream=stream))
    with pytest.raises(UpstreamFailed) as caught:
        await read(response)
    await response.aclose()
    await upstream.aclose()
    assert (response.status, caught.value.fault) == (200, Fault.RESET)


def test_a_wrong_option_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--port", "x"])
    assert "invalid int value" in capsys.readouterr().err


def test_it_says_where_it_listens(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ports: list[int] = []

    async def serve(_server: uvicorn.Server, sockets: list[socket.socket]) -> None:
        ports.append(sockets[0].getsockname()[1])

    monkeypatch.setattr(uvicorn.Server, "serve", serve)
    main(["--port", "0"])
    assert capsys.readouterr().out == f"http://127.0.0.1:{ports[0]}/v1\n"
