"""Takes out of log lines what is shaped like a credential, and every secret that is configured, whatever its shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from troyproxy.catalog.secret import Secret
from troyproxy.catalog.snapshot import Snapshot
from troyproxy.proxy.masking import MIN_SECRET, secrets_of
from troyproxy.settings.values import Settings
from troyproxy.telemetry.clean import MASK, mask_keys


class LogMask:
    """A `telemetry.clean.Mask`. It follows the snapshot: a key added while the gateway runs is masked too."""

    def __init__(self, own: Iterable[str] = ()) -> None:
        self._own = tuple(own)
        self._snapshot: Callable[[], Snapshot] = Snapshot
        self._seen: Snapshot | None = None
        self._pattern: re.Pattern[str] | None = None

    def watch(self, snapshot: Callable[[], Snapshot]) -> None:
        """Mask the upstream keys of what *snapshot* returns from now on."""
        self._snapshot, self._seen = snapshot, None

    def add(self, secret: str) -> None:
        """Mask one more secret."""
        self._own, self._seen = (*self._own, secret), None

    def __call__(self, text: str) -> str:
        """Return *text* without secrets."""
        snapshot = self._snapshot()
        if snapshot is not self._seen:
            self._seen, self._pattern = snapshot, _pattern((*self._own, *secrets_of(snapshot)))
        return mask_keys(self._pattern.sub(MASK, text) if self._pattern is not None else text)


def _pattern(secrets: Iterable[str]) -> re.Pattern[str] | None:
    known = sorted({secret for secret in secrets if len(secret) >= MIN_SECRET}, key=len, reverse=True)
    return re.compile("|".join(re.escape(secret) for secret in known)) if known else None


def secrets_in(settings: Settings) -> list[str]:
    """Return the secrets that stand in the settings, the passwords in URLs too."""
    values = (settings.secret_key, settings.admin_token, settings.metrics_token)
    urls = (settings.database_url, settings.redis_url or "")
    passwords = [found[1] for url in urls if (found := re.search(r"//[^/@:]*:(.*)@", url))]
    return [value.reveal() for value in values if isinstance(value, Secret)] + passwords
