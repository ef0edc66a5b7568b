"""Clients that ask one gateway without a pause, until they are told to stop; what each was told is kept.

with Storm(gateway, ["alpha/m1", "alpha/m2"]) as storm:    # the models in turn, over all clients
    storm.served(100)                                      # so many more answers
assert storm.statuses() == {200}
"""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol, Self

from tests.e2e.client import Headers, Response
from tests.e2e.gateway import CHAT, KEY, chat
from tests.e2e.until import until

CLIENTS: Final = 20


@dataclass(frozen=True, slots=True)
class Told:
    """One whole answer."""

    model: str
    status: int
    request_id: str
    at: float
    """When its end was there, unix seconds."""


class Asked(Protocol):
    """Who is asked: a gateway, or what stands in front of some."""

    def whole(self, method: str, path: str, body: bytes = b"", headers: Headers = ()) -> Response:
        """Send one request and return the whole answer."""
        ...


class Storm:
    """A number of clients, each with one request at a time. *models* is gone through again and again."""

    def __init__(self, gateway: Asked, models: Iterable[str], *, clients: int = CLIENTS, key: str = KEY) -> None:
        self._gateway, self._clients = gateway, clients
        self._models, self._turn = itertools.cycle(models), threading.Lock()
        self._headers = [("authorization", f"Bearer {key}"), ("content-type", "application/json")]
        self._stop = threading.Event()
        self.answers: list[Told] = []
        self.broken = 0
        """Requests without a whole answer: refused, or the connection ended."""

    def __enter__(self) -> Self:
        self._pool = ThreadPoolExecutor(self._clients)
        self._running = [self._pool.submit(self._ask_on) for _ in range(self._clients)]
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()
        for client in self._running:
            client.result()

    def _ask_on(self) -> None:
        while not self._stop.is_set():
            with self._turn:
                model = next(self._models)
            try:
                self._ask(model)
            except (OSError, http.client.HTTPException):
                with self._turn:
                    self.broken += 1
                self._stop.wait(0.02)

    def _ask(self, model: str) -> None:
        answer = self._gateway.whole("POST", CHAT, json.dumps(chat(model)).encode(), self._headers)
        request_id = answer.headers.get("x-troy-request-id", "")  # a proxy in front makes answers of its own
        self.answers.append(Told(model, answer.status, request_id, time.time()))

    def served(self, more: int) -> None:
        """Wait until so many more requests were answered."""
        goal = len(self.answers) + more
        until(lambda: len(self.answers) >= goal)

    def statuses(self) -> set[int]:
        """Return every status that was seen."""
        return {told.status for told in self.answers}

    def ids(self) -> set[str]:
        """Return the id of every request that was answered."""
        return {told.request_id for told in self.answers}
