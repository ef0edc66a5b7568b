"""The error tree: every failure that the gateway itself reports, with its status, type and code.

    TroyError
    ├── ConfigError                     a file or variable is wrong (never an HTTP answer)
    ├── InvalidRequest            400   invalid_request
    │   ├── InvalidJSON                 invalid_json
    │   ├── UnknownVariant              unknown_variant
    │   └── InvalidEffort               invalid_effort
    ├── InvalidAPIKey             401   invalid_api_key
    ├── BudgetExceeded            402   budget_exceeded
    ├── ModelNotAllowed           403   model_not_allowed
    ├── ForbiddenOrigin           403   forbidden_origin
    ├── ModelNotFound             404   model_not_found
    ├── NotFound                  404   not_found
    ├── MethodNotAllowed          405   method_not_allowed
    ├── Conflict                  409   conflict
    ├── PreconditionFailed        412   precondition_failed
    ├── BodyTooLarge              413   body_too_large
    ├── UnsupportedMediaType      415   unsupported_media_type
    │   └── UnsupportedEncoding         unsupported_encoding
    ├── ValidationFailed          422   validation_failed (with details)
    ├── RateLimited               429   rate_limited
    ├── UpstreamAuth              502   upstream_auth
    ├── UpstreamInvalid           502   upstream_invalid
    │   └── UpstreamError               the status an error under a 200 names itself
    ├── UpstreamUnreachable       502   upstream_unreachable
    ├── LeakedToolCall            502   leak
    ├── NoEligibleMember          503   no_eligible_member
    │   ├── ContextExceeded             context_length_exceeded
    │   └── AllUnavailable              all_unavailable (429 rate_limited when every reason is a rate limit)
    ├── Overloaded                503   overloaded
    ├── StoreUnavailable          503   store_unavailable
    └── UpstreamTimeout           504   timeout

`type` follows the status (`design`: one table), so a class states its status and code only. The envelope is made here
and nowhere else; bridges reshape it for other protocols. Messages are written by us: no secret, no upstream URL.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    429: "rate_limit_error",
}


def type_of(status: int) -> str:
    """Return the OpenAI error type of an HTTP status."""
    return TYPES.get(status) or ("server_error" if status >= 500 else "invalid_request_error")


class TroyError(Exception):
    """The root. Catch by class, at the edge or in an adapter."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"

    def __init__(self, message: str, *, param: str | None = None, details: object = None) -> None:
        super().__init__(message)
        self.param = param
        self.details = details
        self.quiet: str | None = None
        """What clients are told instead, without details, where they may not see which providers there are."""
        self.headers: dict[str, str] = {}

    @property
    def http_status(self) -> int:
        """The status to answer with; a few classes choose it per instance."""
        return self.status

    @property
    def http_code(self) -> str:
        """The code to answer with; a few classes choose it per instance."""
        return self.code

    def envelope(self, *, quiet: bool = False) -> dict[str, object]:
        """Return the body that OpenAI clients parse."""
        quiet = quiet and self.quiet is not None
        inner: dict[str, object] = {
            "message": self.quiet if quiet else str(self),
            "type": type_of(self.http_status),
            "param": self.param,
            "code": self.http_code,
        }
        if self.details is not None and not quiet:
            inner["details"] = self.details
        return {"error": inner}


def retry_after(seconds: float) -> str:
    """Return a Retry-After header value: whole seconds, rounded up, never 0."""
    return str(max(1, math.ceil(seconds)))


class ConfigError(TroyError):
    """A setting, the config file or a stored value is wrong; the message names it and what is allowed."""


class InvalidRequest(TroyError):
    status, code = 400, "invalid_request"


class InvalidJSON(InvalidRequest):
    code = "invalid_json"


class UnknownVariant(InvalidRequest):
    code = "unknown_variant"


class InvalidEffort(InvalidRequest):
    code = "invalid_effort"


