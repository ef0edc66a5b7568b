"""What a client sends, cut into requests: uvicorn's reading with httptools, with an end to everything.

A head, and what stands between the pieces of a body, may have `MAX_HEAD` bytes; trailers are dropped; the offer of
another protocol is declined; and of a body whose length is declared only the beginning, which came with its head, goes
through httptools: the rest is counted and not copied. What is served when, and how it ends, is `protocol`'s.
"""

from __future__ import annotations

import asyncio
import urllib.parse
from typing import Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from troyproxy.cli.counted import declared, parser_behind_the_last, parser_of
from troyproxy.cli.declined import behind
from troyproxy.cli.exchange import Exchange
from troyproxy.cli.forwarded import PREFIX
from troyproxy.cli.server_config import ServerConfig
from troyproxy.proxy.call import Scope

MAX_HEAD: Final = 1 << 21
"""Bytes that may come without the end of a head or a byte of a body. A wrong key of a megabyte is still told that."""
MAX_BODY: Final = 1 << 18
"""Bytes of a body that may wait for the app; then nothing is read until it takes them. Most are never stopped."""


class Reading(HttpToolsProtocol):
    """The half of a connection that reads."""

    cycle: Exchange  # type: ignore[assignment]  # stands in the place of uvicorn's own
    """The latest request that was read; None before the first one."""

    def __init__(
        self,
        config: ServerConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._lowered = config.lowered
        self._versions = {"version": self.asgi_version, "spec_version": "2.3"}
        self._unused = 0
        """Bytes since something came of them."""
        self._in_head = self._forwarded = False
        self._shown = -1
        """Bytes of a body that the parser has shown; negative where it is in none."""
        self._left = 0
        """Bytes of a body that are still to come and pass by the parser."""
        self._url: bytes | None = None
        self._target = ("", b"", b"")

    # What the other half does.

    def _wait(self) -> None:
        """Something came, and nothing is served: wait for more."""
        raise NotImplementedError

    def _malformed(self) -> None:
        """What came is no request."""
        raise NotImplementedError

    def _refuse(self) -> None:
        """More came than may."""
        raise NotImplementedError

    # What the network tells.

    def data_received(self, data: bytes) -> None:
        """Read what came."""
        if self._left:
            data = self._count_down(data)
            if not data:
                return
        self._unused += len(data)
        begun = self._in_head
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self._malformed()
        except httptools.HttpParserUpgrade as offer:
            self._decline(memoryview(data)[offer.args[0] :])
        if self._unused > MAX_HEAD:
            self._refuse()
        elif not begun and (self.cycle is None or self.cycle.response_complete):  # a head has one time for all of it
            self._wait()
        if self._shown >= 0:  # within a body
            self._count()

    def _count(self) -> None:
        """Let the rest of a body pass by the parser, if its length is known."""
        length = declared(self.headers)
        if length is not None:
            self._left = length - self._shown

    def _count_down(self, data: bytes) -> bytes:
        """Take what *data* has of the body; return what stands behind it."""
        left, rest = self._left - len(data), b""
        if left < 0:
            data, rest, left = data[:left], data[left:], 0
        self._left = left
        self.on_body(data)
        if not left:
            self.parser = parser_of(self) if self.parser.should_keep_alive() else parser_behind_the_last()
            self.on_message_complete()
        if self.cycle.response_complete:
            self._wait()
        return rest

    def _decline(self, rest: memoryview) -> None:
        """Go on with a request that offers another protocol; *rest* came behind its head."""
        while True:
            self.cycle.goes_on()
            self._shown = 0
            self.parser = behind(self, self.headers)
            try:
                self.parser.feed_data(rest)
            except httptools.HttpParserError:
                self._malformed()
            except httptools.HttpParserUpgrade as offer:
                rest = rest[offer.args[0] :]
                continue
            return

    # What httptools tells.

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._unused, self._in_head = 0, True
        self._forwarded = self.expect_100_continue = False
        self.url, self.headers = b"", []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a trailer is dropped."""
        if self._in_head:
            name = self._lowered[name]
            self.headers.append((name, value))
            if name == b"expect":
                self.expect_100_continue = value.lower() == b"100-continue"
            elif name[:12] == PREFIX:
                self._forwarded = True

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._unused = 0
        self._shown += len(body)
        if not self.cycle.response_complete and self.cycle.take(body) > MAX_BODY:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        """End a request."""
        self._shown = -1
        if not self.cycle.response_complete:
            self.cycle.whole()

    def _scope(self, version: str) -> Scope:
        path, raw_path, query = self._target if self.url == self._url else self._new_target()
        return {
            "type": "http",
            "asgi": self._versions,
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "method": self.parser.get_method().decode("ascii"),
            "root_path": self.root_path,
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
            "headers": self.headers,
            "state": self.app_state.copy(),
        }

    def _new_target(self) -> tuple[str, bytes, bytes]:
        """Return what the request's URL says. Most clients ask for the same one again and again."""
        parsed = httptools.parse_url(self.url)
        path = urllib.parse.unquote(parsed.path.decode("ascii"))
        self._target = self.root_path + path, self.root_path.encode("ascii") + parsed.path, parsed.query or b""
        self._url = self.url
        return self._target
