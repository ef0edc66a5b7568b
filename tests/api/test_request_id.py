"""Ids of requests."""

from __future__ import annotations

from troyproxy.api.request_id import DRAWN, Noise, new_request_id, timed_request_id

NOISE = bytes(range(7))


def test_ids_sort_by_time_to_the_millisecond() -> None:
    ids = [timed_request_id(at, NOISE) for at in (0.0, 1.0, 1_800_000_000.0, 1_800_000_000.001, 4_000_000_000.0)]
    assert ids == sorted(set(ids))


def test_all_ids_look_alike() -> None:
    shapes = {(name[:4], len(name), name[4:].isalnum()) for name in (new_request_id(), timed_request_id(1.8e9, NOISE))}
    assert shapes == {("req_", 28, True)}


def test_two_ids_of_one_instant_differ_by_chance() -> None:
    assert timed_request_id(1.8e9, NOISE) != timed_request_id(1.8e9, NOISE[::-1])


def test_no_random_byte_is_given_twice() -> None:
    noise = Noise()
    taken = [noise.take(15) for _ in range(3 * DRAWN // 15)]
    assert (len(set(taken)), {len(each) for each in taken}) == (len(taken), {15})


def test_what_is_left_when_it_is_too_little_is_given_to_nobody() -> None:
    noise = Noise()
    assert [len(noise.take(DRAWN - 1)), len(noise.take(2)), len(noise.take(2))] == [DRAWN - 1, 2, 2]
