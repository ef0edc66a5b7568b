"""Everything this project knows about provider errors: status, headers, body and transport fault → one class.

The order of the rules, and why it is this one:

1. Our own side first (a client that left, a full pool): it says nothing about the upstream, whatever else is there.
2. A status beats a fault: a 429 whose body was cut is a 429. In an error object under a 200 its code is the status.
3. What the **request** causes (leaked tool call, content filter, context) before what the account causes: such messages
   talk of tokens and limits, and would pass for rate limits.
4. Statuses that decide alone (3xx, 404, 405, 410, 413, 422): their wording is not read for billing or rates.
5. **Billing before rate**: vendors send both as 429, and money does not come back in two seconds.
6. Structured data before phrases: a code is meant, a phrase may be quoted.
7. "Request not allowed" and model names before credentials: 401 and 403 carry those, too.

An error object under a 200 that none of this explains is transient; any other 4xx is the client's.

Phrases are looked for in the error's message only, never in HTML. What a class entails is in ``classes.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from troyproxy.resilience.bodies import ErrorBody, read_body
from troyproxy.resilience.classes import BILLING_S, DENIED_S, QUOTA_PHRASE_S, RULES, ErrorClass, NextStep
from troyproxy.resilience.faults import Fault
from troyproxy.resilience.hints import retry_hint
from troyproxy.resilience.verdict import Failure, Verdict

__all__ = ["Failure", "Verdict", "classify"]

_LEAK_CODES: Final = frozenset({"tool_use_failed", "malformed_function_call", "unexpected_tool_call"})  # Groq; Gemini
_FILTER_CODES: Final = frozenset(
    {
        *("content_filter", "content_policy_violation", "responsibleaipolicyviolation"),  # OpenAI, Azure
        *("data_inspection_failed", "datainspectionfailed"),  # Alibaba
        "1301",  # z.ai
    }
)
_FILTER_PHRASES: Final = ("input was flagged",)  # OpenRouter 403
_CONTEXT_CODES: Final = frozenset(
    {
        *("context_length_exceeded", "context_window_exceeded"),  # OpenAI and most
        "exceed_context_size_error",  # llama.cpp
        "1261",  # z.ai
    }
)
_CONTEXT_PHRASES: Final = (
    "maximum context length",  # OpenAI, vLLM, DeepSeek, Mistral, OpenRouter
    "context_length_exceeded",
    "context length exceeded",
    "model's context length",  # vLLM
    "context window",  # Anthropic, MiniMax, OpenAI Responses
    "available context size",  # llama.cpp
    "prompt is too long",  # Anthropic
    "prompt too long",  # Ollama
    "input is too long",  # Bedrock
    "input length exceeds",  # Ollama
    "input token count",  # Google: "… exceeds the maximum number of tokens allowed"
    "maximum prompt length",  # xAI
    "prompt exceeds max length",  # z.ai
    "reduce the length of the messages",  # Groq, OpenAI
    "too many tokens",  # Cohere
    "tokens + `max_new_tokens` must be",  # text-generation-inference
)
_BILLING_CODES: Final = frozenset(
    {
        *("insufficient_quota", "billing_hard_limit_reached", "billing_not_active"),  # OpenAI
        "billing_error",  # Anthropic
        *(
            "insufficient_credits",
            "insufficient_balance",
            "out_of_credits",
            "payment_required",
        ),  # OpenRouter and others
        "insufficient_user_quota",  # one-api relays
        "arrearage",  # Alibaba
        "1113",  # z.ai: "Insufficient balance or no resource package"
        *("usage_limit_reached", "1308", "1310"),  # OpenAI plans; z.ai five-hour and weekly limits
        "1008",  # MiniMax
    }
)
_QUOTA_PHRASES: Final = (
    "insufficient balance",  # DeepSeek, z.ai, Moonshot
    "insufficient credits",  # OpenRouter
    "quota exceeded",  # Google, Cerebras
    "out of budget",
    "exceeded your current quota",  # OpenAI, Google
    "credit balance is too low",  # Anthropic, as a 400
    "payment required",
)
_OVERLOAD_CODES: Final = frozenset({"overloaded_error", "overloaded", "engine_overloaded_error", "engine_overloaded"})
_RATE_CODES: Final = frozenset({"rate_limit_exceeded", "rate_limit_error", "too_many_requests", "1302", "1303"})  # z.ai
_RATE_PHRASES: Final = ("rate limit", "rate-limit", "too many requests")
_KEY_CODES: Final = frozenset({"api_key_invalid", "invalid_api_key"})  # Google 400; OpenAI
_KEY_PHRASES: Final = ("api key not valid", "api key expired")  # Google, as a 400
_REGION_PHRASES: Final = ("user location is not supported",)  # Google, as a 400
_DENIED_CODES: Final = frozenset(
    {
        "permission_error",  # Anthropic
        "permission_denied",  # Google
        "unsupported_country_region_territory",  # OpenAI
    }
)
_MODEL_CODES: Final = frozenset(
    {
        *("model_not_found", "model_not_available", "modelerror", "invalid_model", "model_not_supported"),
        *("model_decommissioned", "1211", "1220"),  # Groq; z.ai
    }
)
_MODEL_PHRASES: Final = re.compile(
    r"\b(?:unknown|invalid|unsupported|no such|nonexistent|access to (?:the )?) ?models?\b"
    r"|\bmodels?\b(?:[^.]|\.(?!\s)){0,120}?\b(?:not found|not exist|does ?n[o']t exist|not (?:a )?valid|"
    r"not (?:supported|available)|does not support|unavailable|retired|deprecated|decommissioned|no longer)\b"
)
_PARAMETER_CODES: Final = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter"})  # OpenAI
_PARAMETER_PHRASES: Final = re.compile(
    r"unsupported|not support|unrecognized|unknown (?:parameter|name|field)|extra inputs|not permitted|not allowed"
)
# What an error object under a 200 means when it has a type but no number.
_STATUS_OF: Final[Mapping[str, int]] = MappingProxyType(
    {"authentication_error": 401, "permission_error": 403, "rate_limit_error": 429}  # Anthropic
    | {"not_found_error": 404, "overloaded_error": 529, "api_error": 500}
    | {"unauthenticated": 401, "resource_exhausted": 429, "unavailable": 503, "deadline_exceeded": 504}  # Google
)
_TIMEOUTS: Final = frozenset({Fault.TIMEOUT_CONNECT, Fault.TIMEOUT_FIRST_BYTE, Fault.TIMEOUT_IDLE, Fault.TIMEOUT_TOTAL})


@dataclass(frozen=True, slots=True)
class _Case:
    """A failure with its body read. *status* is the answer's, or that of the error under a 200, where 0 is none."""

    failure: Failure
    status: int
    body: ErrorBody

    def has_code(self, codes: frozenset[str]) -> bool:
        return not codes.isdisjoint(self.body.codes)

    def says(self, *phrases: str) -> bool:
        message = self.body.message
        for phrase in phrases:  # noqa: SIM110 -- a generator costs more than all it runs over
            if phrase in message:
                return True
        return False

    def named_text(self) -> str:
        """Return the message with the model's own name written as "model"."""
        if not self.failure.model:
            return self.body.message
        name = re.escape(self.failure.model.lower())
        return re.sub(rf"(?<![a-z0-9]){name}(?![a-z0-9])", "model", self.body.message)

    def names_model(self) -> bool:
        if self.has_code(_MODEL_CODES) or self.body.param == "model":
            return True
        return _MODEL_PHRASES.search(self.named_text()) is not None


