"""Read an upstream's error body, whatever its shape, into the few facts the classifier and the hints look at.

It knows shapes (an object, an array around it, ``error`` as a string, FastAPI's ``detail``, HTML, nothing), not
meanings. It never raises, whatever the bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import msgspec

HEAD_BYTES: Final = 64 * 1024
"""Only so much of a body is looked at."""
MESSAGE_CHARS: Final = 8192
NAME_CHARS: Final = 200

_CODES: Final = ("code", "type", "status", "reason", "error_code", "status_code")
_MESSAGES: Final = ("message", "msg", "detail", "error", "error_description", "status_msg")
_STATUSES: Final = ("code", "status", "status_code", "http_status", "http_code", "error_code")
_NESTED: Final = ("innererror", "metadata", "base_resp")
_LISTS: Final = ("errors", "details", "detail")
_HTML: Final = re.compile(r"\s*(?:<!doctype html|<html|<head|<body|<\?xml)", re.IGNORECASE)

Object = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The facts of one body; *codes*, *message* and *finish* (the first finish reason) in lower case.

    *objects* are the places where a vendor may have put them. *status* is an HTTP status found in the body.
    """

    text: str = ""
    json: object | None = None
    is_html: bool = False
    objects: tuple[Object, ...] = ()
    codes: frozenset[str] = frozenset()
    status: int | None = None
    param: str | None = None
    message: str = ""
    finish: str = ""


def read_body(body: bytes) -> ErrorBody:
    """Return the facts of *body*, of which only the first 64 KiB are looked at."""
    text = body[:HEAD_BYTES].decode("utf-8", "replace").removeprefix("\ufeff")
    if _HTML.match(text):
        return ErrorBody(text=text, is_html=True)
    value = decoded(text)
    if value is None:
        return ErrorBody(text=text, message=text[:MESSAGE_CHARS].lower())
    objects = tuple(objects_in(value))
    return ErrorBody(
        text=text,
        json=value,
        objects=objects,
        codes=frozenset(_codes(objects)),
        status=next(_statuses(objects), None),
        param=next(_params(objects), None),
        message=" ".join(_messages(value, objects))[:MESSAGE_CHARS].lower(),
        finish=_text(_field(_field(value, "choices"), "finish_reason")),
    )


def decoded(text: str) -> object | None:
    """Return the JSON in *text*; None when there is none, or ``null``, or it is too deep to read."""
    value: object = None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        # NaN, lone surrogates and the like: JSON in the wild
        with suppress(ValueError, RecursionError):
            value = json.loads(text)
    return value


def objects_in(value: object) -> Iterator[Object]:
    """Yield the objects that may describe the error, the most specific first.

    Read shapes: ``{"error": {…}}`` (OpenAI, Anthropic, Google), the same in an array (Google), ``{"errors": […]}``,
    ``{"detail": […]}`` (FastAPI), ``{"response": {"error": …}}`` (Responses events), ``{"choices": [{"error": …}]}``
    (OpenRouter), ``{"base_resp": …}`` (MiniMax), and the bare object (Mistral, Cohere).
    """
    top = _first_object(value)
    if top is None:
        return
    for inner in (top.get("error"), _field(top.get("response"), "error"), _field(top.get("choices"), "error")):
        if inner is not None and (found := _first_object(inner)) is not None:
            yield found
            yield from _inner(found)
    yield from _inner(top)
    if "choices" not in top:
        yield top


def _inner(owner: Object) -> Iterator[Object]:
    for name in _NESTED:
        if name in owner and (found := _first_object(owner[name])) is not None:
            yield found
    for name in _LISTS:
        if name in owner:
            for item in _objects(owner[name]):
                yield item
                yield from _objects(item.get("violations"))  # Google QuotaFailure


def _objects(value: object) -> list[Object]:
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]


def _first_object(value: object) -> Object | None:
    if isinstance(value, dict):
        return value
    return next(iter(_objects(value)), None) if isinstance(value, list) else None


def _field(value: object, name: str) -> object | None:
    owner = None if value is None else _first_object(value)
    return None if owner is None else owner.get(name)


def _text(value: object) -> str:
    return value[:NAME_CHARS].lower() if isinstance(value, str) else ""


def _codes(objects: tuple[Object, ...]) -> Iterator[str]:
    for owner in objects:
        for name in _CODES:
            value = owner.get(name)
            if value is not None and isinstance(value, (str, int)) and not isinstance(value, bool):
                yield str(value)[:NAME_CHARS].lower()


def _statuses(objects: tuple[Object, ...]) -> Iterator[int]:
    for owner in objects:
        for name in _STATUSES:
            value = owner.get(name)
            if value is None:
                continue
            if isinstance(value, str) and len(value) == 3 and re.fullmatch(r"[45][0-9][0-9]", value):
                value = int(value)
            if isinstance(value, int) and 400 <= value <= 599:
                yield value


def _params(objects: tuple[Object, ...]) -> Iterator[str]:
    """Yield the request field an error points at: ``param``, FastAPI's ``loc``, Google's field violations."""
    for owner in objects:
        if isinstance(param := owner.get("param"), str) and param.strip():
            yield param.strip()[:NAME_CHARS]
        if isinstance(loc := owner.get("loc"), list) and (path := [str(part) for part in loc if part != "body"]):
            yield ".".join(path)[:NAME_CHARS]
        violation = _field(owner.get("fieldViolations"), "field")
        if isinstance(violation, str) and violation.strip():
            yield violation.strip()[:NAME_CHARS]


def _messages(value: object, objects: tuple[Object, ...]) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for owner in objects:
        yield from (text for name in _MESSAGES if isinstance(text := owner.get(name), str))
        if isinstance(raw := owner.get("raw"), str):  # OpenRouter quotes the provider behind it here
            yield raw
