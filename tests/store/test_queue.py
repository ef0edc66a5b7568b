from __future__ import annotations

from troyproxy.store.queue import BoundedQueue, Columns


def rows(*numbers: int) -> list[Columns]:
    return [{"n": number} for number in numbers]


def filled(bound: int, *numbers: int) -> BoundedQueue:
    queue = BoundedQueue(bound)
    for row in rows(*numbers):
        queue.append(row)
    return queue


def test_the_oldest_rows_go_at_the_bound_and_are_counted() -> None:
    queue = filled(2, 1, 2, 3)
    assert queue.dropped == 1
    assert queue.take(9) == rows(2, 3)


def test_taken_rows_count_as_waiting_until_they_are_settled() -> None:
    queue = filled(9, 1, 2, 3)
    queue.take(2)
    assert len(queue) == 3
    queue.settle()
    assert len(queue) == 1


def test_unwritten_rows_go_back_to_the_front() -> None:
    queue = filled(9, 1, 2, 3)
    queue.settle(queue.take(2)[1:])
    assert queue.take(9) == rows(2, 3)


def test_unwritten_rows_that_find_no_room_are_dropped_oldest_first() -> None:
    queue = filled(3, 1, 2, 3)
    taken = queue.take(3)
    for row in rows(4, 5):
        queue.append(row)
    queue.settle(taken)
    assert queue.dropped == 2
    assert queue.take(9) == rows(3, 4, 5)


def test_no_unwritten_row_fits_a_queue_that_filled_up() -> None:
    queue = filled(2, 1, 2)
    taken = queue.take(2)
    for row in rows(3, 4):
        queue.append(row)
    queue.settle(taken)
    assert queue.take(9) == rows(3, 4)


def test_abandoned_rows_are_counted_as_dropped() -> None:
    queue = filled(9, 1, 2)
    assert queue.abandon() == 2
    assert (queue.dropped, len(queue)) == (2, 0)
