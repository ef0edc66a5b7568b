"""Label values from closed sets, so that the number of series does not grow with traffic.

A label set is kept for ever by the metrics library and by Prometheus. Whatever a client can invent (model names, combo
names, paths) is shown only if the configuration knows it; the rest is ``other``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from troyproxy.catalog.snapshot import Snapshot
from troyproxy.resilience.classes import ErrorClass
from troyproxy.routing.eligibility import SkipReason
from troyproxy.routing.lookup import AUTO_IDS

OTHER: Final = "other"
NONE: Final = "none"
ROUTES: Final = frozenset(
    {
        "/v1/chat/completions",
        "/v1/chat/ui",
        "/v1/completions",
        "/v1/embeddings",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1/responses",
        "/v1/audio/{path}",
        "/v1/images/{path}",
        "/v1/moderations",
        "/v1/rerank",
        "/v1/models",
        "/v1/models/{id}",
    }
)
OUTCOMES: Final = frozenset({"ok", "client_error", "refused", "upstream_error", "cancelled", "truncated"})
EXCLUSIONS: Final = frozenset({"score", "failures", "probe"})
LEAK_ACTIONS: Final = frozenset({"repaired", "failed_over", "suppressed", "observed"})
CLASSES: Final = frozenset(ErrorClass)
REASONS: Final = frozenset(SkipReason)
MAX_COMBOS: Final = 200
MAX_KEYS: Final = 200
MAX_ACCOUNTS: Final = 1000
MAX_WORDS: Final = 64
MAX_WORD: Final = 100


class Bounded:
    """Lets the first *limit* distinct words through; all later ones, and what is no plain word, become ``other``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen: set[str] = set()

    def __call__(self, word: str) -> str:
        """Return the label value of *word*."""
        if word in self._seen:
            return word
        if len(self._seen) >= self._limit or len(word) > MAX_WORD or not word.isprintable():
            return OTHER
        self._seen.add(word)
        return word


class KnownModels:
    """The models that a configuration names: those that a provider lists, and those that combos call."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot
        self._seen: Snapshot | None = None
        self._models: dict[str, set[str]] = {}

    def __call__(self) -> Mapping[str, Collection[str]]:
        """Return provider → models, worked out once for each snapshot."""
        snapshot = self._snapshot()
        if snapshot is not self._seen:
            self._models = {name: set(provider.models) for name, provider in snapshot.providers.items()}
            for member in (member for combo in snapshot.combos.values() for member in combo.members):
                head, _, model = (member.model or "").partition("/")
                provider = snapshot.provider(head)
                if provider is not None and model:
                    self._models[provider.id].add(model)
            self._seen = snapshot
        return self._models


class Labels:
    """Turns names into label values. The callbacks are asked each time, so a reload needs no word here.

    *known_models*: configured provider → its models; *known_combos*: the names of combos, virtual ones included.
    At most *max_models* distinct models are shown in the life of the process. *routes* are templates, not paths.
    """

    def __init__(
        self,
        known_models: Callable[[], Mapping[str, Collection[str]]],
        known_combos: Callable[[], Collection[str]],
        *,
        max_models: int = 200,
        routes: Collection[str] = ROUTES,
    ) -> None:
        self._known_models, self._known_combos, self._routes = known_models, known_combos, frozenset(routes)
        self._models, self._combos = Bounded(max_models), Bounded(MAX_COMBOS)
        self._keys, self._accounts = Bounded(MAX_KEYS), Bounded(MAX_ACCOUNTS)
        self._words = {name: Bounded(MAX_WORDS) for name in ("format", "param", "action", "queue", "state")}

    def provider(self, name: str | None) -> str:
        """Return *name* if it is a configured provider."""
        return name if name is not None and name in self._known_models() else OTHER

    def target(self, provider: str | None, model: str | None) -> tuple[str, str]:
        """Return the labels of a provider and one of its models."""
        models = self._known_models().get(provider or "")
        if provider is None or models is None:
            return OTHER, OTHER
        return provider, self._models(model) if model is not None and model in models else OTHER

    def combo(self, name: str | None) -> str:
        """Return *name* if it is a combo; empty for a direct request."""
        if name is None:
            return ""
        return self._combos(name) if name in AUTO_IDS or name in self._known_combos() else OTHER

    def key(self, name: str) -> str:
        """Return the name of a client key that was created, within the bound."""
        return self._keys(name)

    def account(self, provider: str | None, name: str) -> tuple[str, str]:
        """Return the labels of an account, whose name is one that was configured; of no provider of ours, none is."""
        shown = self.provider(provider)
        return shown, OTHER if shown == OTHER else self._accounts(name)

    def route(self, template: str) -> str:
        """Return *template* if it is one of ours."""
        return template if template in self._routes else OTHER

    def word(self, label: str, word: str) -> str:
        """Return a word that the gateway's code (or an upstream's answer) chose, within the bound of *label*."""
        return self._words[label](word)


def one_of(word: str, words: Collection[str]) -> str:
    """Return *word* if it is one of *words*."""
    return str(word) if word in words else OTHER


def status_label(status: int) -> str:
    """Return an HTTP status as a label; what is none is ``other``."""
    return str(status) if 100 <= status <= 599 else OTHER
