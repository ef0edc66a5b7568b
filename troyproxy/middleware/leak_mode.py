"""Which leak mode holds for one request: header, else key, combo, serving provider, setting.

Who serves is known only when an answer begins, so the mode is asked for by provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from troyproxy.errors import InvalidRequest
from troyproxy.leaks.gate import LeakMode
from troyproxy.proxy.call import Call

HEADER: Final = "x-troy-leak-mode"
AUTO: Final = "auto"


def leak_mode(name: object) -> LeakMode:
    """Return the mode *name*; ``auto``, the best there is, is `suppress` in this version. Raises ValueError."""
    text = str(name).strip().lower()
    return LeakMode.SUPPRESS if text == AUTO else LeakMode(text)


class ModeChoice:
    """The mode of *call*; *setting* holds where nobody says otherwise. Raises InvalidRequest for a wrong header.

    A key whose leak setting is ``locked`` ignores the header.
    """

    def __init__(self, call: Call, setting: LeakMode) -> None:
        self._call, self._setting = call, setting
        self._fixed = _asked(call) or _of_key(call) or _of_combo(call)

    def of(self, provider: str | None) -> LeakMode:
        """Return the mode for an answer of *provider*; None is an app that is no provider of ours."""
        if self._fixed is not None:
            return self._fixed
        found = self._call.snapshot.providers.get(provider) if provider is not None else None
        return (_known(found.leak) if found is not None else None) or self._setting

    @property
    def always_off(self) -> bool:
        """Whether no answer to this call can be under guard, whoever gives it."""
        return all(self.of(provider) is LeakMode.OFF for provider in (None, *self._call.snapshot.providers))


def _asked(call: Call) -> LeakMode | None:
    asked = call.header(HEADER.encode("ascii"))
    if not asked or (call.key is not None and call.key.leak.get("locked") is True):
        return None
    try:
        return leak_mode(asked)
    except ValueError as exc:
        raise InvalidRequest(f"{HEADER}: {exc}, {AUTO}") from exc


def _of_key(call: Call) -> LeakMode | None:
    return _known(call.key.leak.get("mode")) if call.key is not None else None


def _of_combo(call: Call) -> LeakMode | None:
    combo = call.resolution.combo if call.resolution is not None else None
    config = combo.config.get("leak") if combo is not None else None
    return _known(config.get("mode") if isinstance(config, Mapping) else config)


def _known(name: object) -> LeakMode | None:
    """Return the mode *name*, or None: what is stored was checked when it came in, and breaks no request here."""
    try:
        return leak_mode(name) if name is not None else None
    except ValueError:
        return None
