"""Below a prefix behind the real nginx, with the lines of the shipped configuration that are commented out there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.client import Open, Response, send
from tests.e2e.gateway import ADMIN, CHAT, Gateway, chat, client_headers, run_gateway
from tests.e2e.nginx import ELSEWHERE, ask, nginx, post
from tests.e2e.shapes import DONE, delta
from tests.e2e.upstreams import Upstreams, stream

ADMINS = [("authorization", f"Bearer {ADMIN}"), ("content-type", "application/json")]


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none"}}}
    with run_gateway(folder, config, TROY_ROOT_PATH="/llm") as running:
        yield running


def prefix_taken_off(conf: str) -> str:
    """Return the shipped configuration with its example."""
    return re.sub(
        r"^    #(?! )", "    ", re.sub(r"^    #(?=    )", "    ", conf, flags=re.MULTILINE), flags=re.MULTILINE
    )


def prefix_passed_on(conf: str) -> str:
    return prefix_taken_off(conf).replace("http://troyproxy/v1/;", "http://troyproxy;")


@pytest.fixture(scope="module", params=[prefix_taken_off, prefix_passed_on])
def port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, gateway: Gateway) -> Iterator[int]:
    with nginx(tmp_path_factory.mktemp("nginx"), gateway, request.param) as number:
        yield number


def call(port: int, method: str, path: str, payload: object = None) -> Response:
    body = b"" if payload is None else json.dumps(payload).encode()
    with closing(Open(send(port, method, path, body, ADMINS))) as answer:
        return answer.whole()


def test_chat_is_served_below_the_prefix(port: int) -> None:
    with closing(Open(post(port, chat("alpha/m1"), f"/llm{CHAT}"))) as answer:
        assert answer.whole().status == 200


def test_a_stream_comes_through_it(port: int, upstreams: Upstreams) -> None:
    events = delta("one"), delta("two", finish="stop")
    upstreams.script("alpha", stream(*events, DONE), model="paced")
    with closing(Open(post(port, chat("alpha/paced", stream=True), f"/llm{CHAT}"))) as answer:
        assert answer.rest() == b"".join(events) + DONE


def test_models_are_listed_below_it(port: int) -> None:
    assert ask(port, "/llm/v1/models", authorization=client_headers()[0][1]).status == 200
    assert ask(port, "/llm/v1/nothing", authorization=client_headers()[0][1]).code == "not_found"


def test_a_location_leads_back_through_the_proxy(port: int) -> None:
    made = call(port, "POST", "/llm/api/combos", {"name": f"of-{port}", "members": ["alpha/m1"]})
    assert (made.status, made.headers["location"].startswith("/llm/api/combos/")) == (201, True)
    assert call(port, "GET", made.headers["location"]).json()["name"] == f"of-{port}"


def test_metrics_want_a_token_behind_a_proxy_from_this_machine_too(port: int) -> None:
    assert ask(port, "/llm/metrics").status == 401
    assert ask(port, "/llm/metrics", authorization=f"Bearer {ADMIN}").status == 200


@pytest.mark.parametrize("path", ["/llm/metrics", "/llm/api/status", "/llm/api"])
def test_operations_are_closed_to_others(port: int, path: str) -> None:
    assert ask(port, path, ELSEWHERE, authorization=f"Bearer {ADMIN}").status == 403


def test_a_probe_without_the_prefix_is_answered(gateway: Gateway) -> None:
    assert gateway.get("/healthz").status == 200
    assert gateway.get("/llm/healthz").status == 200
