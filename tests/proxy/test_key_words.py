"""A client key in the words of the admin API."""

from __future__ import annotations

import pytest

from troyproxy.catalog.keys import Key
from troyproxy.catalog.providers import Origin
from troyproxy.proxy.key_words import READ_ONLY, as_written, read_key, written_settings

KEY = Key(id="k", name="ci", digest=b"d", limits={"requests_per_minute": 6.0}, expires_at=50.0, previous_digest=b"e")


@pytest.mark.parametrize(
    ("revoked_at", "now", "state"), [(None, 49.0, "valid"), (None, 50.0, "expired"), (1.0, 2.0, "revoked")]
)
def test_the_state_is_told(revoked_at: float | None, now: float, state: str) -> None:
    key = Key(id="k", name="ci", digest=b"d", expires_at=50.0, revoked_at=revoked_at)
    assert as_written(key, now)["state"] == state


@pytest.mark.parametrize(("until", "shown"), [(9.0, 9.0), (5.0, None), (None, None)])
def test_an_old_secret_is_told_while_it_works(until: float | None, shown: float | None) -> None:
    key = Key(id="k", name="ci", digest=b"d", previous_digest=b"e", previous_until=until)
    assert as_written(key, 5.0)["previous_until"] == shown


@pytest.mark.parametrize(("origin", "fixed"), [(Origin.FILE, True), (Origin.DATABASE, False)])
def test_what_cannot_be_changed_is_told(origin: Origin, fixed: bool) -> None:
    assert as_written(Key(id="k", name="ci", digest=b"d", origin=origin), 0.0)["read_only"] is fixed


def test_what_was_told_is_read_again() -> None:
    told = {**as_written(KEY, 0.0), "warnings": []}
    told.pop("id")
    assert written_settings(read_key(told)) == written_settings(KEY)


def test_whatever_only_answers_tell_is_ignored_in_a_request() -> None:
    told = as_written(KEY, 0.0)
    assert {*written_settings(KEY), *READ_ONLY, "id"} == {*told, "warnings"}


def test_no_digest_is_told() -> None:
    assert not any("digest" in name for name in as_written(KEY, 0.0))
