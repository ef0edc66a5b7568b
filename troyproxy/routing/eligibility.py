"""Why a member is left out. The reasons that a request and the catalogue decide are computed here; the planner adds
those that depend on state (circuits, cooldowns, accounts) or on the caller (keys, budgets)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from troyproxy.routing.members import Candidate, Group, leaves
from troyproxy.routing.needs import Needs


class SkipReason(StrEnum):
    """Every reason for which a member is skipped, as it stands in headers, metrics and errors."""

    NO_TOOLS = "no-tools"
    NO_VISION = "no-vision"
    NO_JSON = "no-json"
    NO_AUDIO = "no-audio"
    CONTEXT = "context"
    UNKNOWN_PROVIDER = "unknown-provider"
    NO_MODEL = "no-model"
    NO_ACCOUNT = "no-account"
    DISABLED = "disabled"
    NOT_ALLOWED = "not-allowed"
    CIRCUIT = "circuit"
    COOLDOWN = "cooldown"
    PROVIDER_DOWN = "provider-down"
    BUDGET = "budget"
    EXCLUDED = "excluded"
    MIXED_EMBEDDINGS = "mixed-embeddings"


@dataclass(frozen=True, slots=True)
class Skip:
    """One member that was left out. *provider* is its id, empty when unknown; *account*: where it is pinned to one."""

    spec: str
    reason: SkipReason
    provider: str = ""
    account: str | None = None

    @classmethod
    def of(cls, candidate: Candidate, reason: SkipReason) -> Self:
        """Return that *candidate* is left out for *reason*."""
        provider = candidate.provider.id if candidate.provider is not None else ""
        return cls(candidate.spec, reason, provider, candidate.account)

    @property
    def member(self) -> str:
        """The spec, and the account if pinned."""
        return self.spec if self.account is None else f"{self.spec}#{self.account}"


def shortfall(candidate: Candidate, needs: Needs, *, deny_unknown: bool) -> SkipReason | None:
    """Return why *candidate* cannot serve *needs*, or None when it can.

    Unknown capabilities pass unless *deny_unknown*; an unknown context window always passes.
    """
    if candidate.provider is None:
        return SkipReason.UNKNOWN_PROVIDER
    if not candidate.model:
        return SkipReason.NO_MODEL
    if needs.tools or needs.vision or needs.json or needs.audio:
        for wanted, has, reason in _requirements(candidate, needs):
            if wanted and (has is False or (has is None and deny_unknown)):
                return reason
    window = candidate.facts.limits.context
    return SkipReason.CONTEXT if window is not None and room_needed(candidate, needs) > window else None


def room_needed(candidate: Candidate, needs: Needs) -> int:
    """Return the tokens of context window that the request takes at *candidate*: estimate plus output."""
    wanted, limit = needs.max_output or 0, candidate.facts.limits.output
    return needs.est_tokens + (wanted if limit is None else min(wanted, limit))


def embedding_model(root: Group) -> str | None:
    """Return the one model that an embedding request to *root* may use, or None when any will do.

    Vectors of different models do not mix, and the failure would be invisible. So it is the first member's model,
    eligible or not, at whatever provider; ``allow_mixed_embeddings: true`` in the combo's config lifts it.
    """
    if root.combo.config.get("allow_mixed_embeddings") is True:
        return None
    return next((model_name(leaf.model) for leaf in leaves(root) if leaf.provider is not None and leaf.model), None)


def model_name(model: str) -> str:
    """Return *model* without its vendor: ``openai/emb-1`` at one provider is ``emb-1`` at another."""
    return model.rpartition("/")[2]


def _requirements(candidate: Candidate, needs: Needs) -> Iterator[tuple[bool, bool | None, SkipReason]]:
    has = candidate.facts.capabilities
    yield needs.tools, has.tools, SkipReason.NO_TOOLS
    yield needs.vision, has.vision, SkipReason.NO_VISION
    yield needs.json, has.json, SkipReason.NO_JSON
    yield needs.audio, has.audio, SkipReason.NO_AUDIO
