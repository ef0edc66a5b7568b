"""What of a stream reaches the client, byte for byte, and what does not."""

from __future__ import annotations

import pytest

from tests.proxy.rig import (
    DONE,
    Rig,
    answer,
    delta,
    event,
    finish,
    role,
    stream,
    usage,
)

pytestmark = pytest.mark.anyio


async def test_frames_pass_byte_for_byte(rig: Rig) -> None:
    frames = [role(), b'data:{"choices":[{"delta":{"content":"a\\u2028b"}}]}\r\n\r\n', finish(), b"data:[DONE]\r\n\r\n"]
    rig.script(alpha=stream(b"".join(frames)))
    served = await rig.ask(stream=True)
    assert served.exchange.body == b"".join(frames)


async def test_a_cut_of_the_reads_anywhere_changes_nothing(rig: Rig) -> None:
    whole = role() + 'data: {"choices":[{"delta":{"content":"北京🙂"}}]}\n\n'.encode() + finish() + usage() + DONE
    rig.script(alpha=[stream(whole[:cut], whole[cut:]) for cut in range(1, len(whole))])
    bodies = {(await rig.ask(stream=True)).exchange.body for _ in range(1, len(whole))}
    assert bodies == {whole}


async def test_bogus_data_lines_are_dropped_before_and_after_the_commit(rig: Rig) -> None:
    bogus = b"data: : keepalive\n\n"
    rig.script(alpha=stream(bogus, role(), bogus, delta("a"), bogus, b"data:\n\n", finish(), DONE))
    served = await rig.ask(stream=True)
    assert served.exchange.body == role() + delta("a") + finish() + DONE
    assert "dropped 3 data lines that were no JSON objects" in served.call.ledger.lines


async def test_pings_in_data_reach_nobody(rig: Rig) -> None:
    ping = b"event: ping\ndata: {}\n\n"
    rig.script(alpha=stream(ping, delta("a"), ping, finish(), DONE))
    served = await rig.ask(stream=True)
    assert served.exchange.body == delta("a") + finish() + DONE


async def test_comments_pass_after_the_commit(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), b": hm\n\n", finish(), DONE))
    served = await rig.ask(stream=True)
    assert b": hm\n\n" in served.exchange.body


async def test_fields_without_data_reach_nobody(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), b"retry: 3000\nid: 7\n\n", finish(), DONE))
    served = await rig.ask("alpha/m1", stream=True)
    assert served.exchange.body == delta("a") + finish() + DONE


async def test_an_odd_end_mark_is_told_as_clients_know_it(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), finish(), b"data:  [DONE] \n\n"))
    served = await rig.ask("alpha/m1", stream=True)
    assert served.exchange.body == delta("a") + finish() + DONE


async def test_a_last_event_without_its_blank_line_counts_when_it_is_whole(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), finish()[:-2]))
    served = await rig.ask(stream=True)
    assert served.exchange.body == delta("a") + finish() + DONE


async def test_a_last_event_that_was_cut_reaches_nobody(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), delta("bcd")[:40]))
    served = await rig.ask(stream=True)
    assert (served.events[0], served.stream_error["code"]) == (delta("a")[6:-2], "upstream_disconnected")


async def test_bytes_behind_the_end_mark_are_ignored(rig: Rig) -> None:
    rig.script(alpha=stream(delta("a"), finish() + DONE + delta("b"), delta("c")))
    served = await rig.ask(stream=True)
    assert (served.exchange.body, rig.idle) == (delta("a") + finish() + DONE, True)


async def test_text_about_errors_is_no_error(rig: Rig) -> None:
    said = event({"choices": [{"index": 0, "delta": {"content": 'set "error" to {"code":429}'}}], "error": None})
    rig.script(alpha=stream(said, finish(), DONE))
    served = await rig.ask(stream=True)
    assert (served.exchange.body, rig.log.events) == (said + finish() + DONE, [])


async def test_the_content_type_says_event_stream_whatever_the_upstream_says(rig: Rig) -> None:
    rig.script(alpha=answer(delta("a") + finish() + DONE))
    served = await rig.ask(stream=True)
    assert served.exchange.header("content-type") == "text/event-stream; charset=utf-8"
