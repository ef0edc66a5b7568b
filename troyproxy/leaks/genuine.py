"""Real calls as some upstreams send them, made whole: Gemini's compatible endpoint leaves out index and id.

Such a call comes all at once, with ``finish_reason: stop``. Clients add up chunks by index and answer by id, so both
are filled in, and the choice ends with ``tool_calls``. What is sound stays as it is.
"""

from __future__ import annotations

from collections.abc import Container

from troyproxy.leaks.call_ids import call_id


class GenuineCalls:
    """The real calls of one choice."""

    def __init__(self, choice: int, taken: Container[str] = ()) -> None:
        """*taken*: the ids that the conversation has already."""
        self._choice, self._taken = choice, taken
        self._count = 0
        """Calls that have begun."""
        self.mended = False

    def sound(self, calls: object, response_id: str, *, indexed: bool = True) -> list[object] | None:
        """Return *calls*, of one event, with what they lack; None when they lack nothing.

        *indexed* = they are chunks: in a whole answer calls need no index.
        """
        if not isinstance(calls, list):
            return None
        found = [self._sound(call, response_id, indexed=indexed) for call in calls]
        return found if any(mine is not given for mine, given in zip(found, calls, strict=True)) else None

    def reason(self, finish: str | None) -> str | None:
        """Return the finish reason of the choice: calls that had to be made whole end it, whatever it said."""
        return "tool_calls" if self.mended and finish == "stop" else finish

    def _sound(self, call: object, response_id: str, *, indexed: bool) -> object:
        if not isinstance(call, dict):
            return call
        function, index = call.get("function"), call.get("index")
        begins = isinstance(function, dict) and bool(function.get("name"))
        if isinstance(index, int):
            self._count = max(self._count, index + 1)
            lacking: dict[str, object] = {}
        else:
            self._count += begins
            index = max(0, self._count - 1)
            lacking = {"index": index} if indexed else {}
        if begins and not call.get("id"):
            lacking["id"] = call_id(response_id, self._choice, index, self._taken)
            lacking["type"] = call.get("type") or "function"
        self.mended = self.mended or bool(lacking)
        return {**call, **lacking} if lacking else call
