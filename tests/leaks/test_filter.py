"""Events in, events out: what is held, dropped, made a call of, and what stays byte for byte."""

from __future__ import annotations

from typing import Final

import pytest

from tests.leaks.chunks import CALL, LEAK, USAGE, WEATHER, Client, Event, chunk
from troyproxy.leaks import filter as filtering
from troyproxy.leaks.asked import Asked
from troyproxy.leaks.modes import LeakAction, LeakMode
from troyproxy.leaks.options import Exhausted, Options, Scope
from troyproxy.leaks.policy import Leak

ROLE: Final = chunk("", role="assistant")
STOP: Final = chunk(finish="stop")
MADE: Final = [("get_weather", '{"city": "Oslo"}')]


def streamed(*texts: str) -> list[Event]:
    return [ROLE, *map(chunk, texts), STOP, USAGE]


def test_a_leak_is_dropped_and_the_ending_arrives() -> None:
    client = Client()
    assert client.run(streamed(*LEAK, "\nHere is the forecast: sunny.")) == [ROLE, STOP, USAGE]
    assert client.told == [Leak(0, "F01", LeakAction.SUPPRESSED)]


@pytest.mark.parametrize("mode", [LeakMode.REPAIR, LeakMode.AUTO])
def test_a_leak_becomes_a_call_and_the_usage_follows_it(mode: LeakMode) -> None:
    client = Client(mode)
    sent = client.run(streamed(*LEAK))
    assert (sent[0], sent[-1]) == (ROLE, USAGE)
    assert (client.content(), client.calls(), client.finish()) == ("", MADE, ["tool_calls"])
    assert client.told == [Leak(0, "F01", LeakAction.REPAIRED)]
    assert not any(said.get("role") for event in sent[1:] for said in [event.get("delta", {})])


def test_the_first_chunk_of_a_call_brings_the_role_where_none_was_sent() -> None:
    client = Client(LeakMode.REPAIR)
    assert client.run([chunk(LEAK), STOP])[0]["choices"][0]["delta"] == {"role": "assistant", "content": None}


def test_failover_that_came_too_late_does_what_on_exhausted_says() -> None:
    mending = Client(LeakMode.FAILOVER, options=Options(on_exhausted=Exhausted.REPAIR))
    mending.run(streamed(LEAK))
    plain = Client(LeakMode.FAILOVER)
    plain.run(streamed(LEAK))
    assert (mending.calls(), plain.calls()) == (MADE, [])
    assert plain.told == [Leak(0, "F01", LeakAction.SUPPRESSED)]


def test_a_call_is_finished_in_the_event_that_holds_its_end() -> None:
    client = Client(LeakMode.REPAIR)
    last = {**chunk("</function>", finish="stop"), "usage": {"total_tokens": 3}}
    client.run([ROLE, chunk(LEAK[:-11]), last])
    assert (client.calls(), client.finish()) == (MADE, ["tool_calls"])
    assert client.sent[-1] == {"id": "c", "choices": [], "usage": {"total_tokens": 3}}


def test_prose_in_the_event_that_finishes_goes_ahead_of_the_call() -> None:
    client = Client(LeakMode.REPAIR, options=Options(repair_scope=Scope.ANYWHERE))
    client.run([ROLE, chunk("So:\n" + LEAK, finish="stop")])
    assert (client.content(), client.calls(), client.finish()) == ("So:\n", MADE, ["tool_calls"])
    assert client.sent[1]["choices"][0]["delta"]["content"] == "So:\n"


def test_a_leak_after_prose_is_cut_within_the_event_that_holds_its_beginning() -> None:
    client = Client(LeakMode.AUTO)
    first = chunk("Let me ")
    sent = client.run([ROLE, first, chunk("look.\n<func"), chunk(LEAK[5:]), STOP])
    assert sent[1] is first
    assert (client.content(), client.calls(), client.finish()) == ("Let me look.\n", [], ["stop"])


def test_a_call_that_was_not_finished_is_suppressed() -> None:
    client = Client(LeakMode.AUTO)
    client.run(streamed(LEAK[:30]))
    assert (client.content(), client.calls(), client.finish()) == ("", [], ["stop"])
    assert [leak.action for leak in client.told] == [LeakAction.SUPPRESSED]


def test_an_announced_call_that_was_suppressed_is_not_waited_for() -> None:
    client = Client()
    client.run([chunk(LEAK), chunk(finish="tool_calls")])
    assert client.finish() == ["stop"]


def test_a_stream_that_says_done_without_a_finish_reason_is_repaired_at_its_end() -> None:
    client = Client(LeakMode.REPAIR)
    client.run([ROLE, chunk(LEAK)])
    assert (client.calls(), client.finish()) == (MADE, ["tool_calls"])


