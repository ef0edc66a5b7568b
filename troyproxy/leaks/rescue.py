"""Calls out of the failures of providers that refuse a leaked call instead of sending it.

Groq answers 400 ``tool_use_failed`` and quotes the text as ``failed_generation``; Gemini ends an empty candidate with
``MALFORMED_FUNCTION_CALL`` and quotes code in ``finishMessage``. Both must be nothing but calls, and pass every check
of a repair; prose is not delivered from here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from troyproxy.leaks.asked import Asked
from troyproxy.leaks.options import Options
from troyproxy.leaks.repair import Repair, repaired

_GEMINI_LEAD: Final = re.compile(r"\s*(?:malformed|unexpected)[ _](?:function|tool)[ _]call:?\s*", re.IGNORECASE)


def rescued_groq(body: object, asked: Asked, options: Options, *, response_id: str) -> Repair | None:
    """Return the calls in Groq's error, or None. *body* is the decoded answer or the in-stream event."""
    text = failed_generation(body)
    return _whole(text, asked, options, response_id) if text is not None else None


def rescued_gemini(finish_message: str, asked: Asked, options: Options, *, response_id: str) -> Repair | None:
    """Return the calls in Gemini's ``finishMessage`` ("Malformed function call: " + code), or None."""
    lead = _GEMINI_LEAD.match(finish_message)
    return _whole(finish_message[lead.end() :] if lead else finish_message, asked, options, response_id)


def failed_generation(body: object) -> str | None:
    """Return what the model wrote, as Groq's error quotes it, or None."""
    error = body.get("error") if isinstance(body, Mapping) else None
    text = error.get("failed_generation") if isinstance(error, Mapping) else None
    return text if isinstance(text, str) else None


def _whole(text: str, asked: Asked, options: Options, response_id: str) -> Repair | None:
    return repaired(text, asked, options, finish_reason=None, response_id=response_id, whole=True)
