"""Ids of repaired calls. Made from where the call stands, so that a log, a copy and a second look agree."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Container
from itertools import count
from typing import Final

_ALPHABET: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_LENGTH: Final = 24


def call_id(response_id: str, choice: int, index: int, taken: Container[str] = ()) -> str:
    """Return ``call_`` and 24 letters and digits: 29 characters, OpenAI takes 40.

    *taken*: the ids that the conversation has already; some servers number their responses from a few hundred, or give
    all of them one id. Where the upstream gave no *response_id*, use the request's.
    """
    place = f"{response_id}\0{choice}\0{index}"
    return next(made for again in count() if (made := _made(f"{place}\0{again}" if again else place)) not in taken)


def _made(place: str) -> str:
    number = int.from_bytes(hashlib.sha256(place.encode("utf-8", "backslashreplace")).digest(), "big")
    letters = []
    for _ in range(_LENGTH):
        number, at = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[at])
    return "call_" + "".join(letters)
