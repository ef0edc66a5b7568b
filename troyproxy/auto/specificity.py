"""How specific a request is, 0 to 100: code, mathematics, reasoning, context, tools, terms of a trade."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
_FENCE: Final = "```"
_INLINE: Final = re.compile(r"(?<!`)`[^`\n]{1,80}`(?!`)")
_KEYWORD: Final = (
    r"\b(?:def|class|function|func|fn|interface|struct|impl|import|from|return|const|let|var|public|private|async|await"
    r"|SELECT|INSERT|UPDATE|CREATE TABLE)\s+[\w*({\"']"
)
_STATEMENT: Final = re.compile(_KEYWORD)
_CONSTRUCT: Final = re.compile(_KEYWORD + r"|=>|->|\w\([^()\n]{0,60}\)\s*[{:;]|</?[a-z]+>|&&|\|\||[!=]==?")
_OPERATOR: Final = re.compile(  # each alternative begins with a character of its own: those are looked for fast
    r"=>|->|\((?<=\w\()[^()\n]{0,60}\)\s*[{:;]|<[a-z]+>|</[a-z]+>|&&|\|\||!==?|===?"
)
"""The same where nothing begins as a statement does."""
_SYMBOLS: Final = r"\\(?:frac|sum|int|sqrt|lim|alpha|beta|theta|partial|mathbb|begin)|[∑∫∂√∞≤≥≠∈∀∃]"
_PRODUCTS: Final = r"\d\s?[*/^]\s?\d"
_FORMULA: Final = re.compile(rf"\$[^$\n]{{1,80}}\$|{_SYMBOLS}|\b\w\s?\^\s?\d|{_PRODUCTS}")
_SYMBOL, _PRODUCT = re.compile(_SYMBOLS), re.compile(_PRODUCTS)
"""The same where neither a dollar nor a power is."""
_TERMS: Final = (
    *("theorem", "lemma", "proof", "prove", "integral", "derivative", "eigenvalue", "matrix", "equation", "polynomial"),
    *("probability", "modulo"),
)
_CONNECTIVES: Final = (
    *("because", "therefore", "however", "although", "whereas", "unless", "hence", "thus", "consequently", "assuming"),
    *("given that", "step by step", "first", "second", "third", "finally", "if and only if"),
    *("tradeoff", "tradeoffs", "trade-off", "trade-offs"),
)
_TERM: Final = re.compile(rf"\b(?:{'|'.join(_TERMS)})\b")
_CONNECTIVE: Final = re.compile(rf"\b(?:{'|'.join(_CONNECTIVES)})\b")
_STEP: Final = re.compile(r"^\s{0,8}\d{1,2}[.)]\s", re.MULTILINE)
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
    lower = text.lower()
    reasons = _words(_CONNECTIVE, _CONNECTIVES, lower) + _count(_STEP, text)
    return (
        _code(text)
        + min(MATH_MOST, 4.0 * _mathematics(text, lower))
        + min(REASONING_MOST, 2.0 * reasons + min(MESSAGES_MOST, brief.messages // 2))
        + _step(CONTEXT_STEPS, brief.est_tokens - 1)
        + _step(TOOL_STEPS, brief.tool_count)
        + min(DOMAIN_MOST, 2.0 * _trade(f"{brief.system[:2000].lower()} {lower}"))
    )


def _code(text: str) -> float:
    fences = text.count(_FENCE) // 2
    inline = _count(_INLINE, text) if "`" in text else 0
    constructs = _count(_CONSTRUCT if _STATEMENT.search(text) else _OPERATOR, text)
    return min(CODE_MOST, 5.0 * fences + 0.5 * inline + 2.0 * constructs)


def _mathematics(text: str, lower: str) -> int:
    whole = "$" in text or "^" in text
    formulas = _count(_FORMULA, text) if whole else _count(_SYMBOL, text) + _count(_PRODUCT, text)
    return formulas + _words(_TERM, _TERMS, lower)


def _trade(text: str) -> int:
    """Return how many terms of a trade are in *text*, which is in lower case."""
    if _CRYPTOGRAPHY not in text and not _holds(text, _DOMAIN):
        return 0
    words = set(_WORD.findall(text))
    others = {word for word in words if word.startswith(_CRYPTOGRAPHY) and word != _CRYPTOGRAPHY}
    return len(words & _DOMAIN) + len(others)


def _words(pattern: re.Pattern[str], words: Sequence[str], text: str) -> int:
    """Return how often *pattern*, which stands for *words*, is in *text*. A text is found far faster than a pattern."""
    return _count(pattern, text) if _holds(text, words) else 0


def _holds(text: str, words: Iterable[str]) -> bool:
    for word in words:  # noqa: SIM110 -- a generator costs more than the looks themselves
        if word in text:
            return True
    return False


def _count(pattern: re.Pattern[str], text: str) -> int:
    return len(pattern.findall(text))


def _step(steps: Sequence[tuple[int, int]], value: int) -> int:
    return next((points for least, points in steps if value >= least), 0)
