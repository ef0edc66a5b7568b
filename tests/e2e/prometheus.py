"""A real Prometheus for a test: it scrapes gateways as `deploy/prometheus.yml` says, only more often."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import tempfile
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.e2e.until import until
from tests.services import free_port

ROOT: Final = Path(__file__).parents[2]
EVERY: Final = "1s"
"""How often it scrapes, and evaluates its rules."""
STOP_S: Final = 20.0
Labels = dict[str, str]
Point = tuple[float, float]


class Prometheus:
    """Asks one that runs."""

    def __init__(self, port: int) -> None:
        self._port = port

    def up(self) -> bool:
        """Whether it answers."""
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)) as connection:
                connection.request("GET", "/-/ready")
                return connection.getresponse().status == 200
        except OSError:
            return False

    def scrapes(self) -> float:
        """Return how often every instance was scraped so far."""
        return min((value for _, value in self.now("count_over_time(up[1h])")), default=0.0)

    def now(self, query: str) -> list[tuple[Labels, float]]:
        """Return what *query* finds now. Raises AssertionError when it is refused."""
        found = self._get("query", query=query)
        assert found["resultType"] in {"vector", "scalar"}, found
        if found["resultType"] == "scalar":
            return [({}, float(found["result"][1]))]
        return [(series["metric"], float(series["value"][1])) for series in found["result"]]

    def over(self, query: str, start: float, end: float, step_s: float) -> list[tuple[Labels, list[Point]]]:
        """Return what *query* finds between two moments."""
        found = self._get("query_range", query=query, start=start, end=end, step=step_s)
        return [(s["metric"], [(at, float(value)) for at, value in s["values"]]) for s in found["result"]]

    def rules(self) -> list[dict[str, Any]]:
        """Return the rules with their health and state."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def exemplars(self, query: str, start: float, end: float) -> list[Labels]:
        """Return the labels of the exemplars of *query* between two moments."""
        found = self._get("query_exemplars", query=query, start=start, end=end)
        return [exemplar["labels"] for series in found for exemplar in series["exemplars"]]

    def _get(self, what: str, **parameters: object) -> Any:  # noqa: ANN401 - what its API answers
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)) as connection:
            connection.request("GET", f"/api/v1/{what}?{urllib.parse.urlencode(parameters)}")
            answer = json.loads(connection.getresponse().read())
        assert answer["status"] == "success", answer
        return answer["data"]


def _config(rules: Path, targets: Sequence[str]) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "prometheus.yml").read_bytes())
    config["global"] = {"scrape_interval": EVERY, "scrape_timeout": EVERY, "evaluation_interval": EVERY}
    config["rule_files"] = [str(rules)]
    config["scrape_configs"][0]["static_configs"] = [{"targets": list(targets)}]
    return config


@contextmanager
def prometheus(*targets: str) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes *targets*. Skips the test when none is installed."""
    binary = shutil.which("prometheus")
    if binary is None:
        pytest.skip("needs prometheus (Debian package prometheus)")
    with tempfile.TemporaryDirectory(prefix="troy-prometheus-") as name, (Path(name) / "log").open("wb") as log:
        folder, port = Path(name), free_port()
        config = folder / "prometheus.yml"
        config.write_text(json.dumps(_config(ROOT / "grafana" / "alerts" / "troyproxy.yaml", targets)))
        options = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
        options += [f"--web.listen-address=127.0.0.1:{port}", "--enable-feature=exemplar-storage"]
        process = subprocess.Popen([binary, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
        try:
            server = Prometheus(port)
            until(lambda: process.poll() is None and server.up())
            yield server
        finally:
            process.terminate()
            process.wait(timeout=STOP_S)
