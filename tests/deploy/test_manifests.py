"""The files of `deploy/`: valid for the programs that read them, and true of this project."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import kubernetes_validate  # type: ignore[import-untyped]  # it has no types
import pytest
import yaml

from troyproxy.cli.server import KEEP_ALIVE_S
from troyproxy.settings.parsers import PARSERS
from troyproxy.settings.values import Settings
from troyproxy.version import VERSION

ROOT: Final = Path(__file__).parents[2]
DEPLOY: Final = ROOT / "deploy"
KUBERNETES: Final = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
SCRIPTS: Final = sorted((DEPLOY / "local").iterdir())
NGINX: Final = (DEPLOY / "nginx" / "troyproxy.conf").read_text(encoding="utf-8")
UNIT: Final = (DEPLOY / "systemd" / "troyproxy.service").read_text(encoding="utf-8")
COMPOSE: Final = yaml.safe_load((DEPLOY / "compose.yaml").read_bytes())
SERVICES: Final[dict[str, Any]] = COMPOSE["services"]
LEAVES_S: Final = Settings().drain_s + Settings().shutdown_s
NO_SETTINGS: Final = {"TROY_CONFIG", "TROY_DEMO"}
"""Variables of the command line, not settings."""


def objects() -> Iterator[dict[str, Any]]:
    for file in KUBERNETES:
        yield from yaml.safe_load_all(file.read_bytes())


def pods() -> list[dict[str, Any]]:
    return [each["spec"]["template"]["spec"] for each in objects() if each["kind"] in {"Deployment", "Job"}]


def text_of_all() -> str:
    files = [file for file in DEPLOY.rglob("*") if file.is_file()]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def test_compose_fits_its_specification() -> None:
    schema = json.loads(
        (resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json").read_bytes()
    )
    assert [str(error) for error in jsonschema_rs.validator_for(schema).iter_errors(COMPOSE)] == []


@pytest.mark.parametrize("resource", list(objects()), ids=lambda each: each["kind"])
def test_kubernetes_takes_each_object(resource: dict[str, Any]) -> None:
    assert kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)


def test_every_variable_of_ours_is_a_setting() -> None:
    named = set(re.findall(r"\bTROY_[A-Z_]+\b", text_of_all()))
    assert named - NO_SETTINGS <= {f"TROY_{name.upper()}" for name in PARSERS}


def test_what_compose_fills_in_stands_in_the_example() -> None:
    example = (DEPLOY / "example.env").read_text(encoding="utf-8")
    asked = set(re.findall(r"\$\{(\w+)\}", (DEPLOY / "compose.yaml").read_text(encoding="utf-8")))
    assert asked <= set(re.findall(r"^(\w+)=", example, re.MULTILINE))


def test_what_compose_mounts_exists() -> None:
    mounts = [volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())]
    files = [mount for mount in mounts if mount.startswith(".")]
    assert files
    assert [file for file in files if not (DEPLOY / file).exists()] == []


def test_what_the_image_copies_exists() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    sources = [
        word for line in re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.MULTILINE) for word in line.split()[:-1]
    ]
    assert "requirements.lock" in sources
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_every_foreign_image_has_a_version() -> None:
    images = {service["image"] for service in SERVICES.values()} - {"troyproxy"}
    assert images
    assert [image for image in images if not re.fullmatch(r"[\w/.-]+:v?\d[\w.]*", image)] == []


def test_kubernetes_runs_this_version() -> None:
    images = {container["image"] for pod in pods() for container in pod["containers"]}
    assert images == {f"troyproxy:{VERSION}"}


def test_no_pod_is_told_of_services_in_variables() -> None:
    assert [pod.get("enableServiceLinks") for pod in pods()] == [False, False]


def test_nginx_names_the_ports_of_both_gateways() -> None:
    ports = {service["environment"]["TROY_PORT"] for name, service in SERVICES.items() if name.startswith("troyproxy-")}
    assert ports == set(re.findall(r"#?server 127\.0\.0\.1:(\d+)", NGINX)) == {str(Settings().port), "31338"}


def test_the_image_and_the_pod_have_the_gateways_port() -> None:
    exposed = re.findall(r"^EXPOSE (\d+)$", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    ported = [port["containerPort"] for pod in pods() for each in pod["containers"] for port in each.get("ports", ())]
    assert (exposed, ported) == ([str(Settings().port)], [Settings().port])


def test_prometheus_scrapes_what_nginx_passes_to() -> None:
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_bytes())["scrape_configs"][0]["static_configs"][0]
    assert scraped["targets"] == re.findall(r"#?server (127\.0\.0\.1:\d+)", NGINX)


def test_nginx_gives_up_an_idle_connection_before_the_gateway_does() -> None:
    (kept,) = re.findall(r"keepalive_timeout (\d+)s", NGINX)
    assert int(kept) < KEEP_ALIVE_S


def test_nginx_never_sends_a_post_twice() -> None:
    (tried,) = re.findall(r"^ *proxy_next_upstream (.+);$", NGINX, re.MULTILINE)
    assert tried == "error timeout"


def test_everybody_waits_for_streams_to_end() -> None:
    (unit,) = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    (pod,) = [pod for pod in pods() if "terminationGracePeriodSeconds" in pod]
    held = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][-1])
    composed = {service["stop_grace_period"] for name, service in SERVICES.items() if name.startswith("troyproxy-")}
    assert composed == {f"{unit}s"}
    assert min(int(unit), pod["terminationGracePeriodSeconds"] - held) > LEAVES_S


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_the_scripts_are_bash(script: Path) -> None:
    assert subprocess.run(["/bin/bash", "-n", script], check=False, capture_output=True, text=True).stderr == ""
