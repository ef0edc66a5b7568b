"""A config file as a policy to be simulated: what it says, whatever stands in the environment.

No ``TROY_`` variable is read, so that two files differ by what they say. Keys of providers are: an account exists as it
does for ``serve``. But nobody is called, so a credential that is missing stands in for itself: an account whose
variable is not set exists all the same, and a built-in provider without a key has one account.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from troyproxy.errors import ConfigError
from troyproxy.settings.accounts import from_environment, usable
from troyproxy.settings.document import Credential
from troyproxy.settings.load import PREFIX, Configuration, load

STAND_IN: Final = "simulated-credential-of-"


def load_policy(path: Path, env: Mapping[str, str]) -> Configuration:
    """Return the configuration in the file *path*. Raises ConfigError that names it."""
    foreign = {name: value for name, value in env.items() if not name.startswith(PREFIX) and name != "AI_PROVIDER"}
    try:
        configuration = load(foreign, config=path)
    except ConfigError as error:
        text = str(error)
        raise ConfigError(text if str(path) in text else f"{path}: {text}") from None
    missing = {name: STAND_IN + name for name in _wanted(configuration) if not usable(foreign.get(name))}
    return replace(configuration, env=MappingProxyType({**foreign, **missing}))


def _wanted(configuration: Configuration) -> Iterator[str]:
    """Yield the variables that hold the keys of the file's providers and clients."""
    document = configuration.document
    for name, entry in document.providers.items():
        builtin = configuration.builtins.get(name)
        if entry.accounts:
            yield from (variable for account in entry.accounts for variable in _named(account.api_key))
        elif builtin is not None and not from_environment(name, builtin.key_env, configuration.env):
            yield from builtin.key_env[:1]
    yield from (variable for key in document.keys for variable in _named(key.key))


def _named(credential: Credential | None) -> tuple[str, ...]:
    return () if credential is None or credential.env is None else (credential.env,)
