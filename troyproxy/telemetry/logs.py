"""The log of a gateway that runs alone: JSON lines, or lines for people on a terminal.

An embedded gateway leaves logging to its host: only the command line calls `setup`. Prompts, completions and keys are
never meant to be logged; here is what holds even when somebody forgets that:

- structured facts (``extra={"facts": {...}}``) under a name that may hold content are dropped, long ones are cut;
- what is shaped like a credential is masked, and control characters are escaped, so no entry can forge another;
- an exception's message may quote what it choked on, so only our own errors and those of the system show theirs;
  the others show type and place;
- other libraries speak from level warning on, first line only (at lower levels some print headers, URLs, parameters).
"""

from __future__ import annotations

import json
import logging
import math
import traceback
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final, TextIO

from troyproxy.errors import TroyError
from troyproxy.telemetry.clean import Mask, mask_keys, masked, one_line, writable

OURS: Final = "troyproxy"
SERVER: Final = "uvicorn"
SERVER_ACCESS: Final = "uvicorn.access"
"""Never shown: it prints raw paths and queries, and the gateway has an access line of its own."""
EXPORTERS: Final = "opentelemetry.exporter"
"""Never shown: it complains of a receiver that is away at each try; `spans` says it once."""
MAX_MESSAGE: Final = 2000
MAX_FACT: Final = 500
MAX_FRAMES: Final = 12
PRIVATE: Final = frozenset(
    {
        "api_key",
        "arguments",
        "authorization",
        "body",
        "choices",
        "completion",
        "content",
        "cookie",
        "credential",
        "data",
        "headers",
        "input",
        "key",
        "messages",
        "output",
        "password",
        "payload",
        "prompt",
        "query",
        "secret",
        "system",
        "text",
        "token",
        "tools",
        "url",
    }
)
"""Names of facts that are not written, whatever their value."""


def setup(
    level_form: str, stream: TextIO, *, tty: bool, mask: Mask = mask_keys, worker: str | None = None
) -> logging.Handler:
    """Log to *stream* as ``TROY_LOG`` asks (``info``, ``debug,json``, …) and return the handler.

    Without a form, *tty* decides: lines for people on a terminal, else JSON. The handler replaces that of an earlier
    call; those of others stay. *worker*: which of several processes says it. Raises ValueError for a level that does
    not exist.
    """
    level, _, form = level_form.partition(",")
    people = form == "human" or (not form and tty)
    handler = QuietHandler(stream)
    handler.setFormatter(HumanFormatter(mask, worker) if people else JsonFormatter(mask, worker))
    handler.addFilter(audible)
    root = logging.getLogger()
    for old in [old for old in root.handlers if isinstance(old, QuietHandler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    ours = logging.getLogger(OURS)
    ours.setLevel(level.upper())
    logging.getLogger(SERVER).setLevel(max(ours.level, logging.INFO))
    return handler


def audible(record: logging.LogRecord) -> bool:
    """Whether *record* is shown: ours, the server's but for its access lines, and warnings of the rest."""
    if _of(record, SERVER_ACCESS) or _of(record, EXPORTERS):
        return False
    return _of(record, OURS) or _of(record, SERVER) or record.levelno >= logging.WARNING


def _of(record: logging.LogRecord, name: str) -> bool:
    return record.name == name or record.name.startswith(name + ".")


class QuietHandler(logging.StreamHandler[TextIO]):
    """A log that cannot be written must not hurt a request, nor print the raw record elsewhere."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, in characters that the stream can take."""
        return writable(super().format(record), self.stream)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 -- logging's name
        """Drop the record."""


class JsonFormatter(logging.Formatter):
    """One JSON object a line, ASCII: ``at``, ``level``, ``logger``, maybe ``worker``, ``message``, then the facts."""

    def __init__(self, mask: Mask = mask_keys, worker: str | None = None) -> None:
        super().__init__()
        self._mask, self._worker = mask, {} if worker is None else {"worker": worker}

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "at": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            **self._worker,
            "message": _message(record, self._mask),
        }
        return json.dumps({**entry, **{k: v for k, v in _facts(record, self._mask) if k not in entry}})


class HumanFormatter(logging.Formatter):
    """``time LEVEL [worker] logger message name=value …``"""

    def __init__(self, mask: Mask = mask_keys, worker: str | None = None) -> None:
        super().__init__()
        self._mask, self._worker = mask, [] if worker is None else [worker]

    def format(self, record: logging.LogRecord) -> str:
        logger = record.name.removeprefix(OURS + ".")
        facts = [f"{name}={_plain(value)}" for name, value in _facts(record, self._mask)]
        return " ".join(
            [
                _time(record)[11:23],
                f"{record.levelname:<7}",
                *self._worker,
                logger,
                one_line(_message(record, self._mask)),
                *facts,
            ]
        )


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _message(record: logging.LogRecord, mask: Mask) -> str:
    text = record.getMessage()
    if not _of(record, OURS):
        text = text.partition("\n")[0]
    return masked(text, limit=MAX_MESSAGE, mask=mask)


def _facts(record: logging.LogRecord, mask: Mask) -> Iterator[tuple[str, object]]:
    given = getattr(record, "facts", None)
    for name, value in given.items() if isinstance(given, Mapping) else ():
        if str(name).lower() not in PRIVATE and (shown := _fact(value, mask)) is not None:
            yield str(name), shown
    if record.exc_info and (error := record.exc_info[1]) is not None:
        yield "error", masked(" < ".join(_chain(error)), limit=MAX_MESSAGE, mask=mask)
        yield "where", " < ".join(_places(error))


def _fact(value: object, mask: Mask) -> object:
    """Return what is written for *value*: numbers, flags and texts; None for everything else."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bool | int):
        return value
    return masked(str(value), limit=MAX_FACT, mask=mask) if isinstance(value, str) else None


def _plain(value: object) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    text = one_line(value)
    return json.dumps(text, ensure_ascii=False) if not text or set(text) & set(' "=') else text


def _chain(error: BaseException) -> Iterator[str]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        kind = type(link).__qualname__
        yield f"{kind}: {link}" if isinstance(link, TroyError | OSError) else kind
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _places(error: BaseException) -> list[str]:
    """Return where it was raised, the innermost place first."""
    frames = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), lookup_lines=False)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames)][:MAX_FRAMES]
