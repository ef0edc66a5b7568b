"""Asks the running gateway's admin API on behalf of a command: what only that process knows.

With the standard library's client: one request at a time, in a process that does nothing else.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import typer

from troyproxy.catalog.secret import Secret
from troyproxy.cli.configured import configured
from troyproxy.errors import ConfigError, TroyError
from troyproxy.settings.secrets import ADMIN_TOKEN, data_folder
from troyproxy.settings.values import Settings
from troyproxy.wire.sse import FrameDecoder

URL: Final = typer.Option(None, "--url", help="Where the gateway is; else TROY_HOST and TROY_PORT on this machine.")
ANSWER_S: Final = 10.0
SILENCE_S: Final = 60.0
"""Longer than the gateway keeps silent on a stream of events."""
CHUNK: Final = 65_536
ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 -- listeners, not ours
"""Where a listener on every address is found from here."""


class NotReached(TroyError):
    """No gateway answers there, or not to the end."""


class Refused(TroyError):
    """The gateway answered, but not what was asked for."""


class NoToken(ConfigError):
    """There is no admin token to ask with."""


@dataclass(frozen=True, slots=True)
class Told:
    """One event of a stream."""

    kind: str
    facts: dict[str, Any]


class Asking:
    """A gateway's address and the admin token."""

    def __init__(self, url: str, token: Secret) -> None:
        """Raises ConfigError for an address that is none."""
        self.url, self._token = url.rstrip("/"), token
        try:
            parts = urlsplit(self.url)
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError:
            self._host = ""
        if not self._host or parts.scheme not in {"http", "https"}:
            raise ConfigError(f"{url}: is no address of a gateway; it looks like http://127.0.0.1:31337")
        self._tls, self._path = parts.scheme == "https", parts.path

    def get(self, path: str) -> dict[str, Any]:
        """Return the JSON at *path*. Raises NotReached, Refused."""
        with self._answer(path, ANSWER_S) as answer, self._broken():
            body = answer.read()
        return self._object(body)

    def events(self, path: str) -> Iterator[Told]:
        """Yield the events at *path* as they come, until the stream ends. Raises NotReached, Refused."""
        decoder = FrameDecoder()
        with self._answer(path, SILENCE_S) as answer, self._broken():
            while chunk := answer.read1(CHUNK):
                for frame in decoder.feed(chunk):
                    if frame.data is not None:
                        yield Told((frame.event or b"message").decode("ascii"), self._object(frame.data))

    @contextmanager
    def _answer(self, path: str, within_s: float) -> Iterator[http.client.HTTPResponse]:
        with closing(self._connection(within_s)) as connection:
            with self._absent():
                headers = {"authorization": f"Bearer {self._token.reveal()}", "accept": "*/*"}
                connection.request("GET", self._path + path, headers=headers)
                answer = connection.getresponse()
                refused = answer.read() if answer.status != 200 else b""
            if answer.status != 200:
                raise Refused(f"{self.url} answered {answer.status}: {_said(refused)}")
            yield answer

    def _connection(self, within_s: float) -> http.client.HTTPConnection:
        if not self._tls:
            return http.client.HTTPConnection(self._host, self._port, timeout=within_s)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=within_s, context=ssl.create_default_context()
        )

    @contextmanager
    def _absent(self) -> Iterator[None]:
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            raise NotReached(
                f"no gateway answers at {self.url} ({_why(error)}); is it running? --url names another address"
            ) from None

    @contextmanager
    def _broken(self) -> Iterator[None]:
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            raise NotReached(f"the gateway at {self.url} broke off ({_why(error)})") from None

    def _object(self, body: bytes) -> dict[str, Any]:
        try:
            value = json.loads(body)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise Refused(f"{self.url} answered something that is no gateway's JSON")
        return value


def asking(config: Path | None, url: str | None) -> Asking:
    """Return whom the commands ask. Raises ConfigError, NoToken."""
    settings = configured(config).settings
    return Asking(url or _here(settings), _token(settings))


def _here(settings: Settings) -> str:
    host = ANYWHERE.get(settings.host, settings.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"


def _token(settings: Settings) -> Secret:
    """Return the admin token; one that is not there is not made: no gateway would know it."""
    if settings.admin_token is not None:
        return settings.admin_token
    path = data_folder(settings.database_url) / ADMIN_TOKEN
    try:
        return Secret(path.read_text(encoding="ascii").strip())
    except (OSError, UnicodeDecodeError):
        raise NoToken(f"no admin token: set TROY_ADMIN_TOKEN, or run where {path} is") from None


def _why(error: OSError | http.client.HTTPException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _said(body: bytes) -> str:
    """Return the message of an error's envelope."""
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return "no gateway's answer"
