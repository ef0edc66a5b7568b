"""Typed reading of OpenAI chat bodies and stream events, as decoded JSON.

Every function takes any JSON value and never raises on its shape: upstreams send null, strings and lists where the
documentation promises objects. Nothing here decides what to do about what it reads; commit, failover and accounting
are decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from troyproxy.wire import sse
from troyproxy.wire.deltas import without_null_usage
from troyproxy.wire.json import MalformedJSON, decode, encode
from troyproxy.wire.splice import edit

_OUTPUT_FIELDS: Final = (
    "content",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "refusal",
    "audio",
    "images",
    "tool_calls",
    "function_call",
)
FAILED_CALLS: Final = ("malformed_function_call", "unexpected_tool_call", "too_many_tool_calls")  # Gemini
_MAX_MESSAGE: Final = 2000  # characters of an upstream's error message that are kept
_ERROR_STATUS: Final = range(400, 600)

Choice = Mapping[str, object]


def choices_in(value: object) -> list[tuple[int, Choice]]:
    """Return index and choice of all choices in a body or an event; a missing or senseless index is the position."""
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list):
        return []
    found: list[tuple[int, Choice]] = []
    for position, choice in enumerate(choices):
        if isinstance(choice, dict):
            index = choice.get("index")
            found.append((index if type(index) is int and index >= 0 else position, choice))
    return found


def has_output(choice: Choice) -> bool:
    """Whether *choice* brings output: a non-empty delta of any kind, or a message that is not empty."""
    delta = _delta(choice)
    for field in _OUTPUT_FIELDS:
        if delta.get(field):
            return True
    return bool(choice.get("text"))


def delta_texts(event: object) -> list[tuple[int, str]]:
    """Return index and text of every non-empty content delta; of lists of parts, their texts; legacy ``text`` too."""
    texts = ((index, _text(_delta(choice).get("content") or choice.get("text"))) for index, choice in choices_in(event))
    return [(index, text) for index, text in texts if text]


def failed_call(value: object) -> str | None:
    """Return why a model's tool call came to nothing, where *value* says so and brings nothing else.

    Gemini ends such a candidate with an enum in place of a finish reason, alone or inside a longer text.
    """
    found = None
    for _, choice in choices_in(value):
        if has_output(choice):
            return None
        found = found or _failure(choice.get("finish_reason"))
    return found


def error_of(value: object) -> object | None:
    """Return the ``error`` of a body or event, when it is one: an object or a non-empty string, and no usable choices.

    ``"error": null`` on healthy chunks is no error, and a choice with output or an honest finish reason outranks one.
    One vendor wraps its error bodies in a list; the first item is read.
    """
    if isinstance(value, list) and value:
        value = value[0]
    error = value.get("error") if isinstance(value, dict) else None
    if error is None or not (isinstance(error, dict) or (isinstance(error, str) and error)):
        return None
    return None if any(_is_usable(choice) for _, choice in choices_in(value)) else error


def error_message(error: object) -> str:
    """Return the text of an error value, at most 2000 characters; an object without one is shown as JSON."""
    if isinstance(error, dict):
        texts = (error.get(key) for key in ("message", "msg", "detail"))
        error = next((text for text in texts if isinstance(text, str) and text), error)
    return (error if isinstance(error, str) else _shown(error))[:_MAX_MESSAGE]


def error_code(error: object) -> int | None:
    """Return the HTTP status an error value carries in ``code`` or ``status``, as number or text, if 400 to 599."""
    if not isinstance(error, dict):
        return None
    found = (_status(error.get(key)) for key in ("code", "status", "status_code"))
    return next((status for status in found if status is not None), None)


def is_completion(value: object) -> bool:
    """Whether *value* is a whole chat or text completion; empty content is fine, a missing message is not."""
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list) or not choices:
        return False
    for choice in choices:  # noqa: SIM110 -- a generator costs more than all it runs over
        if not _is_answer(choice):
            return False
    return True


def is_plain(value: object) -> bool:
    """Whether *value* is what most answers are: one choice with a text, and no error. Then nothing is wrong with it.

    It follows that `error_of` and `failed_call` find nothing, and that it `is_completion`.
    """
    if not isinstance(value, dict) or "error" in value:
        return False
    choices = value.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        return False
    message = choices[0].get("message")
    return isinstance(message, dict) and bool(message.get("content")) and not choices[0].get("delta")


def is_embedding(value: object) -> bool:
    """Whether *value* is a list of embeddings; vendors that leave out ``object`` are known by the vectors."""
    data = value.get("data") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        return False
    return value.get("object") == "list" or (bool(data) and all("embedding" in item for item in data))


def has_tools(payload: object) -> bool:
    """Whether a request offers tools, in the new or the legacy spelling."""
    if not isinstance(payload, dict):
        return False
    return any(isinstance(payload.get(key), list) and payload[key] for key in ("tools", "functions"))


def strip_usage(event: dict[str, object]) -> dict[str, object] | None:
    """Return *event* as a client sees it that did not ask for usage; None when nothing is left to show.

    Decided by content, not by position: a usage event without choices goes, on others only the top-level ``usage``
    member does, so that finish reasons survive. Errors are never dropped.
    """
    if "usage" not in event:
        return event
    if not event.get("choices") and error_of(event) is None:
        return None
    return {key: value for key, value in event.items() if key != "usage"}


def drop_usage(frame: sse.Frame) -> sse.Frame | None:
    """Do the same to a frame, changing no other byte; what does not parse passes as it is."""
    if frame.data is None or b'"usage"' not in frame.data:
        return frame
    if (less := without_null_usage(frame.data)) is not None:
        return sse.with_data(frame, less)
    try:
        event = decode(frame.data)
    except MalformedJSON:
        return frame
    if not isinstance(event, dict) or "usage" not in event:
        return frame
    return None if strip_usage(event) is None else sse.with_data(frame, edit(frame.data, {}, ("usage",)))


def error_event(  # noqa: PLR0913 - the members of one envelope, keywords only
    *,
    message: str,
    type: str,  # noqa: A002 - the member's name in the envelope
    code: str,
    request_id: str,
    attempts: int,
    retryable: bool,
    param: str | None = None,
) -> bytes:
    """Return the one event that ends a stream which failed after its first byte; no ``[DONE]`` follows it."""
    troy = {"request_id": request_id, "partial": True, "retryable": retryable, "attempts": attempts}
    error = {"message": message, "type": type, "code": code, "param": param, "troy": troy}
    return sse.encode_data(encode({"error": error}))


def _delta(choice: Choice) -> Mapping[str, object]:
    """Return the delta, or the whole message that some vendors stream in its place."""
    found = choice.get("delta") or choice.get("message")
    return found if isinstance(found, dict) else {}


def _is_usable(choice: Choice) -> bool:
    return has_output(choice) or choice.get("finish_reason") not in (None, "", "error")


def _failure(reason: object) -> str | None:
    if not reason:
        return None
    end = str(reason).lower()
    for failure in FAILED_CALLS:
        if failure in end:
            return failure
    return None


def _is_answer(choice: object) -> bool:
    return isinstance(choice, dict) and (isinstance(choice.get("message"), dict) or isinstance(choice.get("text"), str))


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _shown(error: object) -> str:
    try:
        return encode(error).decode("utf-8")
    except MalformedJSON:
        return "unreadable error"


def _status(value: object) -> int | None:
    if isinstance(value, str) and len(value.strip()) == 3 and value.strip().isdecimal():
        value = int(value)
    return value if type(value) is int and value in _ERROR_STATUS else None
