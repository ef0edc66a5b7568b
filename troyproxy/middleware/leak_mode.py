"""Which leak mode and which options hold for one request: header, else key, combo, serving provider, setting.

Who serves is known only when an answer begins, so both are asked for by provider. Options are laid over each other in
the same order, one by one; a header has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from troyproxy.catalog.snapshot import Snapshot
from troyproxy.errors import InvalidRequest
from troyproxy.leaks.arming import asked
from troyproxy.leaks.asked import Asked
from troyproxy.leaks.blocks import merged, options_of
from troyproxy.leaks.modes import LeakMode
from troyproxy.leaks.options import Options
from troyproxy.leaks.policy import Policy
from troyproxy.proxy.call import Call

HEADER: Final = "x-troy-leak-mode"
_HEADER: Final = HEADER.encode("ascii")
_DEFAULT: Final = Options()
_NOTHING: Final[Mapping[str, object]] = {}

Block = Mapping[str, object]


def leak_mode(name: object) -> LeakMode:
    """Return the mode *name*. Raises ValueError."""
    return LeakMode(str(name).strip().lower())


class Calm:
    """Tells at once of most requests that offer no tools that nobody wants anything of their answers.

    Whether a provider wants special tokens taken out of them, or the file, is a property of the snapshot.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._of: Snapshot | None = None
        self._scrubbing = False

    def about(self, call: Call) -> bool:
        """Whether no answer to *call* can be under guard; False where it takes a `ModeChoice` to tell."""
        payload, key, found = call.payload, call.key, call.resolution
        if payload.get("tools") or payload.get("functions") or _HEADER in call.fields:
            return False
        if (key is not None and key.leak) or (found is not None and found.combo is not None and found.combo.config):
            return False
        if call.snapshot is not self._of:
            self._of, self._scrubbing = call.snapshot, scrubbing(call.snapshot, self._options)
        return not self._scrubbing


def scrubbing(snapshot: Snapshot, options: Options, *more: Block) -> bool:
    """Whether somebody wants special tokens taken out of answers to requests that offer no tools."""
    providers = (provider.leak for provider in snapshot.providers.values())
    blocks = (snapshot.leak, *more, *(block for block in providers if isinstance(block, Mapping)))
    return options.scrub_with_history or any(block.get("scrub_with_history") is True for block in blocks)


class ModeChoice:
    """The mode and the options of *call*; *setting* and *options* hold where nobody says otherwise.

    A key whose leak setting is ``locked`` ignores the header. Raises InvalidRequest for a wrong header.
    """

    def __init__(self, call: Call, setting: LeakMode, options: Options = _DEFAULT) -> None:
        self._call, self._setting, self._options = call, setting, options
        self._key, self._combo = _of_key(call), _of_combo(call)
        told = _named(call) if _HEADER in call.fields else None
        self._fixed = (
            told or (_mode_in(self._key) if self._key else None) or (_mode_in(self._combo) if self._combo else None)
        )
        self._made: dict[str | None, Policy | None] = {}
        self._asked: dict[tuple[bool, bool], Asked | None] = {}

    def of(self, provider: str | None) -> LeakMode:
        """Return the mode for an answer of *provider*; None is an app that is no provider of ours."""
        if self._fixed is not None:
            return self._fixed
        block = self._of_provider(provider)
        return (_mode_in(block) if block else None) or self._setting

    def policy(self, provider: str | None) -> Policy | None:
        """Return what holds for an answer of *provider*; None when it is not under guard."""
        if provider not in self._made:
            self._made[provider] = self._policy(provider)
        return self._made[provider]

    @property
    def never(self) -> bool:
        """Whether no answer to this call can be under guard, whoever gives it."""
        payload = self._call.payload
        if not (payload.get("tools") or payload.get("functions") or self._scrubs):
            return True
        providers = self._call.snapshot.providers
        return all(self.of(provider) is LeakMode.OFF for provider in (None, *providers))

    @property
    def offers(self) -> bool:
        """Whether the request offers tools and allows a call."""
        asks = self._asks(self._options)
        return asks is not None and not asks.only_special

    @property
    def _scrubs(self) -> bool:
        """Whether somebody wants special tokens taken out of answers to requests that offer no tools."""
        return scrubbing(self._call.snapshot, self._options, self._combo, self._key)

    def _policy(self, provider: str | None) -> Policy | None:
        mode = self.of(provider)
        if mode is LeakMode.OFF:
            return None
        options = self._options_of(self._of_provider(provider))
        asks = self._asks(options)
        return Policy(mode, asks, options, self._call.request_id) if asks is not None else None

    def _options_of(self, block: Block) -> Options:
        if not (self._call.snapshot.leak or block or self._combo or self._key):
            return self._options
        return options_of(merged((self._call.snapshot.leak, block, self._combo, self._key)))

    def _asks(self, options: Options) -> Asked | None:
        """Return what the request tells the guard; read once for all providers that ask alike."""
        key = (options.scrub_when_none, options.scrub_with_history)
        if key not in self._asked:
            self._asked[key] = asked(self._call.payload, options)
        return self._asked[key]

    def _of_provider(self, provider: str | None) -> Block:
        found = self._call.snapshot.providers.get(provider) if provider is not None else None
        return _block(found.leak) if found is not None else _NOTHING


def _named(call: Call) -> LeakMode | None:
    told = call.header(_HEADER)
    if not told or (call.key is not None and call.key.leak.get("locked") is True):
        return None
    try:
        return leak_mode(told)
    except ValueError as exc:
        raise InvalidRequest(f"{HEADER}: {exc}") from exc


def _of_key(call: Call) -> Block:
    return call.key.leak if call.key is not None else _NOTHING


def _of_combo(call: Call) -> Block:
    combo = call.resolution.combo if call.resolution is not None else None
    return _block(combo.config.get("leak")) if combo is not None else _NOTHING


def _block(said: object) -> Block:
    """Return what stands at `leak` of a provider or a combo: a mode alone, or a mapping."""
    if isinstance(said, Mapping):
        return said
    return _NOTHING if said is None else {"mode": said}


def _mode_in(block: Block) -> LeakMode | None:
    """Return the mode in *block*, or None: what is stored was checked when it came in, and breaks no request here.

    A combo's is kept as it was written, and YAML reads a bare ``off`` as false.
    """
    said = block.get("mode")
    try:
        return LeakMode.OFF if said is False else leak_mode(said) if said is not None else None
    except ValueError:
        return None
