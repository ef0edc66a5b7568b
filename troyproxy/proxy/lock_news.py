"""What an event of the health state is to somebody who watches: a lock that begins, or locks that are lifted.

Circuits are told by the observer, with the state before. Accounts go by their names, as everywhere outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from troyproxy.proxy.memory import account_name
from troyproxy.resilience.classes import Scope
from troyproxy.resilience.cooldowns import key_of
from troyproxy.resilience.events import Cleared, Event, Failed, Locked

Tell = Callable[[str, Mapping[str, object]], None]


def lock_news(tell: Tell) -> Callable[[Event], None]:
    """Return a watcher of the health state that *tells* kind and facts of what is news."""

    def watch(event: Event) -> None:
        match event:
            case Failed(cooldown_s=float() | int() as seconds) if event.scope is not Scope.NONE:
                key = key_of(event.scope, event.provider, event.account, event.model, soft=event.soft)
                tell("cooldown", _lock(event, key.account, key.model, event.at + seconds))
            case Locked():
                tell("cooldown", {**_lock(event, event.account, event.model, event.until), "elsewhere": True})
            case Cleared():
                account = event.account and account_name(event.provider or "", event.account)
                tell("cleared", {"provider": event.provider, "account": account, "model": event.model})
            case _:
                pass

    return watch


def _lock(event: Failed | Locked, account: str, model: str, until: float) -> dict[str, object]:
    return {
        "provider": event.provider,
        "account": account_name(event.provider, account),
        "model": model,
        "class": str(event.error_class),
        "until": until,
        "soft": event.soft,
    }
