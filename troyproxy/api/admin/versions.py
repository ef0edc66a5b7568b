"""ETag and If-Match: the version of a row guards it against lost writes."""

from __future__ import annotations

from troyproxy.api.admin.resource import AdminRequest
from troyproxy.errors import PreconditionFailed


def etag(version: int) -> str:
    """Return the ETag of a version."""
    return f'"{version}"'


def expected_version(request: AdminRequest, current: int) -> int | None:
    """Return the version that the write must find: *current* if ``If-Match`` names it; None without it, or for ``*``.

    Hand the answer to the write, which compares again in its transaction. ``If-Match`` may name several versions. Weak
    tags count as strong ones: a proxy that compresses answers weakens our tag, and the row is the same.
    Raises PreconditionFailed when it names other versions only.
    """
    given = request.joined(b"if-match")
    if given is None or given.strip() == "*":
        return None
    tags = [tag.strip().removeprefix("W/").strip('"') for tag in given.split(",")]
    if str(current) not in tags:
        raise PreconditionFailed(f"If-Match does not name version {current}, which is stored")
    return current
