"""Real processes: what an operator sees of a start, a reload and a stop."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import stat
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.running import Served, once, serving
from tests.e2e.until import until
from tests.services import free_port

KEY = "sk-troy-" + "0" * 48
CONFIG = f"""
keys: [{{name: ci, key: {KEY}}}]
providers: {{local: {{base_url: 'http://127.0.0.1:1/v1', auth: none}}}}
"""


def _write(folder: Path, text: str = CONFIG) -> None:
    (folder / "troyproxy.yaml").write_text(text, encoding="utf-8")


def _curl(served: Served) -> str:
    return served.find(r"curl .*")[0]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl (Debian package curl)")
def test_the_printed_curl_line_shows_a_failover_as_it_stands(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        done = subprocess.run(_curl(served), shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)  # noqa: S602 -- it is printed to be pasted into a shell
    assert "HTTP/1.1 200 OK" in done.stdout
    assert "x-troy-attempts: 2" in done.stdout


def test_without_a_provider_demo_mode_begins_by_itself(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        assert "in demo mode. No provider is configured" in served.err


def test_secrets_are_files_for_their_owner_only_and_are_not_shown(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        _curl(served)
        for name in ("secret.key", "admin.token", "demo.key"):
            path = tmp_path / "data" / name
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert path.read_text("ascii").strip() not in served.err
        assert "data/admin.token" in served.err
        assert "$(cat data/demo.key)" in served.err


@pytest.mark.skipif(shutil.which("script") is None, reason="needs script (Debian package bsdutils)")
def test_on_a_terminal_the_secrets_are_shown(tmp_path: Path) -> None:
    with serving(tmp_path, tty=True) as served:
        line = _curl(served)
        assert (tmp_path / "data" / "demo.key").read_text("ascii").strip() in line
        assert (tmp_path / "data" / "admin.token").read_text("ascii").strip() in served.err


def test_the_demo_key_stays_the_same(tmp_path: Path) -> None:
    with serving(tmp_path):
        key = (tmp_path / "data" / "demo.key").read_text("ascii")
    with serving(tmp_path) as served:
        assert served.chat(key.strip(), "demo")[0] == 200


def test_demo_adds_to_what_is_configured(tmp_path: Path) -> None:
    _write(tmp_path)
    with serving(tmp_path, "--demo") as served:
        assert "No provider is configured" not in served.err
        assert served.chat(KEY, "demo/ok")[0] == 200


def test_a_configured_gateway_is_no_demo(tmp_path: Path) -> None:
    _write(tmp_path)
    with serving(tmp_path) as served:
        assert served.chat(KEY, "demo")[0] == 404
        assert "keys create" not in served.err
        assert not (tmp_path / "data" / "demo.key").exists()


def test_without_a_key_the_start_says_how_to_make_one_and_then_follows(tmp_path: Path) -> None:
    _write(tmp_path, CONFIG.replace("keys:", "#keys:"))
    with serving(tmp_path) as served:
        served.find(r"troyproxy keys create NAME")
        key = once(tmp_path, "keys", "create", "ci").stdout.strip()
        # Not asked before: an unknown key is remembered for a few seconds, unless the control row moves.
        assert until(lambda: served.chat(key, "local/m")[0] != 401)
        once(tmp_path, "keys", "revoke", "ci")
        assert until(lambda: served.chat(key, "local/m")[0] == 401)


def test_an_open_door_needs_no_key(tmp_path: Path) -> None:
    with serving(tmp_path, TROY_AUTH="off") as served:
        assert "Bearer" not in _curl(served)
        assert served.call("GET", "/v1/models")[0] == 200


def test_a_changed_file_is_taken_at_sighup(tmp_path: Path) -> None:
    _write(tmp_path)
    with serving(tmp_path, "--demo") as served:
        _write(tmp_path, CONFIG + "combos: {daily: {members: [demo/ok]}}\n")
        served.process.send_signal(signal.SIGHUP)
        served.find("the configuration was reloaded")
        assert served.chat(KEY, "daily")[0] == 200


def test_an_invalid_file_changes_nothing_at_sighup(tmp_path: Path) -> None:
    _write(tmp_path)
    with serving(tmp_path, "--demo") as served:
        _write(tmp_path, "nonsense: 1\n")
        served.process.send_signal(signal.SIGHUP)
        assert "nonsense" in served.find("the last good one stays: (.*)")[1]
        assert served.chat(KEY, "demo/ok")[0] == 200


def test_a_stream_in_flight_outlives_sigterm_while_readyz_fails(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        key = (tmp_path / "data" / "demo.key").read_text("ascii").strip()
        request = {"model": "demo/slow-100", "messages": [{"role": "user", "content": "hi"}], "stream": True}
        with closing(served.request("POST", "/v1/chat/completions", request, key=key)) as connection:
            answer = connection.getresponse()
            assert answer.readline().startswith(b"data: ")
            served.process.send_signal(signal.SIGTERM)
            assert until(lambda: _not_ready(served))
            assert served.process.poll() is None
            assert answer.read().endswith(b"data: [DONE]\n\n")
        assert served.process.wait(timeout=20) == 0


def _not_ready(served: Served) -> bool:
    try:
        return served.call("GET", "/readyz")[0] == 503
    except ConnectionError:
        return True


def test_the_grace_has_an_end(tmp_path: Path) -> None:
    with serving(tmp_path, TROY_SHUTDOWN_S="1") as served:
        key = (tmp_path / "data" / "demo.key").read_text("ascii").strip()
        request = {"model": "demo/slow-700", "messages": [{"role": "user", "content": "hi"}], "stream": True}
        with closing(served.request("POST", "/v1/chat/completions", request, key=key)) as connection:
            answer = connection.getresponse()
            assert served.stop() == 0
            body = answer.read()
            assert (b"the gateway is stopping" in body, b"[DONE]" in body) == (True, False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_orderly_stop_has_status_0(tmp_path: Path, number: int) -> None:
    with serving(tmp_path) as served:
        assert served.stop(number) == 0
        assert "Traceback" not in served.err


def test_metrics_have_a_port_of_their_own(tmp_path: Path) -> None:
    with serving(tmp_path, TROY_METRICS_PORT="0", TROY_LOG="info,human") as served:
        port = int(served.find(r"metrics are served at http://127\.0\.0\.1:(\d+)/metrics")[1])
        status, _, body = until(lambda: _metrics(served, port))
        assert (status, b"troyproxy_" in body) == (200, True)
        assert served.call("GET", "/v1/models", port=port)[0] == 404
        assert served.stop() == 0


def _metrics(served: Served, port: int) -> tuple[int, object, bytes]:
    return served.call("GET", "/metrics", port=port)


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({"TROY_PROT": "1"}, "TROY_PROT: is an unknown setting (did you mean TROY_PORT?)"),
        ({"TROY_AUTH": "off", "TROY_HOST": "0.0.0.0"}, "TROY_AUTH=off is for a loopback listener"),
        ({"TROY_HOST": "host.invalid"}, "cannot listen on host.invalid:0"),
        ({"TROY_DATABASE_URL": "mysql://nowhere/x"}, "TROY_DATABASE_URL"),
        ({"TROY_SECRET_KEY": "short"}, "TROY_SECRET_KEY"),
    ],
)
def test_what_is_wrong_at_the_start_is_one_line_and_status_1(tmp_path: Path, env: dict[str, str], told: str) -> None:
    done = once(tmp_path, "serve", "--port", "0", **env)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("troyproxy: ")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_database_that_is_none_is_one_line_and_status_1(tmp_path: Path) -> None:
    _write(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "troy.db").write_bytes(b"this is no database" * 100)
    done = once(tmp_path, "serve", "--port", "0")
    assert done.returncode == 1
    assert done.stderr.strip().split("\n")[-1].startswith("troyproxy: cannot open or migrate the database file")
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_one_line_and_status_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = once(tmp_path, "serve", "--port", str(port))
    told = (
        f"troyproxy: cannot listen on 127.0.0.1:{port}: address already in use;"
        " choose another with --host or --port (TROY_HOST, TROY_PORT)\n"
    )
    assert (done.returncode, done.stderr) == (1, told)
    assert not (tmp_path / "data").exists()


def test_metrics_on_the_port_of_the_gateway_are_one_line_and_status_1(tmp_path: Path) -> None:
    port = str(free_port())
    done = once(tmp_path, "serve", "--port", port, TROY_METRICS_PORT=port)
    assert (done.returncode, done.stderr) == (
        1,
        f"troyproxy: TROY_METRICS_PORT: {port} is the port of the gateway, which has /metrics anyway; choose another\n",
    )


def test_no_secret_reaches_the_log(tmp_path: Path) -> None:
    secret = "gsk_0123456789abcdefghijklmnop"
    with serving(
        tmp_path, GROQ_API_KEY=secret, TROY_LOG="debug,json", TROY_ADMIN_TOKEN="plainwords-nobody-sees"
    ) as served:
        served.stop()
        assert secret not in served.err
        assert "plainwords" not in served.err
        assert [json.loads(line)["level"] for line in served.err.split("\n") if line]
