"""The seat of a worker, and the channel to its supervisor."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest

from troyproxy.cli.seat import Channel, Seat
from troyproxy.cli.worker import main


def test_a_seat_can_be_written_and_read() -> None:
    seat = Seat(3, 11, (4, 5), "data/metrics-x", demo=True, config="a.yaml", options={"port": 0})
    assert Seat.read(seat.text()) == seat
    assert seat.name == "worker-3"


def test_a_worker_says_once_that_it_serves() -> None:
    ours, theirs = socket.socketpair()
    with ours, Channel(theirs.detach()) as channel:
        channel.ready()
        assert ours.recv(100) == b'{"ready": true}\n'


def test_a_refusal_fits_into_one_line() -> None:
    ours, theirs = socket.socketpair()
    with ours, Channel(theirs.detach()) as channel:
        channel.refused("no\n" * 100_000)
        told = json.loads(ours.recv(60_000))
    assert told["refused"].startswith("no\nno")


def test_speaking_to_one_who_is_gone_is_no_error() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    with Channel(theirs.detach()) as channel:
        channel.ready()
    assert theirs.fileno() == -1


@pytest.mark.anyio
async def test_the_end_of_the_supervisor_is_noticed() -> None:
    ours, theirs = socket.socketpair()
    ended = asyncio.Event()
    with Channel(theirs.detach()) as channel:
        channel.at_end(ended.set)
        assert not ended.is_set()
        ours.close()
        async with asyncio.timeout(20):
            assert await ended.wait()


def test_a_worker_that_cannot_start_says_why_and_has_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROY_PROT", "1")
    ours, theirs = socket.socketpair()
    with ours:
        assert main(Seat(1, theirs.detach(), (), "nowhere").text()) == 1
        assert "did you mean TROY_PORT?" in json.loads(ours.recv(60_000))["refused"]
