"""Takes leaked tool calls out of a whole completion, or makes real calls of them. The verdict is that of a stream."""

from __future__ import annotations

from collections.abc import Callable

from troyproxy.leaks import edits
from troyproxy.leaks.call_chunks import message_of
from troyproxy.leaks.choice_watch import ChoiceWatch
from troyproxy.leaks.edits import Event
from troyproxy.leaks.filter import MAX_CHOICES
from troyproxy.leaks.gate import is_clean, read_whole
from troyproxy.leaks.genuine import GenuineCalls
from troyproxy.leaks.modes import LeakAction
from troyproxy.leaks.pieces import Piece, pieces
from troyproxy.leaks.policy import Leak, Policy
from troyproxy.leaks.repair import suppressed_reason
from troyproxy.leaks.scrub import Scrub

MESSAGE = "message"


def guarded(body: Event, policy: Policy, tell: Callable[[Leak], None]) -> Event | None:
    """Return what goes out for *body*, or None when it goes out as it is; *tell* hears of each leak."""
    if not policy.watches:
        return None
    found = pieces(body, MESSAGE)[:MAX_CHOICES]
    changed = body
    for piece in found:
        changed = _thoughts(_content(changed, piece, policy, tell), piece, policy, tell)
        changed = _genuine(changed, piece, policy)
    return None if changed is body or not policy.edits else changed


def _content(body: Event, piece: Piece, policy: Policy, tell: Callable[[Leak], None]) -> Event:
    if is_clean(piece.text, policy.options):
        return body
    watch = ChoiceWatch(policy, piece.index)
    response_id = body.get("id")
    read_whole(watch, piece, response_id if isinstance(response_id, str) else "")
    if watch.evidence is None or watch.action is None:
        return body
    tell(Leak(piece.index, watch.evidence.format, watch.action))
    if watch.repair is not None:
        made = message_of(watch.repair.calls, piece.text[: watch.cut], legacy=policy.asked.legacy)
        body = edits.with_message(body, piece.index, made)
        return edits.with_finish(body, piece.index, watch.repair.finish_reason)
    body = edits.cut_text(body, piece.index, watch.cut or 0, MESSAGE)
    reason = suppressed_reason(piece.finish, structured=watch.structured)
    return body if reason == piece.finish else edits.with_finish(body, piece.index, reason)


def _thoughts(body: Event, piece: Piece, policy: Policy, tell: Callable[[Leak], None]) -> Event:
    for name, text in piece.thoughts:
        scrub = Scrub()
        clean = scrub.feed(text) + scrub.finish()
        if scrub.found is not None:
            tell(Leak(piece.index, scrub.found, LeakAction.SUPPRESSED if policy.edits else LeakAction.OBSERVED))
            body = edits.with_field(body, piece.index, name, clean, MESSAGE)
    return body


def _genuine(body: Event, piece: Piece, policy: Policy) -> Event:
    genuine = GenuineCalls(piece.index, policy.asked.inputs.call_ids() if piece.calls else ())
    response_id = body.get("id")
    known = response_id if isinstance(response_id, str) and response_id else policy.request_id
    calls = genuine.sound(piece.calls, known, indexed=False)
    if calls is None:
        return body
    body = edits.with_calls(body, piece.index, calls, MESSAGE)
    return edits.with_finish(body, piece.index, genuine.reason(piece.finish))