def test_a_stream_that_breaks_off_is_not_repaired() -> None:
    client = Client(LeakMode.REPAIR)
    client.run([ROLE, chunk(LEAK)], done=False)
    assert client.sent == [ROLE]


def test_an_error_settles_what_is_open_and_nothing_is_repaired() -> None:
    error: Event = {"error": {"message": "boom"}, "choices": []}
    client = Client(LeakMode.REPAIR)
    client.take(chunk("<tool"))
    assert client.take(error) == 2
    broken = Client(LeakMode.REPAIR)
    assert broken.run([chunk(LEAK), error]) == [error]


def test_the_answer_of_a_filter_is_not_repaired() -> None:
    client = Client(LeakMode.REPAIR)
    client.run([chunk(LEAK), chunk(finish="content_filter")])
    assert (client.calls(), client.finish()) == ([], ["content_filter"])


def test_observing_changes_nothing_and_holds_nothing() -> None:
    client = Client(LeakMode.OBSERVE)
    events = [ROLE, *map(chunk, LEAK), chunk(reasoning="<|tool_call_end|>"), STOP]
    assert [client.take(event) for event in events] == [1] * len(events)
    assert client.sent == events
    assert client.told == [Leak(0, "F01", LeakAction.OBSERVED), Leak(0, "F17", LeakAction.OBSERVED)]


def test_mode_off_reads_nothing() -> None:
    client = Client(LeakMode.OFF)
    assert client.run(streamed(LEAK)) == streamed(LEAK)
    assert client.told == []


def test_clean_text_is_released_with_the_character_that_refutes_the_marker() -> None:
    client = Client()
    assert [client.take(chunk(text)) for text in ("<func", "tion!", " programming")] == [0, 2, 1]


@pytest.mark.parametrize("text", ["<", "<tool_call>", "<function=get_weather", '<tool_call>{"name": "get_w'])
@pytest.mark.parametrize("end", [[STOP, USAGE], []])
def test_an_undecided_text_is_released_at_the_end(text: str, end: list[Event]) -> None:
    events = [ROLE, chunk(text), *end]
    assert Client(LeakMode.AUTO).run(list(events)) == events


def test_flushing_twice_does_no_harm() -> None:
    client = Client(LeakMode.REPAIR)
    client.run([chunk(LEAK)])
    before = list(client.sent)
    client.run([])
    assert client.sent == before


def test_what_comes_behind_held_text_waits_for_it() -> None:
    ping: Event = {"choices": []}
    client = Client()
    assert [client.take(event) for event in (chunk("<"), ping, chunk(" b"))] == [0, 0, 3]


def test_text_behind_real_calls_is_watched_too() -> None:
    client = Client(LeakMode.AUTO)
    client.run([chunk(tool_calls=CALL), chunk(LEAK), chunk(finish="tool_calls")])
    assert (client.content(), client.finish()) == ("", ["tool_calls"])
    assert client.told == [Leak(0, "F01", LeakAction.SUPPRESSED)]


def test_a_leak_beside_real_calls_is_dropped_and_not_made_twice() -> None:
    client = Client(LeakMode.REPAIR)
    client.run([chunk(LEAK), chunk(tool_calls=CALL), chunk(finish="tool_calls")])
    assert (client.content(), [name for name, _ in client.calls()], client.finish()) == (
        "",
        ["get_weather"],
        ["tool_calls"],
    )


@pytest.mark.parametrize("left", ["<tool_call>", "<tool_call>\n</tool_call>", "<function", "</tool_call>"])
def test_markers_alone_beside_real_calls_are_dropped(left: str) -> None:
    call = chunk(tool_calls=CALL)
    assert Client(LeakMode.AUTO).run([chunk(left), call, STOP]) == [call, STOP]


def test_other_held_text_beside_real_calls_is_released() -> None:
    events = [chunk("<tool_call>{"), chunk(tool_calls=CALL), STOP]
    assert Client().run(list(events)) == events


def test_text_behind_the_finish_reason_is_watched_too() -> None:
    client = Client()
    client.run([chunk("Hello"), STOP, chunk(LEAK)])
    assert client.content() == "Hello"


def test_more_text_of_a_leaked_choice_behind_its_end_is_dropped() -> None:
    client = Client(LeakMode.REPAIR)
    client.run([chunk(LEAK), STOP, chunk("and more")])
    assert client.content() == ""


def test_choices_are_judged_apart_and_the_clean_one_passes_unchanged() -> None:
    events = [chunk(LEAK[:5]), chunk("Hel", index=1), chunk(LEAK[5:]), chunk("lo", index=1), STOP]
    assert Client().run(list(events)) == [events[1], events[3], STOP]


