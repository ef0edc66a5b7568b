"""What the tests of the field cases share: providers on the scripted upstream, what a client makes of an answer, state.

Each case uses models of its own, so that no test meets another one's cooldowns; one gateway serves a whole module.
"""

from __future__ import annotations

import http.client
import json
import socket
import sqlite3
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, Final

from tests.e2e.client import CLIENT_S, Response
from tests.e2e.gateway import CHAT, Gateway, chat, client_headers
from tests.e2e.shapes import dumps
from tests.e2e.until import until
from tests.e2e.upstreams import Upstreams

Config = dict[str, Any]
NO_BUDGET: Final = {"TROY_RETRY_BUDGET": "0"}
"""The setting of tests that fail over more often than the retry budget allows."""


def secret(provider: str, account: str) -> str:
    """Return the credential of an account, as `Request.key` shows it."""
    return f"sk-up-{provider}-{account}-1234567890abcd"


def provider(upstreams: Upstreams, name: str, accounts: str = "", **more: object) -> Config:
    """Return a provider of the config file; *accounts* are letters, none makes it keyless."""
    found: Config = {"base_url": upstreams.base_url(name), **more}
    if accounts:
        found["accounts"] = [{"name": letter, "api_key": secret(name, letter)} for letter in accounts]
    else:
        found["auth"] = "none"
    return found


def combo(*members: object, **more: object) -> Config:
    """Return a combo of the config file."""
    return {"members": list(members), **more}


def streamed(gateway: Gateway, model: str, **more: object) -> Response:
    """Return a whole streamed answer, byte for byte."""
    with closing(gateway.stream(chat(model) | more)) as answer:
        return answer.whole()


def data_of(body: bytes) -> list[str]:
    """Return the data of every event, read as the grammar says and no laxer: the bytes are UTF-8, a blank line ends."""
    found: list[str] = []
    for block in body.decode("utf-8").replace("\r\n", "\n").split("\n\n"):
        lines = [line for line in block.split("\n") if line.startswith("data:")]
        if lines:
            found.append("\n".join(line.removeprefix("data:").removeprefix(" ") for line in lines))
    return found


def events_of(body: bytes) -> list[Any]:
    """Return the JSON of every event but the end mark. Raises ValueError when the client would."""
    return [json.loads(data) for data in data_of(body) if data != "[DONE]"]


def ended(body: bytes) -> bool:
    """Whether the stream ends with exactly one end mark and has no error."""
    data = data_of(body)
    return data.count("[DONE]") == 1 and data[-1] == "[DONE]" and not errors_of(body)


def errors_of(body: bytes) -> list[Any]:
    """Return the error events of a stream."""
    return [event["error"] for event in events_of(body) if event.get("error")]


def text_of(body: bytes) -> str:
    """Return the content that a stream brought."""
    choices = [choice for event in events_of(body) for choice in event.get("choices") or ()]
    return "".join((choice.get("delta") or {}).get("content") or "" for choice in choices)


def finishes_of(body: bytes) -> list[str]:
    """Return the finish reasons of a stream."""
    choices = [choice for event in events_of(body) for choice in event.get("choices") or ()]
    return [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]


def tokens(gateway: Gateway, answer: Response) -> tuple[int | None, int | None]:
    """Return the input and output tokens on record for an answered request."""
    row = gateway.row(answer.headers["x-troy-request-id"])
    return row["input_tokens"], row["output_tokens"]


def locks(gateway: Gateway, provider: str, model: str = "") -> list[dict[str, Any]]:
    """Return the cooldowns over *model* of a provider, or all of them; those over every model are included."""
    found: list[dict[str, Any]] = gateway.status()["cooldowns"]
    return [lock for lock in found if lock["provider"] == provider and (not model or lock["model"] in {model, "*"})]


def circuit(gateway: Gateway, provider: str, model: str) -> str:
    """Return the state of a circuit; one that nothing is known of is closed."""
    found = {(it["provider"], it["model"]): it["state"] for it in gateway.status()["circuits"]}
    return str(found.get((provider, model), "closed"))


def seconds_left(lock: Mapping[str, Any]) -> float:
    """Return how long a lock still holds."""
    return float(lock["until"]) - time.time()


def failures(gateway: Gateway, provider: str, model: str, error_class: str) -> float:
    """Return the failed attempts on record of one class."""
    return gateway.metric("attempts_total", **{"provider": provider, "model": model, "class": error_class})


def calls(upstreams: Upstreams, *specs: str) -> list[int]:
    """Return how many requests each ``provider/model`` saw."""
    split = [spec.partition("/") for spec in specs]
    return [len(upstreams.requests(name, model=model)) for name, _, model in split]


def keys_used(upstreams: Upstreams, name: str, model: str) -> list[str]:
    """Return the accounts that were called, oldest first."""
    letters = {secret(name, letter): letter for letter in "ABCD"}
    return [letters[request.key] for request in upstreams.requests(name, model=model)]


def together(gateway: Gateway, payloads: Iterable[Mapping[str, object]], *, at_once: int = 20) -> list[Response]:
    """Post all *payloads*, so many at once."""
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(gateway.post, payloads))


def raw(port: int, request: bytes) -> http.client.HTTPResponse:
    """Send exactly *request* and return the answer's head; read the rest from it."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=CLIENT_S)
    with connection:
        connection.sendall(request)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return answer


def posted(model: str, **more: object) -> tuple[str, str, bytes, list[tuple[str, str]]]:
    """Return the arguments of `Gateway.send` for a chat request."""
    return "POST", CHAT, dumps(chat(model) | more), client_headers()


def failed(gateway: Gateway, provider: str, model: str, *, least: int = 1) -> list[dict[str, Any]]:
    """Return at least *least* journalled failures of a model, oldest first, with the ``cooldown_s`` that was set."""

    def found() -> list[dict[str, Any]]:
        events = [event for event in _events(gateway) if (event["provider"], event["model"]) == (provider, model)]
        return events if len(events) >= least else []

    return until(found)


def _events(gateway: Gateway) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(gateway.database, timeout=5)) as database:
        rows = database.execute("select payload from state_events order by id").fetchall()
    events = [json.loads(row[0]) for row in rows]
    return [event for event in events if "error_class" in event]
