"""The last resort for a tool call that an upstream refused to make out: the call itself, read from the refusal.

Only when nobody is left who could answer better, and only if the leak guard registered a `Call.rescue`.
"""

from __future__ import annotations

from typing import Final

from troyproxy.accounting.usage import Usage, estimate
from troyproxy.leaks.call_chunks import chunks_of, message_of
from troyproxy.leaks.modes import LeakAction
from troyproxy.leaks.repair import Repair
from troyproxy.proxy.call import Call
from troyproxy.proxy.client import Client
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.outcome import Broken, Target
from troyproxy.proxy.report import commit_headers
from troyproxy.resilience.classes import ErrorClass
from troyproxy.resilience.classify import Verdict
from troyproxy.wire import chat, json
from troyproxy.wire.sse import DONE, Frame, encode_data

OK: Final = 200
GROQ: Final = "tool_use_failed"


class Rescuer:
    """Keeps the refusals of one walk that may hold a call, and the answers that were left since theirs leaked."""

    def __init__(self, gear: Gear, call: Call, client: Client) -> None:
        self._gear, self._call, self._client = gear, call, client
        self._kept: list[tuple[Target, Broken, str]] = []

    def failed(self, target: Target, broken: Broken, verdict: Verdict) -> None:
        """Note a failed attempt, and count it where its tool call leaked and nobody has counted it."""
        if verdict.error_class is not ErrorClass.LEAK:
            return
        body, ledger = _body_of(broken), self._call.ledger
        if not ledger.attempts[-1].leak:
            self._note(target, _form(body), LeakAction.FAILED_OVER if target.can_reject else LeakAction.OBSERVED)
        if body:
            self._kept.append((target, broken, ledger.attempts[-1].leak.partition(";")[0]))

    async def serve(self) -> bool:
        """Answer with the rescued call, the latest that there is; False when there is none. Raises ClientGone."""
        rescue = self._call.rescue
        if rescue is None:
            return False
        for target, broken, form in reversed(self._kept):
            if (repair := rescue(target.provider.id, _decoded(_body_of(broken)))) is not None:
                await self._answer(target, broken.usage or self._estimate(repair), repair, form)
                return True
        return False

    async def _answer(self, target: Target, usage: Usage, repair: Repair, form: str) -> None:
        self._note(target, form, LeakAction.REPAIRED)
        ledger = self._call.ledger
        ledger.serve_late(target.provider.id, target.candidate.model, target.account.name, usage)
        head = commit_headers(self._call, self._gear.policy, ())
        if self._call.stream:
            await self._client.open(OK, head)
            await self._client.frames([*map(_frame, self._chunks(target, repair, usage)), _DONE], more=False)
        else:
            await self._client.whole(OK, head, json.encode(self._completion(target, repair, usage)))

    def _note(self, target: Target, form: str, action: LeakAction) -> None:
        provider, model = target.provider.id, target.candidate.model
        self._call.ledger.note_leak(form, str(action), of=(provider, model))
        self._gear.observer.leaked(provider, model, form, str(action))

    def _estimate(self, repair: Repair) -> Usage:
        needs = self._call.needs
        written = sum(len(call.name) + len(call.arguments) for call in repair.calls)
        return estimate(needs.est_tokens if needs is not None else 0, written)

    def _envelope(self, target: Target, kind: str) -> dict[str, object]:
        call = self._call
        return {"id": call.request_id, "object": kind, "created": int(call.at), "model": target.candidate.model}

    def _chunks(self, target: Target, repair: Repair, usage: Usage) -> list[dict[str, object]]:
        envelope = self._envelope(target, "chat.completion.chunk")
        chunks = chunks_of(
            repair.calls,
            envelope,
            0,
            role_sent=False,
            finish_reason=repair.finish_reason,
            legacy=_legacy(self._call),
        )
        wanted = self._call.asked_usage
        return [*chunks, *([{**envelope, "choices": [], "usage": _as_openai(usage)}] if wanted else [])]

    def _completion(self, target: Target, repair: Repair, usage: Usage) -> dict[str, object]:
        message = message_of(repair.calls, "", legacy=_legacy(self._call))
        choice = {"index": 0, "message": message, "finish_reason": repair.finish_reason}
        envelope = self._envelope(target, "chat.completion")
        return {**envelope, "choices": [choice], "usage": _as_openai(usage)}


_DONE: Final = Frame(raw=DONE, data=b"[DONE]")


def _legacy(call: Call) -> bool:
    return not call.payload.get("tools")


def _form(body: bytes) -> str:
    """Return by which name a refusal is counted: the upstream's own word for it."""
    return chat.failed_call(_decoded(body)) or GROQ


def _body_of(broken: Broken) -> bytes:
    return broken.left or (broken.answer.body if broken.answer is not None else broken.failure.body)


def _frame(event: dict[str, object]) -> Frame:
    data = json.encode(event)
    return Frame(raw=encode_data(data), data=data)


def _as_openai(usage: Usage) -> dict[str, object]:
    total = usage.input + usage.output
    return {"prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": total}


def _decoded(body: bytes) -> object:
    try:
        return json.decode(body)
    except json.MalformedJSON:
        return None
