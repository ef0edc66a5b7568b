"""Several workers begin and end together, whatever ends them."""

from __future__ import annotations

import http.client
import logging
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.running import once, serving
from tests.e2e.gateway import KEY, Gateway, chat, run_gateway
from tests.e2e.pins import pids
from tests.e2e.scrapes import scraped
from tests.e2e.shapes import DONE, delta, usage_event
from tests.e2e.until import until
from tests.e2e.upstreams import Gate, Upstreams, stream
from troyproxy.cli.configured import configured
from troyproxy.cli.start import Start
from troyproxy.cli.supervisor import Supervisor
from troyproxy.errors import ConfigError


@pytest.fixture
def gateway(tmp_path: Path, upstreams: Upstreams) -> Iterator[Gateway]:
    config = {"providers": {"alpha": {"base_url": upstreams.base_url("alpha"), "auth": "none"}}}
    with run_gateway(tmp_path, config, "--workers", "2", TROY_SHUTDOWN_S="30") as running:
        yield running


def refuses(gateway: Gateway) -> bool:
    """Whether nobody listens any more."""
    try:
        gateway.get("/readyz")
    except (OSError, http.client.HTTPException):
        return True
    return False


def lives(pid: int) -> bool:
    """Whether the process still runs; one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_stream_in_one_worker_outlives_sigterm_and_then_all_end_with_status_0(
    gateway: Gateway, upstreams: Upstreams
) -> None:
    workers = pids(gateway, 2)
    first, last = delta("one"), delta("two", finish="stop")
    upstreams.script("alpha", stream(first, Gate("go on"), last, usage_event(), DONE), model="long")
    with closing(gateway.stream(chat("alpha/long"))) as answer:
        got = b""
        while len(got) < len(first):
            got += answer.read()
        gateway.signal(signal.SIGTERM)
        until(lambda: refuses(gateway))
        until(lambda: sum(map(lives, workers.values())) == 1)
        upstreams.open("go on")
        assert got + answer.rest() == first + last + DONE
        request_id = answer.headers["x-troy-request-id"]
    assert gateway.wait() == 0
    assert (gateway.row(request_id)["outcome"], any(map(lives, workers.values()))) == ("ok", False)
    assert list((gateway.folder / "data").glob("metrics-*")) == []


def test_workers_do_not_outlive_a_killed_supervisor(gateway: Gateway, upstreams: Upstreams) -> None:
    workers = pids(gateway, 2)
    gateway.kill()
    until(lambda: not any(map(lives, workers.values())))
    assert len(list((gateway.folder / "data").glob("metrics-*"))) == 1
    gateway.start()
    assert gateway.post(chat("alpha/m1")).status == 200
    assert len(list((gateway.folder / "data").glob("metrics-*"))) == 1


def test_the_workers_share_the_demo_and_its_key(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "2", TROY_METRICS_PORT="0", TROY_LOG="info,human") as served:
        key = (tmp_path / "data" / "demo.key").read_text("ascii").strip()
        assert {served.chat(key, "demo/ok")[0] for _ in range(10)} == {200}
        assert len(served.find(r"listens on .* in demo mode\. No provider")[0]) > 0
        port = int(served.find(r"metrics are served at http://127\.0\.0\.1:(\d+)/metrics")[1])

        def attempts() -> float:
            series = scraped(served.call("GET", "/metrics", port=port)[2])
            return sum(value for (name, _), value in series.items() if name == "troyproxy_attempts_total")

        until(lambda: attempts() == 10)  # the last answer may be read before its worker has counted it
        assert served.call("GET", "/v1/models", port=port)[0] == 404
        assert served.stop(signal.SIGINT) == 0


def test_the_supervisor_migrates_and_says_how_to_make_a_key(tmp_path: Path) -> None:
    (tmp_path / "troyproxy.yaml").write_text("providers: {a: {base_url: 'http://127.0.0.1:1/v1', auth: none}}")
    with serving(tmp_path, "--workers", "2") as served:
        served.find("troyproxy keys create NAME")
        with closing(sqlite3.connect(tmp_path / "data" / "troy.db")) as database:
            assert database.execute("select count(*) from alembic_version").fetchone() == (1,)
        assert served.call("GET", "/v1/models", key=KEY)[0] == 401


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({"TROY_PROT": "1"}, "TROY_PROT: is an unknown setting (did you mean TROY_PORT?)"),
        ({"TROY_DATABASE_URL": "mysql://nowhere/x"}, "TROY_DATABASE_URL"),
        ({"TROY_HOST": "host.invalid"}, "cannot listen on host.invalid:0"),
    ],
)
def test_what_is_wrong_at_the_start_is_one_line_and_status_1(tmp_path: Path, env: dict[str, str], told: str) -> None:
    done = once(tmp_path, "serve", "--port", "0", "--workers", "2", **env)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("troyproxy: ")
    assert told in done.stderr


@pytest.fixture
def _a_log_of_its_own() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("troyproxy")
    handlers, level = list(root.handlers), ours.level
    yield
    root.handlers[:] = handlers
    ours.setLevel(level)


@pytest.mark.usefixtures("_a_log_of_its_own")
def test_what_only_a_worker_finds_wrong_stops_everything_with_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    start = Start(lambda: configured(None, {"port": 0}), demo=True)
    with pytest.raises(ConfigError, match="TROY_NONSENSE: is an unknown setting"):
        Supervisor(start, 2, None, {"port": 0, "nonsense": 1}).run()
    assert list((tmp_path / "data").glob("metrics-*")) == []
