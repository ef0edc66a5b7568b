"""Turns a leaked text into real tool calls, or refuses. A call is an action: every check must hold, and half a call
is never made whole. What is refused here is suppressed or fails over; that is decided elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from troyproxy.leaks.asked import Asked
from troyproxy.leaks.call_chunks import Call, chunks_of, message_of
from troyproxy.leaks.call_ids import call_id
from troyproxy.leaks.calls import Reading, TextCall, read_calls
from troyproxy.leaks.coercion import coerced
from troyproxy.leaks.options import Options, Validate
from troyproxy.leaks.schema_check import meets
from troyproxy.leaks.schema_types import Schema

__all__ = ["Call", "Repair", "chunks_of", "message_of", "repaired", "suppressed_reason"]

_CUT: Final = "length"
_REFUSED: Final = "content_filter"
_NO_SCHEMA: Final[Mapping[str, object]] = {}


@dataclass(frozen=True, slots=True)
class Repair:
    """At least one call, and the finish reason that goes with them."""

    calls: tuple[Call, ...]
    finish_reason: str


def repaired(  # noqa: PLR0913 -- the text, the request, the options, and where the call stands
    text: str,
    asked: Asked,
    options: Options,
    *,
    finish_reason: str | None,
    response_id: str,
    choice: int = 0,
    whole: bool = False,
) -> Repair | None:
    """Return the calls that *text* is, or None: then it must be suppressed.

    *text* begins at the leak. *finish_reason* is the upstream's; a text cut by ``length`` gives its complete calls
    and keeps that reason. *response_id* makes the ids. *whole*: nothing but calls may stand in *text*. Never raises.
    """
    if asked.only_special or finish_reason == _REFUSED:
        return None
    reading = read_calls(text, asked.names, extra=options.extra_openers)
    found = _complete(reading, cut_at=len(text) if finish_reason == _CUT else None)
    if not found or (whole and reading.end != len(text)) or _echoed(text, reading, asked, options):
        return None
    sent, taken = [_checked(call, asked, options) for call in found], asked.inputs.call_ids()
    calls = tuple(
        Call(call_id(response_id, choice, index, taken), call[0], call[1]) for index, call in enumerate(sent) if call
    )
    if len(calls) < len(sent):
        return None
    kept = calls if asked.parallel and not asked.legacy else calls[:1]
    return Repair(kept, _reason(asked, cut=len(found) < len(reading.calls) or reading.dangling))


def suppressed_reason(finish_reason: str | None, *, structured: bool) -> str | None:
    """Return the finish reason of a choice whose leak was taken out.

    It is the upstream's, but ``tool_calls`` without a structured call left would make a client wait for one.
    """
    announced = finish_reason in {"tool_calls", "function_call"}
    return "stop" if announced and not structured else finish_reason


def _complete(reading: Reading, *, cut_at: int | None) -> tuple[TextCall, ...]:
    """The calls that may be sent. Where the text was cut, the last one must have been closed.

    A raw value may quote its closers; where other text follows them and is cut, the value may not have ended there.
    """
    if cut_at is None:
        return reading.calls if reading.complete else ()
    if reading.dangling or not reading.complete:
        return reading.calls if reading.dangling else ()
    sure = reading.closed and (reading.calls[-1].typed or reading.end == cut_at)
    return reading.calls if sure else reading.calls[:-1]


def _reason(asked: Asked, *, cut: bool) -> str:
    if cut:
        return _CUT
    return "function_call" if asked.legacy else "tool_calls"


def _echoed(text: str, reading: Reading, asked: Asked, options: Options) -> bool:
    return options.echo_check and asked.quoted(text[: reading.end])


def _checked(call: TextCall, asked: Asked, options: Options) -> tuple[str, str] | None:
    """Return the name and the arguments of a call that may be sent, or None."""
    if call.name not in asked.names or call.name in asked.barred | options.repair_exclude or call.arguments is None:
        return None
    if asked.forced is not None and call.name != asked.forced:
        return None
    schema = asked.schemas.get(call.name, _NO_SCHEMA)
    arguments = coerced(call.arguments, schema, typed=call.typed) if options.coerce else call.arguments
    text = _serialised(arguments)
    return (call.name, text) if text is not None and _valid(arguments, schema, options.validate) else None


def _valid(arguments: Mapping[str, object], schema: Mapping[str, object], validate: Validate) -> bool:
    if validate is Validate.FULL:
        return meets(arguments, schema)
    return validate is Validate.OFF or Schema.of(schema).at(schema).required() <= arguments.keys()


def _serialised(arguments: Mapping[str, object]) -> str | None:
    """The arguments as JSON; half a surrogate pair cannot be sent."""
    text = json.dumps(arguments, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text