def test_two_choices_in_one_event_end_apart() -> None:
    both: Event = {
        "id": "c",
        "choices": [chunk(LEAK, finish="stop")["choices"][0], chunk("Hi", index=1, finish="stop")["choices"][0]],
    }
    client = Client(LeakMode.REPAIR)
    client.run([both])
    assert (client.calls(0), client.finish(0)) == (MADE, ["tool_calls"])
    assert (client.content(1), client.finish(1)) == ("Hi", ["stop"])


def test_a_legacy_request_gets_a_function_call() -> None:
    legacy = Asked(names=WEATHER.names, schemas=WEATHER.schemas, legacy=True)
    client = Client(LeakMode.REPAIR, legacy)
    client.run(streamed(LEAK))
    deltas = [choice["delta"] for event in client.sent for choice in event["choices"]]
    assert {"name": "get_weather", "arguments": ""} in [delta.get("function_call") for delta in deltas]
    assert client.finish() == ["function_call"]


def test_special_tokens_leave_the_reasoning_and_its_text_stays() -> None:
    client = Client(LeakMode.AUTO)
    events = [chunk(reasoning_content="so <|tool_"), chunk(reasoning_content="call_end|> on"), chunk("Hi"), STOP]
    client.run(events)
    thoughts = "".join(c["delta"].get("reasoning_content", "") for e in client.sent for c in e["choices"])
    assert (thoughts, client.content()) == ("so  on", "Hi")
    assert client.told == [Leak(0, "F17", LeakAction.SUPPRESSED)]


def test_clean_reasoning_goes_out_byte_for_byte_in_its_place() -> None:
    events = [chunk(reasoning="a <"), chunk(reasoning="b |"), chunk(reasoning="c <|"), chunk("Hi"), STOP]
    assert Client(LeakMode.AUTO).run(list(events)) == events


@pytest.mark.parametrize("end", [[STOP], [], [{"error": {"message": "x"}, "id": "c"}]])
def test_reasoning_that_nothing_is_left_to_carry_goes_out_before_the_end(end: list[Event]) -> None:
    client = Client(LeakMode.AUTO)
    client.run([chunk(reasoning="<|tool_call_end|>xy <|"), *end])
    deltas = [choice["delta"] for event in client.sent for choice in event.get("choices") or ()]
    assert "".join(delta.get("reasoning", "") for delta in deltas) == "xy <|"


def test_beyond_the_bound_everything_goes_out_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filtering, "MAX_HELD_BYTES", 250)
    client = Client()
    texts = ("<func", "tion=get", "_weather", '>{"city": "Oslo"}')
    assert [client.take(chunk(text)) for text in texts] == [0, 0, 3, 1]
    assert (client.run([]), client.told) == ([chunk(text) for text in texts], [])


def test_invented_choices_beyond_the_bound_pass_unwatched() -> None:
    client = Client()
    for index in range(filtering.MAX_CHOICES):
        client.take(chunk("ok", index=index))
    assert client.take(chunk("<tool", index=500)) == 1
    assert client.take(chunk("<tool", index=501, role="assistant")) == 1


def test_plain_text_of_a_clean_choice_is_skimmed_and_a_leak_behind_it_still_found() -> None:
    client = Client(LeakMode.AUTO)
    assert not client.filter.skim(0, "Hello")
    client.take(chunk("Hello there.\n"))
    assert [client.filter.skim(0, text) for text in ("All", " is", " well.\n")] == [True] * 3
    assert not client.filter.skim(0, "<func")
    client.run([chunk(LEAK), STOP])
    assert (client.content(), client.told) == ("Hello there.\n", [Leak(0, "F01", LeakAction.SUPPRESSED)])


def test_nothing_is_skimmed_while_something_is_held_or_thought() -> None:
    client = Client(LeakMode.AUTO)
    client.take(chunk("Hello there. "))
    client.take(chunk(reasoning="hm"))
    assert not client.filter.skim(0, "text")
    client.take(chunk("so "))
    assert client.filter.skim(0, "text ")
    client.take(chunk("<func", index=1))
    assert not client.filter.skim(0, "text")


def test_everything_is_skimmed_when_nothing_is_watched() -> None:
    assert Client(LeakMode.OFF).filter.skim(0, LEAK)


@pytest.mark.parametrize("event", [3, [], "x", {"choices": "x"}, {"choices": [{"delta": 3}]}])
def test_odd_events_pass(event: Event) -> None:
    assert Client().take(event) == 1


def test_calls_that_were_repaired_go_out_once_where_the_upstream_tells_the_end_twice() -> None:
    client = Client(LeakMode.AUTO)
    client.run([chunk(LEAK), chunk(finish="stop"), {**chunk("", finish="stop"), "usage": {"total_tokens": 5}}])
    assert (client.calls(), client.finish()) == ([("get_weather", '{"city": "Oslo"}')], ["tool_calls"])
    assert client.sent[-1]["usage"] == {"total_tokens": 5}
