"""What vendors answer, by name, and the class each of their errors has."""

from __future__ import annotations

import json

import pytest

from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.classify import Failure, classify


def error(message: str = "", **fields: object) -> dict[str, object]:
    return {"error": {"message": message, **fields}}


def google(status: str, code: int, *details: object) -> list[object]:
    return [{"error": {"code": code, "message": "x", "status": status, "details": list(details)}}]


def quota_failure(quota_id: str) -> dict[str, object]:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota_id}]}


CASES: list[tuple[str, int, object, ErrorClass]] = [
    ("malformed", 400, error("invalid schema", type="invalid_request_error"), ErrorClass.REQUEST),
    ("any other 4xx", 418, "", ErrorClass.REQUEST),
    ("451", 451, "", ErrorClass.REQUEST),
    ("OpenAI filter", 400, error("filtered", code="content_filter"), ErrorClass.REQUEST),
    ("Azure filter", 400, error("x", innererror={"code": "ResponsibleAIPolicyViolation"}), ErrorClass.REQUEST),
    ("OpenRouter filter", 403, error("your input was flagged for violence"), ErrorClass.REQUEST),
    ("a word about billing in a 400", 400, error("billing_address is no property"), ErrorClass.REQUEST),
    ("capacity in a 400", 400, error("capacity must be a number"), ErrorClass.REQUEST),
    (
        "413 with rate wording",
        413,
        error("too large for tokens per minute", code="rate_limit_exceeded"),
        ErrorClass.MEMBER,
    ),
    ("422", 422, {"detail": [{"loc": ["body", "n"], "msg": "unsupported"}]}, ErrorClass.MEMBER),
    ("redirect", 302, "", ErrorClass.MEMBER),
    ("bare 404", 404, "404 page not found", ErrorClass.MEMBER),
    ("HTML 404", 404, "<html>no such model</html>", ErrorClass.MEMBER),
    ("405", 405, error("method not allowed"), ErrorClass.MEMBER),
    ("bare 410", 410, "", ErrorClass.MEMBER),
    ("OpenAI context", 400, error("too long", code="context_length_exceeded"), ErrorClass.CONTEXT),
    ("413 context", 413, error("too long", code="context_length_exceeded"), ErrorClass.CONTEXT),
    (
        "vLLM context",
        400,
        {"object": "error", "message": "This model's maximum context length is 10"},
        ErrorClass.CONTEXT,
    ),
    ("Anthropic context", 400, error("prompt is too long: 210000 tokens > 200000 maximum"), ErrorClass.CONTEXT),
    (
        "Google context",
        400,
        error("The input token count (9) exceeds the maximum number of tokens"),
        ErrorClass.CONTEXT,
    ),
    ("z.ai context", 400, error("Prompt exceeds max length", code="1261"), ErrorClass.CONTEXT),
    ("TGI context", 422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 4096"}, ErrorClass.CONTEXT),
    ("OpenAI model", 404, error("The model `m1` does not exist", code="model_not_found"), ErrorClass.MODEL),
    ("the name alone", 404, error("No endpoints found for m1."), ErrorClass.MODEL),
    ("410 retired", 410, error("model retired"), ErrorClass.MODEL),
    ("405 model", 405, error("model m1 cannot chat"), ErrorClass.MODEL),
    ("400 model", 400, error("model m1 is not supported", param="model"), ErrorClass.MODEL),
    ("401 model", 401, error("model not available", type="ModelError"), ErrorClass.MODEL),
    ("403 model", 403, error("You do not have access to the model"), ErrorClass.MODEL),
    ("OpenRouter model", 400, error("m1 is not a valid model ID"), ErrorClass.MODEL),
    ("Ollama tools", 400, {"error": "registry.ollama.ai/library/m1 does not support tools"}, ErrorClass.MODEL),
    ("a name with a dot", 400, error("The model gpt-4.1-x does not exist"), ErrorClass.MODEL),
    ("z.ai model", 400, error("Unknown Model", code="1211"), ErrorClass.MODEL),
    ("a parameter", 400, error("x", param="reasoning_effort", code="unsupported_parameter"), ErrorClass.MODEL),
    ("a parameter by words", 400, error("logprobs is not supported", param="logprobs"), ErrorClass.MODEL),
    ("a bad value", 400, error("must be positive", param="n"), ErrorClass.REQUEST),
    ("a parameter by words alone", 400, error("logprobs is unsupported"), ErrorClass.REQUEST),
    ("401", 401, error("bad key", code="invalid_api_key"), ErrorClass.AUTH),
    ("403", 403, error("forbidden"), ErrorClass.AUTH),
    ("Google bad key", 400, google("INVALID_ARGUMENT", 400, {"reason": "API_KEY_INVALID"}), ErrorClass.AUTH),
    ("Google bad key in words", 400, error("API key not valid. Please pass a valid API key."), ErrorClass.AUTH),
    ("Google location", 400, error("User location is not supported for the API use."), ErrorClass.AUTH),
    ("402", 402, error("payment required", code=402), ErrorClass.QUOTA),
    ("OpenAI quota", 429, error("x", code="insufficient_quota"), ErrorClass.QUOTA),
    ("z.ai quota", 429, error("x", code="1113"), ErrorClass.QUOTA),
    ("MiniMax quota", 400, {"base_resp": {"status_code": 1008, "status_msg": "x"}}, ErrorClass.QUOTA),
    ("Anthropic credit as a 400", 400, error("Your credit balance is too low"), ErrorClass.QUOTA),
    ("out of budget", 403, error("Key is out of budget"), ErrorClass.QUOTA),
    ("billing in a 403", 403, error("see your billing page"), ErrorClass.QUOTA),
    ("Google day", 429, google("RESOURCE_EXHAUSTED", 429, quota_failure("RequestsPerDayPerModel")), ErrorClass.QUOTA),
    ("Google minute", 429, google("RESOURCE_EXHAUSTED", 429, quota_failure("RequestsPerMinute")), ErrorClass.RATE),
    ("a minute's quota", 429, error("Quota exceeded for requests per minute"), ErrorClass.RATE),
    ("429", 429, "", ErrorClass.RATE),
    ("HTML 429", 429, "<html>billing</html>", ErrorClass.RATE),
    ("rate as a 403", 403, error("rate limit reached"), ErrorClass.RATE),
    ("capacity as a 503", 503, error("We are at capacity"), ErrorClass.RATE),
    ("529", 529, "", ErrorClass.OVERLOAD),
    ("Anthropic overload", 503, {"type": "error", "error": {"type": "overloaded_error"}}, ErrorClass.OVERLOAD),
    ("Google overload", 503, error("The model is overloaded."), ErrorClass.OVERLOAD),
    ("Moonshot overload", 429, error("x", type="engine_overloaded_error"), ErrorClass.OVERLOAD),
    ("Anthropic short", 403, error("Request not allowed", type="forbidden"), ErrorClass.SHORT),
    ("500", 500, error("boom"), ErrorClass.TRANSIENT),
    ("HTML 502", 502, "<html>rate limit</html>", ErrorClass.TRANSIENT),
    ("520", 520, "", ErrorClass.TRANSIENT),
    ("408", 408, "", ErrorClass.TRANSIENT),
    ("409", 409, "", ErrorClass.TRANSIENT),
    ("425", 425, "", ErrorClass.TRANSIENT),
    ("billing in a 500", 500, error("the billing service is down"), ErrorClass.TRANSIENT),
    ("Groq leak", 400, error("Failed to call a function", code="tool_use_failed"), ErrorClass.LEAK),
]


@pytest.mark.parametrize(("status", "body", "expected"), [pytest.param(*case, id=name) for name, *case in CASES])
def test_an_answer_has_its_class(status: int, body: object, expected: ErrorClass) -> None:
    raw = body if isinstance(body, str) else json.dumps(body)
    found = classify(Failure(status, body=raw.encode(), model="m1"), now=0)
    assert found.error_class is expected
