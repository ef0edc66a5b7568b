"""Connections that stay open, each to another worker of one gateway: what a test asks there, that worker answers."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from tests.e2e.client import CLIENT_S, Response
from tests.e2e.gateway import ADMIN, CHAT, KEY, Gateway, chat
from tests.e2e.until import until


class Pin:
    """One connection, and the worker behind it."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=CLIENT_S)
        worker = self.admin("GET", "/api/status").json()["worker"]
        self.name: str = worker["name"]
        self.pid: int = worker["pid"]

    def ask(self, method: str, path: str, payload: object = None, *, token: str | None = KEY) -> Response:
        """Ask, and return the whole answer."""
        headers = {"content-type": "application/json"} | ({} if token is None else {"authorization": f"Bearer {token}"})
        self._connection.request(method, path, None if payload is None else json.dumps(payload), headers)
        answer = self._connection.getresponse()
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Response(answer.status, named, answer.read())

    def admin(self, method: str, path: str, payload: object = None) -> Response:
        """Ask the admin API."""
        return self.ask(method, path, payload, token=ADMIN)

    def chat(self, model: str, *, token: str = KEY) -> Response:
        """Ask *model*."""
        return self.ask("POST", CHAT, chat(model), token=token)

    def status(self) -> dict[str, Any]:
        """Return ``/api/status``."""
        value: dict[str, Any] = self.admin("GET", "/api/status").json()
        return value

    def cooldowns(self, model: str) -> list[Mapping[str, object]]:
        """Return the locks of *model* that this worker knows."""
        return [lock for lock in self.status()["cooldowns"] if lock["model"] == model]

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


@contextmanager
def pins(gateway: Gateway, count: int) -> Iterator[list[Pin]]:
    """Connect until *count* workers have been met; return one connection to each, by name."""
    with ExitStack() as stack:
        met: dict[str, Pin] = {}

        def meet() -> bool:
            pin = stack.enter_context(closing(Pin(gateway.port)))
            met.setdefault(pin.name, pin)
            return len(met) == count

        until(meet)
        yield [met[name] for name in sorted(met)]


def pids(gateway: Gateway, count: int) -> dict[str, int]:
    """Return the process id of every worker."""
    with pins(gateway, count) as met:
        return {pin.name: pin.pid for pin in met}