_Found = tuple[ErrorClass, float | None]
"""A class, and its cooldown in seconds where it is not the table's."""


def classify(failure: Failure, *, now: float, cap_s: float = 1800.0, retry_timeouts: bool = True) -> Verdict:
    """Return what *failure* is and what follows. *now* is unix seconds, *cap_s* caps a retry hint. Never raises.

    A timeout after the body was sent goes to the next member, since the upstream may be at work on it and bill it; with
    *retry_timeouts* False it ends the walk.
    """
    body = read_body(failure.body)
    error_class, cooldown_s = _class_of(failure, body)
    hint_s = None
    if RULES[error_class].cools:
        buckets = error_class in {ErrorClass.RATE, ErrorClass.QUOTA}
        hint_s = retry_hint(failure.headers, body.json, body.text, now=now, cap_s=cap_s, buckets=buckets)
    verdict = Verdict.of(error_class, _reason(failure, error_class), hint_s=hint_s)
    step = verdict.step
    if error_class is ErrorClass.TRANSIENT and failure.fault in _TIMEOUTS and failure.body_sent:
        step = NextStep.NEXT_MEMBER if retry_timeouts else NextStep.STOP
    return replace(verdict, step=step, cooldown_s=cooldown_s or verdict.cooldown_s, parameter=body.param)


def _class_of(failure: Failure, body: ErrorBody) -> _Found:
    if failure.fault is Fault.CANCELLED:
        return ErrorClass.CANCELLED, None
    if failure.fault is Fault.SATURATED:
        return ErrorClass.SATURATED, None
    if failure.fault is Fault.LEAK:
        return ErrorClass.LEAK, None
    status = failure.status or 0
    if status < 300:
        # Under a 200 only an error object is evidence; the beginnings of an answer may talk of anything.
        if body.json is None or not (failure.in_band or failure.fault in {None, Fault.NOT_A_COMPLETION}):
            return ErrorClass.TRANSIENT, None
        status = body.status or next((_STATUS_OF[code] for code in sorted(body.codes & _STATUS_OF.keys())), 0)
    case = _Case(failure, status, body)
    found = next((found for rule in _ORDER if (found := rule(case))), None)
    return found or (ErrorClass.REQUEST, None)


