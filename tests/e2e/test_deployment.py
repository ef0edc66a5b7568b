"""`deploy/local`: real nginx, two gateways, PostgreSQL, Redis and Prometheus, with things done to them under load."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.client import Headers, Open, Response, send
from tests.e2e.gateway import ROOT
from tests.e2e.storm import Storm
from tests.e2e.until import until
from tests.e2e.upstreams import HEALTHY, Upstreams
from tests.services import free_port

LOCAL: Final = ROOT / "deploy" / "local"
NEEDED: Final = ("nginx", "redis-server", "prometheus", "setpriv", "curl", "ps")
PORTS: Final = ("NGINX_PORT", "ONE_PORT", "TWO_PORT", "POSTGRES_PORT", "REDIS_PORT", "PROMETHEUS_PORT")
CLIENTS: Final = 8


class Topology:
    """What `deploy/local/up` runs in *folder*."""

    def __init__(self, folder: Path, upstreams: Upstreams) -> None:
        self.folder = folder
        self._env = {name: str(free_port()) for name in PORTS}
        config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none"}}}
        (folder / "troyproxy.yaml").write_text(json.dumps(config), encoding="utf-8")

    def run(self, script: str) -> str:
        """Run one of the scripts and return what it says."""
        env = {**os.environ, "TROYPROXY": str(ROOT / ".venv" / "bin" / "troyproxy"), **self._env}
        done = subprocess.run(
            [LOCAL / script, self.folder], check=False, env=env, capture_output=True, text=True, timeout=150
        )
        assert done.returncode == 0, done.stdout + done.stderr + self.logs()
        return done.stdout

    def logs(self) -> str:
        return "".join(f"== {log}\n{log.read_text()[-2000:]}" for log in sorted(self.folder.glob("log/*.log")))

    def pid(self, name: str) -> int:
        return int((self.folder / "run" / f"{name}.pid").read_text(encoding="utf-8").split()[0])

    def end(self, name: str, number: signal.Signals) -> None:
        """Send a signal and wait for the end of the process."""
        pid = self.pid(name)
        os.kill(pid, number)
        until(lambda: not runs(pid))

    def port(self, name: str) -> int:
        return int(self._env[f"{name.upper()}_PORT"])

    @property
    def key(self) -> str:
        return (self.folder / "key").read_text(encoding="utf-8").strip()

    def whole(self, method: str, path: str, body: bytes = b"", headers: Headers = ()) -> Response:
        """Send one request through nginx and return the whole answer."""
        return asked(self.port("nginx"), method, path, body, headers)

    def storm(self) -> Storm:
        return Storm(self, ["alpha/m1", "alpha/m2"], clients=CLIENTS, key=self.key)

    def degraded(self, name: str) -> list[str]:
        """Return what `/readyz` of a gateway says is wrong."""
        found: list[str] = asked(self.port(name), "GET", "/readyz").json()["degraded"]
        return found


def runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False


def asked(port: int, method: str, path: str, body: bytes = b"", headers: Headers = ()) -> Response:
    with closing(Open(send(port, method, path, body, headers))) as reply:
        return reply.whole()


@pytest.fixture(scope="module")
def topology(upstreams: Upstreams) -> Iterator[Topology]:
    missing = [name for name in NEEDED if shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None]
    if missing or not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        pytest.skip(f"needs PostgreSQL, nginx, Redis and Prometheus (missing: {missing})")
    folder = Path(tempfile.mkdtemp(prefix="troy-local-"))
    folder.chmod(0o755)  # the user postgres must reach its own
    parts = Topology(folder, upstreams)
    try:
        parts.run("up")
        yield parts
    finally:
        parts.run("down")
        shutil.rmtree(folder)


@pytest.fixture
def served(topology: Topology, upstreams: Upstreams) -> Topology:
    upstreams.script("alpha", HEALTHY)
    return topology


def test_a_rolling_restart_of_both_gateways_fails_no_request(served: Topology) -> None:
    before = served.pid("one"), served.pid("two")
    with served.storm() as storm:
        storm.served(20)
        served.run("restart")
        storm.served(20)
    assert (storm.statuses(), storm.broken) == ({200}, 0)
    assert not {*before} & {served.pid("one"), served.pid("two")}


def test_redis_stopped_and_started_fails_no_request(served: Topology) -> None:
    with served.storm() as storm:
        storm.served(20)
        served.end("redis", signal.SIGKILL)
        storm.served(60)
        served.run("up")
        storm.served(20)
    assert (storm.statuses(), storm.broken) == ({200}, 0)


def test_postgresql_stopped_and_started_fails_no_request(served: Topology) -> None:
    with served.storm() as storm:
        storm.served(20)
        served.end("postgres", signal.SIGQUIT)
        until(lambda: served.degraded("one") == served.degraded("two") == ["database"])
        storm.served(60)
        served.run("up")
        until(lambda: served.degraded("one") == served.degraded("two") == [])
    assert (storm.statuses(), storm.broken) == ({200}, 0)


def test_a_gateway_that_is_killed_fails_only_what_it_had_in_flight(served: Topology) -> None:
    with served.storm() as storm:
        storm.served(20)
        served.end("one", signal.SIGKILL)
        storm.served(100)
        served.run("up")
        storm.served(20)
    failed = sum(told.status != 200 for told in storm.answers) + storm.broken
    assert failed <= CLIENTS
    assert storm.statuses() <= {200, 502}


def test_prometheus_sees_both_gateways(served: Topology) -> None:
    def up() -> list[str]:
        found = asked(served.port("prometheus"), "GET", "/api/v1/query?query=up").json()
        return [each["value"][1] for each in found["data"]["result"]]

    assert until(lambda: up() == ["1", "1"], within_s=40)
