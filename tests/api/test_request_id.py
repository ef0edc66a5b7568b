"""Ids of requests."""

from __future__ import annotations

from troyproxy.api.request_id import DRAWN, Noise, new_request_id


def test_ids_sort_by_time_to_the_millisecond() -> None:
    noise = Noise()
    ids = [noise.take(at)[0] for at in (0.0, 1.0, 1_800_000_000.0, 1_800_000_000.001, 4_000_000_000.0)]
    assert ids == sorted(set(ids))


def test_all_ids_look_alike() -> None:
    shapes = {(name[:4], len(name), name[4:].isalnum()) for name in (new_request_id(), Noise().take(1.8e9)[0])}
    assert shapes == {("req_", 28, True)}


def test_no_chance_is_given_twice() -> None:
    noise = Noise()
    taken = [noise.take(1.8e9) for _ in range(3 * DRAWN)]
    assert len({request_id for request_id, _ in taken}) == len({seed for _, seed in taken}) == len(taken)


def test_a_seed_has_64_bits() -> None:
    noise = Noise()
    longest = max(noise.take(1.8e9)[1] for _ in range(100))
    assert 1 << 60 < longest < 1 << 64
