"""What a model name of the demo provider makes happen.

    any other name            a friendly answer (`ok` and `chat` are meant for that)
    fail-STATUS               that status (300-599) with the error body a vendor would send
    fail-STATUS-retry-N       the same with ``Retry-After: N``
    hang                      no answer at all, until the client leaves
    slow, slow-MS             every token takes MS milliseconds (200)
    first-MS                  MS milliseconds before the first byte
    cut, cut-N                the connection is lost after N events or pieces (2); of one piece, in its middle
    empty                     200 without a body
    garbage                   200 with an HTML page
    error-event               a role, then an error object instead of output (not a stream: the error object under 200)
    leak                      a tool call as text, ``<function=NAME>{...}</function>``, when tools are offered
    echo                      the request's headers (without credentials) and body, as JSON in the content
    usage-every               usage on every chunk of a stream

Pure: names in, plans out. Waiting and sending are in ``app.py``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MAX_MS: Final = 600_000
MAX_COUNT: Final = 1_000_000


class Kind(StrEnum):
    """What is said, if anything."""

    ANSWER = "answer"
    FAIL = "fail"
    HANG = "hang"
    EMPTY = "empty"
    GARBAGE = "garbage"
    ERROR_EVENT = "error-event"
    LEAK = "leak"
    ECHO = "echo"


@dataclass(frozen=True, slots=True)
class Script:
    """One plan. Times in seconds; None = the app's own pace, or no such fault."""

    kind: Kind = Kind.ANSWER
    status: int = 200
    retry_after_s: int | None = None
    first_s: float = 0.0
    token_s: float | None = None
    cut_after: int | None = None
    usage_every: bool = False


_FAIL: Final = re.compile(r"fail-([345]\d\d)(?:-retry-(\d{1,7}))?")
_NUMBER: Final = re.compile(r"(slow|first|cut)(?:-(\d{1,7}))?")
_PLAIN: Final = {kind.value: Script(kind) for kind in Kind if kind not in {Kind.ANSWER, Kind.FAIL}}


def script_of(model: str) -> Script:
    """Return the plan that *model* names."""
    if match := _FAIL.fullmatch(model):
        return Script(Kind.FAIL, status=int(match[1]), retry_after_s=int(match[2]) if match[2] else None)
    if match := _NUMBER.fullmatch(model):
        return _numbered(match[1], match[2])
    if model == "usage-every":
        return Script(usage_every=True)
    return _PLAIN.get(model, Script())


def _numbered(word: str, digits: str | None) -> Script:
    if word == "cut":
        return Script(cut_after=min(int(digits or 2), MAX_COUNT))
    if word == "slow":
        return Script(token_s=min(int(digits or 200), MAX_MS) / 1000)
    return Script(first_s=min(int(digits or 0), MAX_MS) / 1000)


_ERRORS: Final[dict[int, tuple[str, str, str | None]]] = {
    400: ("Invalid request.", "invalid_request_error", None),
    401: ("Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
    402: ("Insufficient balance.", "insufficient_quota", "insufficient_quota"),
    403: ("You are not allowed to do this.", "permission_error", None),
    404: ("The model does not exist or you do not have access to it.", "invalid_request_error", "model_not_found"),
    413: ("Request too large.", "invalid_request_error", "request_too_large"),
    429: ("Rate limit reached.", "rate_limit_error", "rate_limit_exceeded"),
    503: ("The server is temporarily unavailable.", "server_error", None),
    529: ("Overloaded.", "overloaded_error", None),
}


def error_body(status: int) -> dict[str, object]:
    """Return an error body as an OpenAI-shaped vendor would send it with *status*."""
    fallback = "server_error" if status >= 500 else "invalid_request_error"
    message, kind, code = _ERRORS.get(status, (f"The demo provider was asked for status {status}.", fallback, None))
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
