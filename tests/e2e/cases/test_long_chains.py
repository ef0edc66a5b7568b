"""Field case CO-06: a long chain on a dead provider is left after a few tries, not walked to its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cases.house import combo, provider
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.upstreams import HANG, RESET, Reply, Upstreams, error

MEMBERS: Final = [f"m{at}" for at in range(10)]
DEAD: Final = {"hangs": HANG, "resets": RESET, "fails": error(500, "boom")}


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    names = [*DEAD, "deadline"]
    config = {
        "providers": {
            **{name: provider(upstreams, name, "ABC") for name in names},
            "beta": provider(upstreams, "beta"),
        },
        "combos": {f"c-{name}": combo(*(f"{name}/{model}" for model in MEMBERS), f"beta/{name}") for name in names}
        | {"c-alone": combo(*(f"deadline/{model}" for model in MEMBERS))},
    }
    limits = {"TROY_UPSTREAM_TIMEOUT_MS": "1000", "TROY_STREAM_IDLE_MS": "1000", "TROY_REQUEST_TIMEOUT_MS": "30000"}
    with run_gateway(folder, config, **limits) as running:
        yield running


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("kind", DEAD)
def test_co_06_the_last_member_answers_soon(gateway: Gateway, upstreams: Upstreams, kind: str, streams: bool) -> None:
    reply: Reply = DEAD[kind]
    upstreams.script(kind, reply)
    before = len(upstreams.requests(kind))
    gateway.admin("POST", "/api/cooldowns/clear", {"provider": kind})
    answer = gateway.post(chat(f"c-{kind}", stream=streams))
    assert (answer.status, answer.headers["x-troy-model"]) == (200, f"beta/{kind}")
    made = upstreams.requests(kind)[before:]
    pairs = Counter((request.model, request.key) for request in made)
    assert set(pairs.values()) == {1}
    if kind == "fails":  # a status is no transport fault: each member is tried, within the cap
        assert len(made) <= 30
    else:
        assert len(made) == 3
        assert answer.headers["x-troy-skipped"].count("=provider-down") >= 7


def test_co_06_with_nobody_behind_it_the_trace_lists_the_skips(gateway: Gateway, upstreams: Upstreams) -> None:
    upstreams.script("deadline", HANG)
    answer = gateway.post(chat("c-alone"))
    assert (answer.status, answer.code) == (504, "timeout")
    assert len(upstreams.requests("deadline")) == 3
    story = gateway.admin("GET", f"/api/requests/{answer.headers['x-troy-request-id']}").json()
    reasons = [skip["reason"] for skip in story["skipped"]]
    assert reasons == ["provider-down"] * 7
