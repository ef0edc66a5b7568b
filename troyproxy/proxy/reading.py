"""How the layers come by what they need of a request: the two ways to read a body that is here.

Native   a JSON object, decoded; every layer looks at it.
Opaque   JSON or a multipart form that is passed through: only the model's name is read, and `Call.payload` holds
         nothing else, so that no layer finds anything to act on.

Nothing is read from the network here (`intake`), and nothing is resolved or changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from troyproxy.errors import InvalidRequest, NotFound, UnsupportedMediaType
from troyproxy.proxy.call import Call
from troyproxy.proxy.intake import JSON, decode_object, decode_single, require_json
from troyproxy.wire.headers import first, media_type
from troyproxy.wire.multipart import MalformedMultipart, boundary_of, scan

FORM: Final = "multipart/form-data"
DEFAULT_MODELS: Final = {"/v1/moderations": "omni-moderation-latest"}
"""Where OpenAI makes the model optional, what it then takes; it is resolved like any other name."""
DECIDING: Final = frozenset({"model", "stream"})
"""Members by which a request is let in and its answer is read."""
ORDINARY: Final = DECIDING | {
    "messages", "prompt", "input", "tools", "tool_choice", "parallel_tool_calls", "response_format", "temperature",
    "top_p", "max_tokens", "max_completion_tokens", "stop", "seed", "n", "user", "stream_options", "reasoning_effort",
}  # fmt: skip
"""Members that most requests have: plainly spelled, and so not looked at twice."""
MAX_SEGMENTS: Final = 8
_SEGMENT: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._~-]{1,100}")
"""Of a path that goes on to an upstream: nothing that a URL would read as more than a name."""


@dataclass(frozen=True, slots=True)
class Reading:
    """*expect* refuses by the head alone, before the body is read; *take* fills the call from its body."""

    expect: Callable[[Call], None]
    take: Callable[[Call], None]


def _expect_json(call: Call) -> None:
    if call.fields.get(b"content-type") != JSON:
        require_json(call.headers)


def _take_json(call: Call) -> None:
    value, single = decode_single(call.body)
    call.take(_plainly_named(value))
    call.single = value if single else None


def _expect_opaque(call: Call) -> None:
    segments = call.upstream_path.removeprefix("/").split("/")
    if len(segments) > MAX_SEGMENTS or not all(_SEGMENT.fullmatch(segment) for segment in segments):
        raise NotFound(f"there is nothing at {f'/v1{call.upstream_path}'[:200]!r}")
    if media_type(call.headers) == FORM:
        return
    try:
        require_json(call.headers)
    except UnsupportedMediaType as exc:
        raise UnsupportedMediaType(f"{exc} or {FORM}") from None


def _take_opaque(call: Call) -> None:
    call.take({"model": _model_in_form(call) if media_type(call.headers) == FORM else _model_in_json(call)})


def _model_in_form(call: Call) -> str:
    try:
        call.form = scan(call.body, boundary_of(first(call.headers, b"content-type") or b""))
        model = call.form.text("model")
    except MalformedMultipart as exc:
        raise InvalidRequest(f"the multipart body cannot be read: {exc}") from exc
    if model is None or not model.strip():
        raise _missing("form field", "a file is none")
    return model


def _model_in_json(call: Call) -> object:
    model = _plainly_named(decode_object(call.body)).get("model")
    if model is None:
        model = DEFAULT_MODELS.get(call.route)
    if model is None:
        raise _missing("member", "a string")
    return model


def _plainly_named(value: dict[str, object]) -> dict[str, object]:
    """Return *value*. Raises InvalidRequest for a second spelling of what is decided by.

    Decoders that ignore case (Go's, some of .NET's) would let ``Model`` win over the ``model`` that was checked here.
    """
    if ORDINARY.issuperset(value):
        return value
    for name in value:
        meant = name.casefold()
        if meant in DECIDING and name != meant:
            raise InvalidRequest(f"{name}: write it {meant}; some upstreams would take both for one", param=meant)
    return value


def _missing(where: str, more: str) -> InvalidRequest:
    names = "provider/model, a combo, an alias, default or auto"
    return InvalidRequest(f"model: the {where} is required ({more}); allowed: {names}", param="model")


NATIVE: Final = Reading(_expect_json, _take_json)
OPAQUE: Final = Reading(_expect_opaque, _take_opaque)
