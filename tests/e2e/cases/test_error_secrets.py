"""Field case EC-12: what upstreams say in anger goes to clients without the operator's secrets."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.cases.house import provider, streamed
from tests.e2e.cases.reads import DONE, OK
from tests.e2e.client import Response
from tests.e2e.gateway import Gateway, chat, run_gateway
from tests.e2e.upstreams import HEALTHY, Reply, Upstreams, stream, whole

SECRET: Final = "sk-up-A-1234567890abcd"
PASSWORD: Final = "hunter2hunter2"
URL_KEY: Final = "SECRET-in-the-query-0123456789"
TOLD: Final = f"bad key {SECRET} for org-ZZZ"
SHOWN: Final = (
    SECRET,
    "sk-up-A-****************abcd",
    "sk-up-A-…abcd",
    SECRET[:-4] + "****",
    f"Bearer {SECRET}",
    json.dumps(SECRET)[1:-1].replace("-", "\\u002d"),
)
HEADERS: Final = {"openai_organization": "org-ZZZ", "x_request_id": "r1", "set_cookie": "cf=1"}
STATUSES: Final = (400, 401, 402, 403, 404, 413, 422, 429, 500, 503, 529)


def told(text: str, status: int) -> Reply:
    """Return an error answer with these words, as they are."""
    return whole(b'{"error":{"message":"' + text.encode() + b'","code":"scripted_code"}}', status, **HEADERS)


@pytest.fixture(scope="module")
def gateway(folder: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    keyed: dict[str, Any] = {"accounts": [{"name": "A", "api_key": SECRET}]}
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        gone = {
            "base_url": f"http://127.0.0.1:{bound.getsockname()[1]}/v1",
            "query": {"key": URL_KEY},
            "auth": "none",
            "headers": {"x-team-password": PASSWORD},
        }
        names = [*(f"p{status}" for status in STATUSES), *(f"s{at}" for at in range(len(SHOWN))), "alpha"]
        providers = {name: provider(upstreams, name) | keyed for name in names}
        for entry in providers.values():
            del entry["auth"]
        with run_gateway(folder, {"providers": {**providers, "gone": gone}}, TROY_TRACE="1") as running:
            yield running


def everything(answer: Response, gateway: Gateway) -> str:
    """Return all that anybody is shown of an answer: body, headers, trace and log."""
    head = "\n".join(f"{name}: {value}" for name, value in answer.headers.items())
    story = gateway.admin("GET", f"/api/requests/{answer.headers['x-troy-request-id']}").body.decode()
    return f"{head}\n{answer.body.decode()}\n{story}\n{gateway.output()}"


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("status", STATUSES)
def test_ec_12_no_status_brings_the_key_along(
    gateway: Gateway, upstreams: Upstreams, status: int, streams: bool
) -> None:
    model = f"m{streams:d}"
    upstreams.script(f"p{status}", told(TOLD, status), model=model)
    answer = gateway.post(chat(f"p{status}/{model}", stream=streams))
    shown = everything(answer, gateway)
    assert "1234567890" not in shown
    assert "cf=1" not in shown
    assert "openai-organization" not in shown
    if answer.status == status:
        assert answer.body == b'{"error":{"message":"bad key *** for org-ZZZ","code":"scripted_code"}}'
    else:
        assert status in {401, 402, 403, 429, 503}


@pytest.mark.parametrize("number", range(len(SHOWN)))
def test_ec_12_no_spelling_of_the_key_gets_through(gateway: Gateway, upstreams: Upstreams, number: int) -> None:
    upstreams.script(f"s{number}", told(f"bad key {SHOWN[number]}.", 500))
    shown = everything(gateway.post(chat(f"s{number}/m1")), gateway)
    assert "1234567890" not in shown
    assert "abcd" not in shown.replace("abcdef", "")


def test_ec_12_an_error_in_a_stream_is_masked_too(gateway: Gateway, upstreams: Upstreams) -> None:
    event = f'data: {{"error":{{"message":"{TOLD}"}}}}\n\n'.encode()
    upstreams.script("alpha", stream(event, DONE), stream(OK, event), model="ec12")
    for _ in range(2):
        answer = streamed(gateway, "alpha/ec12")
        assert "1234567890" not in everything(answer, gateway)
        assert b"bad key *** for org-ZZZ" in answer.body


def test_ec_12_where_the_upstream_lives_is_nobodys_business(gateway: Gateway) -> None:
    answer = gateway.post(chat("gone/m1"))
    assert (answer.status, answer.code) == (502, "upstream_unreachable")
    head = "\n".join(f"{name}: {value}" for name, value in answer.headers.items())
    shown = f"{head}\n{answer.body.decode()}"
    assert "127.0.0.1" not in shown
    assert URL_KEY not in everything(answer, gateway)
    assert PASSWORD not in everything(answer, gateway)


def test_ec_12_a_url_in_the_upstreams_words_is_masked(gateway: Gateway, upstreams: Upstreams) -> None:
    url = f"{upstreams.base_url('alpha')}/chat/completions?key={URL_KEY}"
    upstreams.script("alpha", told(f"cannot POST {url} now", 500), model="ec12-url")
    answer = gateway.post(chat("alpha/ec12-url"))
    assert b"127.0.0.1" not in answer.body
    assert URL_KEY.encode() not in answer.body


def test_ec_12_what_is_no_secret_stays(gateway: Gateway, upstreams: Upstreams) -> None:
    said = told("model sk-learn is busy; see https://status.example/?id=1", 500)
    upstreams.script("alpha", said, HEALTHY, model="ec12-plain")
    assert gateway.post(chat("alpha/ec12-plain")).body == said.steps[0]
