"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from troyproxy.errors import ConfigError


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Give a file beside *path* to write; it takes the place of *path* when the block ends well, readable by its owner.

    Raises ConfigError when it cannot be written.
    """
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            beside = Path(file.name)
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                beside.replace(path)
            finally:
                with suppress(FileNotFoundError):  # it is in its place
                    beside.unlink()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror})") from None
