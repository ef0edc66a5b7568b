"""How a server ends: who comes late is served."""

from __future__ import annotations

import socket

from troyproxy.cli.server import _not_taken


def test_who_has_connected_but_was_not_taken_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        with socket.create_connection(listener.getsockname()), socket.create_connection(listener.getsockname()):
            found = list(_not_taken(listener))
            assert [connection.getblocking() for connection in found] == [False, False]
            for connection in found:
                connection.close()
