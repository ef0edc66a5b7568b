"""``/api/combos/{id}/explain`` and ``/test``: what a combo would do, and what its members do."""

from __future__ import annotations

from typing import Final

from troyproxy.api.admin.acting_schemas import EXPLANATION, ROUTING
from troyproxy.api.admin.combos import PATH, TAG
from troyproxy.api.admin.explaining import FAILS, KEY, explained
from troyproxy.api.admin.in_force import file_of
from troyproxy.api.admin.operation import Operation
from troyproxy.api.admin.resource import AdminRequest, Answer
from troyproxy.api.admin.schemas import COUNT, FLAG, NUMBER, TEXT, exactly, listing, nullable, titled
from troyproxy.api.services import Services
from troyproxy.errors import StoreUnavailable
from troyproxy.proxy.combo_book import ComboBook
from troyproxy.proxy.intake import decode_object
from troyproxy.proxy.trials import ASK, as_told
from troyproxy.wire import json

ONE: Final = f"{PATH}/{{id:path}}"
CHAT: Final = titled(
    "ComboRequest",
    {
        "type": "object",
        "description": "A chat request as a client would send it; `model` is the combo. Left out: a tiny one.",
    },
)
ATTEMPT: Final = exactly(account=TEXT, outcome=TEXT, status=nullable(COUNT), reason=TEXT, ms=NUMBER)
TRIAL: Final = exactly(
    member=TEXT,
    account=nullable(TEXT),
    ok=FLAG,
    status=nullable(COUNT),
    ms=nullable(NUMBER),
    message=nullable(TEXT),
    skipped=nullable(TEXT),
    attempts=listing(ATTEMPT),
    **{"class": nullable(TEXT)},
)
TRIED: Final = titled("TestedCombo", exactly(id=TEXT, name=TEXT, ok=FLAG, members=listing(TRIAL)))


class ComboTrials:
    """The handlers that change nothing of a combo."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._book = ComboBook(services.store, lambda: services.snapshots.current, file=file_of(services))

    def operations(self) -> list[Operation]:
        """Return what can be asked of a combo."""
        return [
            Operation("POST", f"{ONE}/explain", self.explain, TAG, "Why a request to a combo would go where it goes.",
                      {200: EXPLANATION}, takes=CHAT, headers=ROUTING, query=(KEY,), fails=FAILS),
            Operation("POST", f"{ONE}/test", self.test, TAG, "Send a tiny chat request to each member of a combo.",
                      {200: TRIED}, fails=(StoreUnavailable,)),
        ]  # fmt: skip

    async def explain(self, request: AdminRequest) -> Answer:
        """``POST /api/combos/{id}/explain``: the planner's answer; nothing is called."""
        combo, body = await self._book.find(request.id), await request.body()
        given = decode_object(body) if body.strip() else {}
        # What is given is explained as it would be served: nothing but the messages is made up for it.
        asked = {"messages": ASK["messages"], **given} if given else ASK
        return await explained(self._services, request, json.encode({**asked, "model": f"combo/{combo.name}"}))

    async def test(self, request: AdminRequest) -> Answer:
        """``POST /api/combos/{id}/test``: real requests, that may cost a few tokens."""
        combo = await self._book.find(request.id)
        trials = await self._services.trials.combo(combo)
        ok = any(trial.ok for trial in trials)
        return Answer({"id": combo.id, "name": combo.name, "ok": ok, "members": [as_told(trial) for trial in trials]})
