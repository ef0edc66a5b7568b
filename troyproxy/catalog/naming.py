"""What providers, combos and accounts may be called. Pure rules, the same for the file, the API and the command line.

Each function returns the normalised name or raises ValueError with a reason that can be shown. Limits are those of the
configuration design: ids reach headers, metric labels, paths and SQL, so they are closed sets of characters.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection
from typing import Final

RESERVED: Final = ("auto", "default", "combo", "troy")
"""What no provider and no combo may be called, nor a combo's part before the first slash."""

_PROVIDER: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_ACCOUNT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_COMBO_MARKS: Final = " _./-"
_COMBO_LENGTH: Final = 100


def provider_id(text: str) -> str:
    """Return *text* if it may be a provider's id or alias."""
    if not _PROVIDER.fullmatch(text):
        raise ValueError(
            "a provider id is 1 to 64 characters of a-z, 0-9, '.', '_', '-', and starts with one of a-z, 0-9"
        )
    if text in RESERVED:
        raise ValueError(f"{text} is reserved")
    return text


def account_name(text: str) -> str:
    """Return *text* if it may name an account: it is shown in headers and stands behind ``#`` in the account's id."""
    if not _ACCOUNT.fullmatch(text):
        raise ValueError("an account name is 1 to 64 of the characters A-Z, a-z, 0-9, '.', '_', '@', '+', '-'")
    return text


def key_name(text: str) -> str:
    """Return *text* if it may name a client key."""
    if not _ACCOUNT.fullmatch(text):
        raise ValueError("a key's name is 1 to 64 of the characters A-Z, a-z, 0-9, '.', '_', '@', '+', '-'")
    return text


def slug(text: str) -> str:
    """Return *text* if it may be an id that a client chose for a combo."""
    if not _SLUG.fullmatch(text):
        raise ValueError("an id is 1 to 64 characters of a-z, 0-9, '.', '_', '-', and starts with one of a-z, 0-9")
    return _unreserved(text)


def combo_name(text: str, *, providers: Collection[str] = ()) -> str:
    """Return the NFC form of *text* if it may name a combo.

    *providers* are the ids and aliases that are configured: a name that parses as a spec of one of them is refused,
    because an explicit spec always reaches its provider.
    """
    name = unicodedata.normalize("NFC", text)
    if not 1 <= len(name) <= _COMBO_LENGTH:
        raise ValueError(f"a combo name has 1 to {_COMBO_LENGTH} characters")
    if bad := next((c for c in name if not _may_stand(c)), None):
        raise ValueError(f"the character U+{ord(bad):04X} may not stand in a combo name")
    if name[0] in " /" or name[-1] in " /":
        raise ValueError("a combo name neither starts nor ends with a blank or '/'")
    if {".", ".."} & set(name.split("/")):
        raise ValueError("a combo name has no '.' or '..' between slashes")
    head, slash, _ = name.partition("/")
    if slash and head.casefold() in {p.casefold() for p in providers}:
        raise ValueError(f"the name reads as a model of the provider {head}")
    return _unreserved(name)


def combo_id(name: str) -> str:
    """Return the id of a combo that was given none: its name where that is a slug, else one derived from it."""
    if _SLUG.fullmatch(name):
        return name
    return "c-" + hashlib.sha256(unicodedata.normalize("NFC", name).encode()).hexdigest()[:12]


def same_name(name: str) -> str:
    """Return the form under which two names count as one: names that differ only by case cannot both be created."""
    return unicodedata.normalize("NFC", name).casefold()


def _may_stand(character: str) -> bool:
    # Marks belong to letters in many scripts (Devanagari, Thai) and survive NFC.
    return character in _COMBO_MARKS or unicodedata.category(character)[0] in "LMN"


def _unreserved(name: str) -> str:
    if name.partition("/")[0].casefold() in RESERVED:
        raise ValueError(f"{name.partition('/')[0]} is reserved")
    return name
