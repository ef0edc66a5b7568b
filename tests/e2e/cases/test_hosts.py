"""Field case SF-12: inside other people's apps and behind their middleware a client that leaves is still heard of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.cases.house import provider
from tests.e2e.cases.reads import DONE, ROLE, STOP, said
from tests.e2e.client import Open, send
from tests.e2e.gateway import CHAT, KEY, ROOT, chat, client_headers
from tests.e2e.shapes import dumps
from tests.e2e.until import until
from tests.e2e.upstreams import Drip, Pause, Upstreams, behind, stream

KINDS = ("plain", "untouched", "reading", "raising")


@pytest.fixture(scope="module", params=KINDS)
def host(request: pytest.FixtureRequest, folder: Path, upstreams: Upstreams) -> Iterator[tuple[str, int]]:
    """Return the kind of a host and its port."""
    kind: str = request.param
    config = folder / f"{kind}.yaml"
    alpha = provider(upstreams, "alpha")
    config.write_text(json.dumps({"providers": {"alpha": alpha}, "keys": [{"name": "e2e", "key": KEY}]}))
    command = [sys.executable, "-m", "tests.e2e.cases.hosts", kind, str(config), str(folder / f"{kind}.db")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert process.stdout is not None
    with process.stdout:
        try:
            yield kind, int(process.stdout.readline())
        finally:
            process.terminate()
            process.wait(timeout=20)


def answered(port: int, method: str, path: str, body: bytes = b"") -> bytes:
    """Return the body of a whole answer."""
    with closing(Open(send(port, method, path, body))) as answer:
        return answer.rest()


def test_sf_12_a_client_that_leaves_in_mid_stream_closes_the_upstream(
    host: tuple[str, int], upstreams: Upstreams
) -> None:
    kind, port = host
    upstreams.script("alpha", stream(ROLE, Drip(said(b"tick"), 0.05)), model=kind)
    answer = Open(send(port, "POST", CHAT, dumps(chat(f"alpha/{kind}", stream=True)), client_headers()))
    assert answer.read()
    answer.close()
    until(lambda: upstreams.states("alpha", model=kind) == ["left"])
    assert len(upstreams.requests("alpha", model=kind)) == 1


def test_sf_12_a_client_that_leaves_before_the_first_byte_closes_the_upstream(
    host: tuple[str, int], upstreams: Upstreams
) -> None:
    kind, port = host
    model = f"{kind}-silent"
    # A server that tells only by a raising send is heard when something is sent.
    upstreams.script("alpha", stream(ROLE, Pause(0.5), Drip(said(b"tick"), 0.05)), model=model)
    connection = send(port, "POST", CHAT, dumps(chat(f"alpha/{model}", stream=True)), client_headers())
    until(lambda: upstreams.states("alpha", model=model) == ["open"])
    connection.close()
    until(lambda: upstreams.states("alpha", model=model) == ["left"])
    assert len(upstreams.requests("alpha", model=model)) == 1


def test_sf_12_a_stream_is_whole(host: tuple[str, int], upstreams: Upstreams) -> None:
    kind, port = host
    reads = (ROLE, said(b"one"), said(b"two"), STOP, DONE)
    upstreams.script("alpha", stream(*reads), model=f"{kind}-whole")
    body = dumps(chat(f"alpha/{kind}-whole", stream=True))
    with closing(Open(send(port, "POST", CHAT, body, client_headers()))) as answer:
        assert answer.rest() == b"".join(reads)


def test_sf_12_a_whole_answer_passes(host: tuple[str, int], upstreams: Upstreams) -> None:
    kind, port = host
    upstreams.script("alpha", behind(f"go-{kind}"), model=f"{kind}-json")
    connection = send(port, "POST", CHAT, dumps(chat(f"alpha/{kind}-json")), client_headers())
    upstreams.open(f"go-{kind}")
    with closing(Open(connection)) as answer:
        assert answer.status == 200


def test_sf_12_requests_of_the_host_keep_their_body_and_their_disconnect(host: tuple[str, int]) -> None:
    kind, port = host
    assert answered(port, "POST", "/echo", b"\x00body\xff") == b"\x00body\xff"
    if kind == "raising":
        return  # this server never says that a client has left
    before = int(answered(port, "GET", "/left"))
    send(port, "POST", "/wait", b"x").close()
    until(lambda: int(answered(port, "GET", "/left")) == before + 1)
