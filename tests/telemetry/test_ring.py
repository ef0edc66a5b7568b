"""The ring keeps the last requests, and no more."""

from __future__ import annotations

from tests.telemetry.rows import row
from troyproxy.telemetry.ring import RequestRing


def filled(count: int) -> RequestRing:
    ring = RequestRing(3)
    for n in range(count):
        ring.request_finished(row(request_id=f"r{n}"))
    return ring


def test_a_request_is_found_by_its_id() -> None:
    found = filled(2).find("r1")
    assert found is not None
    assert found.request_id == "r1"


def test_an_unknown_request_is_not_found() -> None:
    assert filled(2).find("r9") is None


def test_at_the_bound_the_oldest_goes() -> None:
    ring = filled(1000)
    assert (len(ring), ring.find("r996"), ring.find("r997") is None) == (3, None, False)


def test_the_latest_comes_first() -> None:
    assert [each.request_id for each in filled(5).recent(2)] == ["r4", "r3"]


def test_a_row_under_a_known_id_replaces_the_older_one() -> None:
    ring = filled(3)
    ring.request_finished(row(request_id="r0", status=500))
    assert [(each.request_id, each.status) for each in ring.recent()] == [("r0", 500), ("r2", 200), ("r1", 200)]