def _reason(failure: Failure, error_class: ErrorClass) -> str:
    said = str(failure.status) if failure.status else "no answer"
    if failure.fault and (failure.status or 0) < 300:
        said = failure.fault.value.replace("_", " ")
    return f"{said}: {error_class}"


def _caused_by_request(case: _Case) -> _Found | None:
    if case.has_code(_LEAK_CODES) or any(code in case.body.finish for code in _LEAK_CODES):
        return ErrorClass.LEAK, None
    if case.has_code(_FILTER_CODES) or case.says(*_FILTER_PHRASES):
        return ErrorClass.REQUEST, None
    # 422 is text-generation-inference; 413 without such words is about bytes.
    if case.status in {0, 400, 413, 422} and (case.has_code(_CONTEXT_CODES) or case.says(*_CONTEXT_PHRASES)):
        return ErrorClass.CONTEXT, None
    return None


def _status_alone(case: _Case) -> _Found | None:
    if case.status in {404, 405, 410}:
        named = case.names_model() or re.search(r"\bmodels?\b", case.named_text())
        return (ErrorClass.MODEL if named else ErrorClass.MEMBER), None
    return (ErrorClass.MEMBER, None) if 300 <= case.status < 400 or case.status in {413, 422} else None


def _billing(case: _Case) -> _Found | None:
    overage = (b"anthropic-ratelimit-unified-overage-disabled-reason", b"out_of_credits")
    if case.status == 402 or case.has_code(_BILLING_CODES) or overage in _lower(case.failure.headers):
        return ErrorClass.QUOTA, BILLING_S
    # Google says "exceeded your current quota" of a minute's quota too; its QuotaFailure tells them apart.
    quotas = [str(owner.get("quotaId", "")).lower() for owner in case.body.objects]
    if any("perday" in quota for quota in quotas):
        return ErrorClass.QUOTA, BILLING_S
    if any("perminute" in quota for quota in quotas):
        return ErrorClass.RATE, None
    # A quota of a minute comes back in a minute. A bare "billing" in a 400 or 5xx may be about anything.
    if case.says("per minute", "per second"):
        return None
    if case.says(*_QUOTA_PHRASES) or (case.says("billing") and case.status in {0, 401, 403, 429}):
        return ErrorClass.QUOTA, QUOTA_PHRASE_S
    return None


def _lower(headers: tuple[tuple[bytes, bytes], ...]) -> list[tuple[bytes, bytes]]:
    return [(name.lower(), value.strip().lower()) for name, value in headers]


def _load(case: _Case) -> _Found | None:
    serverside = case.status == 0 or case.status >= 500
    if case.status == 529 or case.has_code(_OVERLOAD_CODES) or (serverside and case.says("overloaded")):
        return ErrorClass.OVERLOAD, None
    worded = case.says(*_RATE_PHRASES) or (case.status != 400 and case.says("capacity"))
    if case.status == 429 or case.has_code(_RATE_CODES) or worded:
        return ErrorClass.RATE, None
    return None


def _refused(case: _Case) -> _Found | None:
    if case.says("request not allowed"):  # Anthropic 403
        return ErrorClass.SHORT, None
    refused_field = case.body.param and (
        case.has_code(_PARAMETER_CODES) or _PARAMETER_PHRASES.search(case.body.message)
    )
    if case.status in {0, 400, 401, 403} and (case.names_model() or refused_field):
        return ErrorClass.MODEL, None
    return None


def _credential(case: _Case) -> _Found | None:
    if case.has_code(_DENIED_CODES) or case.says(*_REGION_PHRASES) or (case.status == 403 and _is_denial(case)):
        return ErrorClass.AUTH, DENIED_S
    if case.status in {401, 403} or case.has_code(_KEY_CODES) or case.says(*_KEY_PHRASES):
        return ErrorClass.AUTH, None
    return None


def _is_denial(case: _Case) -> bool:
    return case.body.is_html or case.says("region", "country", "permission")


def _moment(case: _Case) -> _Found | None:
    momentary = case.status < 300 or case.status >= 500 or case.status in {408, 409, 425}
    return (ErrorClass.TRANSIENT, None) if momentary else None


_ORDER: Final[tuple[Callable[[_Case], _Found | None], ...]] = (
    _caused_by_request,
    _status_alone,
    _billing,
    _load,
    _refused,
    _credential,
    _moment,
)
