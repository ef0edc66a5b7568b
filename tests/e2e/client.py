"""A raw HTTP client: sends what it is given, byte for byte, and shows what came back as it came."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

CLIENT_S: Final = 30.0
"""Bounds every client call; never waited for when things work."""
Headers = Iterable[tuple[str, str | bytes]]


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer, as it came."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; repeats joined by a comma."""
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 - JSON is what the test expects it to be
        return json.loads(self.body)

    @property
    def code(self) -> object:
        """The code in the error envelope."""
        return self.json()["error"]["code"]


class Open:
    """An answer that is still arriving; close it to hang up."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        with ExitStack() as undo:
            undo.callback(connection.close)
            self._response = connection.getresponse()
            undo.pop_all()
        self.status = self._response.status
        self.headers = _lower(self._response.getheaders())

    def read(self) -> bytes:
        """Return what one read brings, b"" at the end."""
        return self._response.read1(1 << 16)

    def rest(self) -> bytes:
        """Return everything to the end. Raises IncompleteRead when the connection is cut before it."""
        return self._response.read()

    def whole(self) -> Response:
        """Return the answer with everything that is still to come."""
        return Response(self.status, self.headers, self.rest())

    def close(self) -> None:
        """Hang up."""
        self._response.close()
        self._connection.close()


def send(
    port: int, method: str, path: str, body: bytes = b"", headers: Headers = (), source: str = "127.0.0.1"
) -> http.client.HTTPConnection:
    """Send one request exactly as given, plus host and length, from the address *source*."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=CLIENT_S, source_address=(source, 0))
    with ExitStack() as undo:
        undo.callback(connection.close)
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value)
        if body:
            connection.putheader("content-length", str(len(body)))
        connection.endheaders(body or None)
        undo.pop_all()
    return connection


def _lower(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers:
        before = found.get(name.lower())
        found[name.lower()] = value if before is None else f"{before}, {value}"
    return found
