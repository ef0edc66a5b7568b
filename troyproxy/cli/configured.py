"""The configuration as the commands read it: the environment over ``.env`` in the working folder over the file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from troyproxy.settings.load import Configuration, load


def configured(config: Path | None, options: Mapping[str, object] | None = None) -> Configuration:
    """Return the configuration. *options* are settings given on the command line. Raises ConfigError."""
    return load(os.environ, config=config, dotenv=Path(".env"), options=options)
