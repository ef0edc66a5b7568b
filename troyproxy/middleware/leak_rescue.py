"""Reads the tool call out of an upstream's refusal to make it out, or out of a whole answer that was left for another
member in vain, where the mode in force repairs."""

from __future__ import annotations

from collections.abc import Mapping

from troyproxy.leaks.choice_watch import ChoiceWatch
from troyproxy.leaks.gate import read_whole
from troyproxy.leaks.pieces import pieces
from troyproxy.leaks.policy import Policy
from troyproxy.leaks.repair import Repair
from troyproxy.leaks.rescue import rescued_gemini, rescued_groq
from troyproxy.middleware.leak_mode import ModeChoice
from troyproxy.proxy.call import Call, Rescue
from troyproxy.wire import chat

FINISH_MESSAGES = ("finish_message", "finishMessage")


def rescuer(call: Call, modes: ModeChoice) -> Rescue:
    """Return what the walk asks when nobody is left."""

    def rescue(provider: str, refusal: object) -> Repair | None:
        policy = modes.policy(provider)
        if policy is None or not policy.repairs or not isinstance(refusal, Mapping):
            return None
        if chat.is_completion(refusal) and chat.failed_call(refusal) is None:
            return _rejected(refusal, policy)
        said = _finish_message(refusal)
        if said is not None:
            return rescued_gemini(said, policy.asked, policy.options, response_id=call.request_id)
        return rescued_groq(refusal, policy.asked, policy.options, response_id=call.request_id)

    return rescue


def _rejected(answer: Mapping[str, object], policy: Policy) -> Repair | None:
    """Return the call in an answer that was left for another member, of which nothing came."""
    found = list(pieces(answer, "message"))
    if len(found) != 1:
        return None
    watch = ChoiceWatch(policy, found[0].index)
    response_id = answer.get("id")
    read_whole(watch, found[0], response_id if isinstance(response_id, str) else "")
    return watch.repair


def _finish_message(refusal: Mapping[str, object]) -> str | None:
    """Return what Gemini says of a call that it could not make out."""
    choices = refusal.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        for name in FINISH_MESSAGES:
            said = choice.get(name) if isinstance(choice, Mapping) else None
            if isinstance(said, str):
                return said
    return None
