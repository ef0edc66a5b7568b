"""A real nginx with the shipped configuration, for the tests that stand behind one."""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.client import Open, Response, send
from tests.e2e.gateway import CHAT, Gateway, client_headers
from tests.e2e.shapes import dumps
from tests.e2e.until import until
from tests.services import free_port

SHIPPED: Final = Path(__file__).parents[2] / "deploy" / "nginx" / "troyproxy.conf"
ELSEWHERE: Final = "127.0.0.2"
"""A client that is not 127.0.0.1."""
PATHS: Final = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
AROUND: Final = """
daemon off;
{user}
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
    access_log off;
    {paths}
    include {folder}/troyproxy.conf;
}}
"""


def configured(folder: Path, port: int, gateway: Gateway, edited: Callable[[str], str]) -> Path:
    """Write nginx's configuration around the shipped file, of which the two ports change and what *edited* does."""
    shipped = edited(SHIPPED.read_text(encoding="utf-8"))
    for was, now in (("listen 80;", f"listen 127.0.0.1:{port};"), ("127.0.0.1:31337", f"127.0.0.1:{gateway.port}")):
        assert shipped.count(was) == 1
        shipped = shipped.replace(was, now)
    folder.joinpath("troyproxy.conf").write_text(shipped, encoding="utf-8")
    paths = "".join(f"{name}_temp_path {folder}/{name};" for name in PATHS)
    main = folder / "nginx.conf"
    main.write_text(AROUND.format(user="user root;" if os.geteuid() == 0 else "", folder=folder, paths=paths))
    return main


@contextmanager
def nginx(folder: Path, gateway: Gateway, edited: Callable[[str], str] = str) -> Iterator[int]:
    """Run nginx in front of *gateway*, and return its port; skip the test where there is none."""
    binary = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if binary is None:
        pytest.skip("needs nginx (Debian package nginx)")
    number = free_port()
    main = configured(folder, number, gateway, edited)
    with folder.joinpath("log").open("wb") as log:
        process = subprocess.Popen([binary, "-c", str(main), "-p", str(folder)], stdout=log, stderr=log)
    try:
        until(lambda: answers(number, process, folder))
        yield number
    finally:
        process.terminate()
        process.wait(timeout=20)


def answers(port: int, process: subprocess.Popen[bytes], folder: Path) -> bool:
    assert process.poll() is None, folder.joinpath("log").read_text(encoding="utf-8")
    # The file is written when the port is bound; before that a connection to the free port could meet itself.
    return folder.joinpath("nginx.pid").exists() and ask(port, "/healthz").status == 200


def ask(port: int, path: str, source: str = "127.0.0.1", **headers: str) -> Response:
    with closing(Open(send(port, "GET", path, headers=headers.items(), source=source))) as answer:
        return answer.whole()


def post(port: int, payload: dict[str, object], path: str = CHAT) -> http.client.HTTPConnection:
    return send(port, "POST", path, dumps(payload), client_headers())
