"""The real nginx with the shipped configuration, in front of a real gateway."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.client import Open
from tests.e2e.gateway import ADMIN, Gateway, chat, client_headers, run_gateway
from tests.e2e.nginx import ELSEWHERE, ask, nginx, post
from tests.e2e.shapes import DONE, delta
from tests.e2e.until import until
from tests.e2e.upstreams import ECHO, HANG, SILENCE, Gate, Upstreams, stream


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none"}}}
    with run_gateway(folder, config) as running:
        yield running


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory, gateway: Gateway) -> Iterator[int]:
    """The port of an nginx in front of the gateway."""
    with nginx(tmp_path_factory.mktemp("nginx"), gateway) as number:
        yield number


def test_a_stream_arrives_event_by_event(port: int, upstreams: Upstreams) -> None:
    first, second = delta("one"), delta("two", finish="stop")
    upstreams.script("alpha", stream(first, Gate("second"), second, DONE), model="paced")
    with closing(Open(post(port, chat("alpha/paced", stream=True)))) as answer:
        assert answer.status == 200
        got = b""
        while len(got) < len(first):
            got += answer.read()
        assert got == first  # the second event has not been sent to anybody
        upstreams.open("second")
        assert answer.rest() == second + DONE


@pytest.mark.parametrize("streams", [False, True])
def test_a_client_that_leaves_before_the_first_byte_closes_the_upstream(
    port: int, upstreams: Upstreams, streams: bool
) -> None:
    model = f"leaves-{streams}"
    upstreams.script("alpha", HANG, model=model)
    connection = post(port, chat(f"alpha/{model}", stream=streams))
    until(lambda: upstreams.requests("alpha", model=model))
    connection.close()
    until(lambda: upstreams.states("alpha", model=model) == ["left"])
    assert upstreams.states("alpha", model=model) == ["left"]


def test_a_client_that_leaves_in_mid_stream_closes_the_upstream(port: int, upstreams: Upstreams) -> None:
    upstreams.script("alpha", stream(delta("one"), SILENCE), model="mid")
    answer = Open(post(port, chat("alpha/mid", stream=True)))
    assert answer.read()
    answer.close()
    until(lambda: upstreams.states("alpha", model="mid") == ["left"])
    assert upstreams.states("alpha", model="mid") == ["left"]


def test_a_body_of_5_mb_passes(port: int, upstreams: Upstreams) -> None:
    upstreams.script("alpha", ECHO, model="large")
    text = "0123456789abcdef" * (5 * (1 << 20) // 16)
    with closing(Open(post(port, chat("alpha/large", text)))) as answer:
        assert answer.status == 200
        assert len(answer.rest()) > len(text)
    assert upstreams.requests("alpha", model="large")[0].json["messages"][0]["content"] == text


def test_a_body_that_is_too_large_gets_the_gateways_own_answer(port: int) -> None:
    with closing(Open(post(port, chat("alpha/m1", "x" * (33 << 20))))) as answer:
        whole = answer.whole()
    assert (whole.status, whole.code) == (413, "body_too_large")


@pytest.mark.parametrize("source", ["127.0.0.1", ELSEWHERE])
def test_health_and_the_client_api_are_open_to_everybody(port: int, source: str) -> None:
    assert ask(port, "/healthz", source).status == 200
    models = ask(port, "/v1/models", source, authorization=client_headers()[0][1])
    assert models.status == 200
    refused = ask(port, "/v1/models", source)
    assert (refused.status, refused.code) == (401, "invalid_api_key")


@pytest.mark.parametrize("path", ["/metrics", "/api/status", "/api/combos", "/api", "//api/status", "/api/%2e/status"])
def test_metrics_and_the_admin_api_are_closed_to_others(port: int, path: str) -> None:
    answer = ask(port, path, ELSEWHERE, authorization=f"Bearer {ADMIN}")
    assert answer.status == 403
    assert b"troyproxy" not in answer.body


@pytest.mark.parametrize("path", ["/metrics", "/api/status"])
def test_metrics_and_the_admin_api_are_open_to_this_machine_with_their_token(port: int, path: str) -> None:
    assert ask(port, path, authorization=f"Bearer {ADMIN}").status == 200
    assert ask(port, path).status == 401


@pytest.mark.parametrize("path", ["/", "/readyz", "/livez", "/docs", "/apiary"])
def test_nothing_else_is_served(port: int, path: str) -> None:
    assert ask(port, path).status == 404


def test_what_a_client_says_of_its_address_is_not_believed(port: int) -> None:
    assert ask(port, "/metrics", ELSEWHERE, **{"x-forwarded-for": "127.0.0.1", "x-real-ip": "127.0.0.1"}).status == 403