class InvalidAPIKey(TroyError):
    """Missing and wrong keys get this one answer."""

    status, code = 401, "invalid_api_key"

    def __init__(self, message: str = "Missing or invalid API key.") -> None:
        super().__init__(message)
        self.headers["www-authenticate"] = "Bearer"


class BudgetExceeded(TroyError):
    status, code = 402, "budget_exceeded"


class ModelNotAllowed(TroyError):
    status, code = 403, "model_not_allowed"


class ForbiddenOrigin(TroyError):
    status, code = 403, "forbidden_origin"


class ModelNotFound(TroyError):
    status, code = 404, "model_not_found"


class NotFound(TroyError):
    status, code = 404, "not_found"


class MethodNotAllowed(TroyError):
    status, code = 405, "method_not_allowed"

    def __init__(self, message: str, *, allow: Sequence[str]) -> None:
        super().__init__(message)
        self.headers["allow"] = ", ".join(allow)


class Conflict(TroyError):
    status, code = 409, "conflict"


class PreconditionFailed(TroyError):
    status, code = 412, "precondition_failed"


class BodyTooLarge(TroyError):
    status, code = 413, "body_too_large"


class UnsupportedMediaType(TroyError):
    status, code = 415, "unsupported_media_type"


class UnsupportedEncoding(UnsupportedMediaType):
    code = "unsupported_encoding"


class ValidationFailed(TroyError):
    """*details* is a list of ``{"field": path, "message": text}``."""

    status, code = 422, "validation_failed"


class RateLimited(TroyError):
    status, code = 429, "rate_limited"

    def __init__(self, message: str, *, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.headers["retry-after"] = retry_after(retry_after_s)


class UpstreamAuth(TroyError):
    """An upstream refused *our* credential; the client's own key is fine."""

    status, code = 502, "upstream_auth"


class UpstreamInvalid(TroyError):
    status, code = 502, "upstream_invalid"


class UpstreamError(UpstreamInvalid):
    """An error object under a 200: answered with the status that it names, when that is an error status."""

    def __init__(self, message: str, *, upstream_status: int | None) -> None:
        super().__init__(message)
        self.upstream_status = upstream_status

    @property
    def http_status(self) -> int:
        return self.upstream_status or self.status


class LeakedToolCall(TroyError):
    """Every member left leaked its tool call as text."""

    status, code = 502, "leak"


class UpstreamUnreachable(TroyError):
    status, code = 502, "upstream_unreachable"


class NoEligibleMember(TroyError):
    """No member can serve this request; *details* lists ``{"member", "reason"}``."""

    status, code = 503, "no_eligible_member"


class ContextExceeded(NoEligibleMember):
    """Agents compact their history when they read "maximum context length"."""

    code = "context_length_exceeded"

    def __init__(self, message: str, *, details: object = None) -> None:
        super().__init__(message, details=details)
        self.headers["x-should-retry"] = "false"


class AllUnavailable(NoEligibleMember):
    """Everything is locked for now: 503, or 429 when every reason is a rate limit."""

    code = "all_unavailable"

    def __init__(self, message: str, *, retry_after_s: float, rate_limited: bool, details: object = None) -> None:
        super().__init__(message, details=details)
        self.rate_limited = rate_limited
        self.headers["retry-after"] = retry_after(retry_after_s)

    @property
    def http_status(self) -> int:
        return 429 if self.rate_limited else 503

    @property
    def http_code(self) -> str:
        return "rate_limited" if self.rate_limited else self.code


class Overloaded(TroyError):
    """The gateway itself is full (a bounded queue or cache is at its bound)."""

    status, code = 503, "overloaded"


class StoreUnavailable(TroyError):
    """The database cannot be used now. Requests go on from the snapshot; the admin API answers with this."""

    status, code = 503, "store_unavailable"


class UpstreamTimeout(TroyError):
    status, code = 504, "timeout"
