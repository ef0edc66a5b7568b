"""The failover walk: member after member, account after account, until one serves or nobody is left.

    pass 1   every eligible pair that is not soft-cooled, in plan order
    pass 2   the pairs that pass 1 left out, in the same order, under the same cap and deadline

No pair is tried twice in one request, but for the one retry after a learned parameter. What happened is in the ledger;
what follows from a failure is the classifier's verdict; this file only walks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Final

from troyproxy.errors import type_of
from troyproxy.proxy.alarm import Bell
from troyproxy.proxy.answers import Receive, Send
from troyproxy.proxy.call import Call
from troyproxy.proxy.client import Client, ClientGone
from troyproxy.proxy.disconnect import Disconnect, HangUp
from troyproxy.proxy.gear import Gear
from troyproxy.proxy.journey import Journey
from troyproxy.proxy.planner import Planner
from troyproxy.proxy.pulse import Pulse
from troyproxy.proxy.report import early_headers
from troyproxy.wire import chat
from troyproxy.wire.sse import Frame

GONE: Final = 499
"""The status of a request whose client left, as logs and metrics have it."""


class AnswerCut(ConnectionError):
    """An answer that is passed through broke off. No event can tell its client, but a lost connection does."""


class Walk:
    """Walks calls. It is shared; each call has a `Journey` of its own."""

    def __init__(self, gear: Gear, planner: Planner) -> None:
        self._gear, self._planner = gear, planner
        self._bell: Bell | None = None

    async def run(self, call: Call, receive: Receive, send: Send) -> None:
        """Serve *call*, which has a plan. The client's leaving ends everything within the moment.

        Raises AnswerCut when only that can tell the client, and the server is not ours: it then ends the connection.
        """
        client = Client(call, send, stall_s=self._gear.policy.write_stall_s, bell=self._bell_here())
        call.framed = call.stream
        watch: HangUp | Disconnect
        try:
            if call.peer is not None:
                with HangUp(call.peer, client) as watch:
                    await self._walk(call, client)
            else:
                async with Disconnect(receive, client) as watch:
                    await self._walk(call, client)
            call.client_left = call.client_left or watch.gone
            if call.client_left and not client.started:
                await _to_nobody(client)
            elif call.client_left or (call.ledger.truncated and not client.finished):
                _break_off(call)
        except asyncio.CancelledError:
            # Whoever ends us from outside ends the client's request; a stream that has begun is told so.
            if call.stream and client.started and not client.finished:
                await _cut_short(call, client)
            call.ledger.truncated = call.ledger.truncated or (call.passing and client.started and not client.finished)
            call.client_left = call.client_left or not (client.finished or call.ledger.truncated)
            raise
        finally:
            client.alarm.close()
            if call.client_left:
                call.ledger.say("the client left")

    def _bell_here(self) -> Bell:
        """Return the bell of the running loop. A host may serve us in one after another."""
        if self._bell is None or not self._bell.loop.is_running():
            self._bell = Bell()
        return self._bell

    def _walk(self, call: Call, client: Client) -> Awaitable[None]:
        journey = Journey(self._gear, self._planner, call, client)
        return self._beating(journey, call, client) if call.stream else journey.run()

    async def _beating(self, journey: Journey, call: Call, client: Client) -> None:
        async with self._pulse(call, client):
            await journey.run()

    def _pulse(self, call: Call, client: Client) -> Pulse:
        policy = self._gear.policy
        early = early_headers(call) if policy.early_commit_s else ()
        return Pulse(client, early, open_after_s=policy.early_commit_s, every_s=policy.keepalive_s)


def _break_off(call: Call) -> None:
    """End the connection of a client that does not read, or that can be told of a cut by nothing else."""
    if call.peer is not None:
        call.peer.drop()
    elif not call.client_left:
        raise AnswerCut("the upstream broke off; the connection is closed so that half is not taken for whole")


async def _cut_short(call: Call, client: Client) -> None:
    """End a stream that the server takes away (its grace is over): one error event, as every cut has."""
    call.ledger.truncated = True
    event = chat.error_event(
        message="the gateway is stopping",
        type=type_of(503),
        code="upstream_disconnected",
        request_id=call.request_id,
        attempts=len(call.ledger.attempts),
        retryable=True,
    )
    with suppress(ClientGone):
        await client.frames([Frame(raw=event, data=event[6:].strip())], more=False)


async def _to_nobody(client: Client) -> None:
    """Answer a client that has left: no server sends it, but a host's middleware may take silence for our failure."""
    with suppress(ClientGone):
        await client.whole(GONE, (), b"")
