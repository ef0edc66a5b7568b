"""One of several workers: ``python -m troyproxy.cli.worker SEAT``, started by the supervisor and by nobody else.

It serves like a process that is alone, on sockets that it inherits. It announces nothing, since the supervisor does,
and stops in an orderly way when the supervisor has ended without a word.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from pathlib import Path

from troyproxy.cli.configured import configured
from troyproxy.cli.listening import Listeners
from troyproxy.cli.seat import Channel, Seat
from troyproxy.cli.server import loop_factory
from troyproxy.cli.serving import gateway_of, run_servers
from troyproxy.cli.start import Start
from troyproxy.errors import TroyError
from troyproxy.telemetry.workers import join


class Working:
    """Serves in this process from *seat*. Raises ConfigError from `run`."""

    def __init__(self, seat: Seat, channel: Channel) -> None:
        self._seat, self._channel = seat, channel

    def run(self) -> None:
        """Serve until a signal, or the end of the supervisor."""
        seat = self._seat
        config = None if seat.config is None else Path(seat.config)
        start = Start(lambda: configured(config, seat.options), demo=seat.demo, worker=seat.name)
        start.begin_log()
        folder = start.wiring.metrics_folder = Path(seat.metrics)
        join(folder, seat.name)
        sockets = [socket.socket(fileno=number) for number in seat.sockets]
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(self._serve(start, sockets))

    async def _serve(self, start: Start, sockets: Listeners) -> None:
        if self._seat.demo:
            start.enter_demo()
        gateway = gateway_of(start, start.store())

        async def serving() -> None:
            self._channel.ready()
            self._channel.at_end(lambda: signal.raise_signal(signal.SIGTERM))

        async with gateway:
            await run_servers(gateway, start.settings, serving, sockets, [])


def main(text: str) -> int:
    """Work from the seat in *text* and return the exit status."""
    seat = Seat.read(text)
    with Channel(seat.channel) as channel:
        try:
            Working(seat, channel).run()
        except TroyError as error:
            channel.refused(str(error))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
