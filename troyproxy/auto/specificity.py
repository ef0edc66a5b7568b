"""How specific a request is, 0 to 100: code, mathematics, reasoning, context, tools, terms of a trade."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from troyproxy.auto.brief import Brief

CODE_MOST, MATH_MOST, REASONING_MOST, DOMAIN_MOST = 25.0, 20.0, 20.0, 10.0
MESSAGES_MOST: Final = 5
CONTEXT_STEPS: Final = ((64_000, 15), (32_000, 12), (16_000, 9), (8_000, 6), (4_000, 4), (1_000, 2))
"""Estimated tokens beyond which so many points are given, the largest first."""
TOOL_STEPS: Final = ((21, 10), (11, 8), (6, 6), (3, 4), (1, 2))
"""Tools from which so many points are given, the most first."""

READ: Final = 1500
"""Characters of the message in which signs are counted: the parts are full long before."""
_FENCE: Final = re.compile(r"```")
_INLINE: Final = re.compile(r"(?<!`)`[^`\n]{1,80}`(?!`)")
_CONSTRUCT: Final = re.compile(
    r"\b(?:def|class|function|func|fn|interface|struct|impl|import|from|return|const|let|var|public|private|async|await"
    r"|SELECT|INSERT|UPDATE|CREATE TABLE)\s+[\w*({\"']|=>|->|\w\([^()\n]{0,60}\)\s*[{:;]|</?[a-z]+>|&&|\|\||[!=]==?"
)
_MATH: Final = re.compile(
    r"\\(?:frac|sum|int|sqrt|lim|alpha|beta|theta|partial|mathbb|begin)|\$[^$\n]{1,80}\$|[∑∫∂√∞≤≥≠∈∀∃]"
    r"|\b(?:theorem|lemma|proof|prove|integral|derivative|eigenvalue|matrix|equation|polynomial|probability|modulo)\b"
    r"|\b\w\s?\^\s?\d|\d\s?[*/^]\s?\d",
    re.IGNORECASE,
)
_REASONING: Final = re.compile(
    r"\b(?:because|therefore|however|although|whereas|unless|hence|thus|consequently|assuming|given that|step by step"
    r"|first|second|third|finally|trade-?offs?|if and only if)\b|^\s{0,8}\d{1,2}[.)]\s",
    re.IGNORECASE | re.MULTILINE,
)
_WORD: Final = re.compile(r"\w+")
_CRYPTOGRAPHY: Final = "cryptograph"
_DOMAIN: Final = frozenset(
    {
        *("kubernetes", "terraform", "postgres", "postgresql", "oauth", "kernel", "compiler", "latency"),
        *("throughput", "mutex", "concurrency", "tcp", "tls", "regression", "bayesian", "gradient"),
        *("transformer", "embedding", "genome", "protein", "diagnosis", "dosage", "plaintiff", "statute"),
        *("liability", "contract", "derivatives", "amortization", "hedge", "ebitda", "gdpr", "hipaa"),
        *("quantum", "thermodynamics", "topology"),
    }
)
"""Terms of a trade. Whole words: a pattern of so many alternatives is tried at every letter."""


def specificity(brief: Brief) -> float:
    """Return the specificity of a request, 0 to 100. One pass over the beginning of it for each kind of sign."""
    text = brief.last[:READ]
    return (
        _code(text)
        + min(MATH_MOST, 4.0 * _count(_MATH, text))
        + min(REASONING_MOST, 2.0 * _count(_REASONING, text) + min(MESSAGES_MOST, brief.messages // 2))
        + _step(CONTEXT_STEPS, brief.est_tokens - 1)
        + _step(TOOL_STEPS, brief.tool_count)
        + min(DOMAIN_MOST, 2.0 * _terms(f"{brief.system[:2000]} {text}".lower()))
    )


def _code(text: str) -> float:
    fences = _count(_FENCE, text) // 2
    return min(CODE_MOST, 5.0 * fences + 0.5 * _count(_INLINE, text) + 2.0 * _count(_CONSTRUCT, text))


def _terms(text: str) -> int:
    """Return how many terms of a trade are in *text*, which is in lower case."""
    words = set(_WORD.findall(text))
    others = {word for word in words if word.startswith(_CRYPTOGRAPHY) and word != _CRYPTOGRAPHY}
    return len(words & _DOMAIN) + len(others)


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))


def _step(steps: Sequence[tuple[int, int]], value: int) -> int:
    return next((points for least, points in steps if value >= least), 0)
