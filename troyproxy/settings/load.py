"""From environment, ``.env`` and config file to one `Configuration`: every problem of all three said at once.

Precedence: options given by the caller, the environment, ``.env``, the file, the default. A reload calls `load` again
with the same arguments. It reads files; it resolves no key of a provider (`assemble` does).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from troyproxy.errors import ConfigError
from troyproxy.settings.builtin import Builtin, load_builtins
from troyproxy.settings.checks import check_document
from troyproxy.settings.document import EMPTY, Credential, Document
from troyproxy.settings.dotenv import read_dotenv
from troyproxy.settings.parsers import PARSERS
from troyproxy.settings.report import Report, nearest, shown
from troyproxy.settings.sections import DOCUMENT, spoken
from troyproxy.settings.values import Settings
from troyproxy.settings.yamlfile import read_yaml

PREFIX: Final = "TROY_"
DEFAULT_FILE: Final = "troyproxy.yaml"

DEFAULT, FILE, DOTENV, ENVIRONMENT, OPTION = "default", "file", ".env", "environment", "option"


@dataclass(frozen=True, slots=True)
class Configuration:
    """What was configured, and where each setting came from. Nothing is connected yet."""

    settings: Settings
    provenance: Mapping[str, str]
    """Setting → ``default``, ``file``, ``.env``, ``environment`` or ``option``."""
    document: Document = EMPTY
    warnings: tuple[str, ...] = ()
    path: Path | None = None
    """The config file that was read, None without one."""
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """The environment over ``.env``: where ``env:NAME`` and provider keys are looked up."""
    builtins: Mapping[str, Builtin] = field(default_factory=lambda: MappingProxyType({}), repr=False)


def load(
    env: Mapping[str, str],
    *,
    config: str | Path | None = None,
    dotenv: Path | None = None,
    options: Mapping[str, object] | None = None,
    folder: Path = Path(),
) -> Configuration:
    """Return the configuration. Raises ConfigError that names every problem.

    *config* is the file to read (else ``TROY_CONFIG``, else ``troyproxy.yaml`` in *folder* if it is there); *dotenv* a
    ``.env`` file, read if it exists; *options* are settings given by the caller (`--port`, ``auth="off"``), which win.
    """
    report = Report()
    written = read_dotenv(dotenv) if dotenv is not None else {}
    found = _Found(report)
    found.take(written, DOTENV)
    found.take(env, ENVIRONMENT)
    given = {**(options or {}), **({} if config is None else {"config": str(config)})}
    found.take({PREFIX + name.upper(): value for name, value in given.items()}, OPTION)
    merged = MappingProxyType({**written, **env})
    path = _file(found.values.get("config"), folder)
    builtins = load_builtins()
    document = _document(path, builtins, report)
    report.check("configuration")
    values = _resolved(document.settings, merged, report)
    report.check("configuration")
    provenance = dict.fromkeys(PARSERS, DEFAULT) | dict.fromkeys(values, FILE) | found.origins
    settings = Settings(**{**values, **found.values})  # type: ignore[arg-type]  # PARSERS holds the types of the fields
    return Configuration(
        settings, MappingProxyType(provenance), document, tuple(report.warnings), path, merged, builtins
    )


class _Found:
    """Settings from variables; a later source wins."""

    def __init__(self, report: Report) -> None:
        self.values: dict[str, object] = {}
        self.origins: dict[str, str] = {}
        self._report = report

    def take(self, env: Mapping[str, object], origin: str) -> None:
        """Read the variables that are ours."""
        for name, rule in PARSERS.items():
            variable = PREFIX + name.upper()
            for alias in (a for a in rule.also if env.get(a) and variable not in env):
                self._set(name, alias, env[alias], origin)
            if variable in env:
                self._set(name, variable, env[variable], origin)
        known = [PREFIX + name.upper() for name in PARSERS]
        for variable in sorted(v for v in env if v.startswith(PREFIX) and v not in known):
            self._report.wrong(variable, f"is an unknown setting{nearest(variable, known)}")

    def _set(self, name: str, variable: str, value: object, origin: str) -> None:
        rule = PARSERS[name]
        try:
            self.values[name] = rule.parse(spoken(value))
            self.origins[name] = origin
        except (TypeError, ValueError):
            seen = "this value" if rule.secret else shown(value)
            self._report.wrong(variable, f"{seen} is not allowed; allowed: {rule.allowed}")


def _file(config: object, folder: Path) -> Path | None:
    if config is not None:
        return folder / str(config)
    path = folder / DEFAULT_FILE
    return path if path.is_file() else None


def _document(path: Path | None, builtins: Mapping[str, Builtin], report: Report) -> Document:
    if path is None:
        return EMPTY
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: the config file cannot be read ({error.strerror})") from None
    return read_document(raw, path.name, builtins, report)


def read_document(raw: bytes, source: str, builtins: Mapping[str, Builtin], report: Report) -> Document:
    """Return the file's content; problems go into *report*, only unreadable YAML raises ConfigError."""
    value = read_yaml(raw, source)
    report.file = source
    document = DOCUMENT.read({} if value is None else value, "", report) or EMPTY
    check_document(document, builtins, report)
    return document


def _resolved(values: Mapping[str, object], env: Mapping[str, str], report: Report) -> dict[str, object]:
    """Return the file's settings with ``env:NAME`` read; an unset variable leaves the default."""
    found: dict[str, object] = {}
    for name, value in values.items():
        if not isinstance(value, Credential):
            found[name] = value
            if PARSERS[name].secret and not name.endswith("_url"):
                report.warn(f"settings.{name}", "a secret stands in the file; better: env:NAME")
        elif not env.get(value.env or ""):
            report.warn(f"settings.{name}", f"the variable {value.env} is not set")
        else:
            try:
                found[name] = PARSERS[name].parse(env[value.env or ""])
            except ValueError:
                report.wrong(
                    f"settings.{name}", f"the value of {value.env} is not allowed; allowed: {PARSERS[name].allowed}"
                )
    return found
