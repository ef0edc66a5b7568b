from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.leaks.chunks import CALL, USAGE, Client, Event, chunk
from troyproxy.leaks.formats import CLASSIC_MARKERS
from troyproxy.leaks.suppress import ActionKind, Leak, find_leaks, strip_textual_tool_call, suppress_body

NAMES: Final = frozenset({"get_weather"})
LEAK: Final = '<function=get_weather>{"city":"Oslo"}</function>'
ROLE: Final = chunk("", role="assistant")
STOP: Final = chunk(finish="stop")
NO_DEADLINE: Final = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def streamed(*texts: str) -> list[Event]:
    return [ROLE, *map(chunk, texts), STOP, USAGE]


@pytest.mark.parametrize("cut", range(1, len(LEAK)))
def test_a_leak_cut_anywhere_never_reaches_the_client(cut: int) -> None:
    assert Client(NAMES).run(streamed(LEAK[:cut], LEAK[cut:])) == [ROLE, STOP, USAGE]


def test_a_leak_in_single_characters_never_reaches_the_client() -> None:
    assert Client(NAMES).run(streamed(*LEAK)) == [ROLE, STOP, USAGE]


def test_a_long_name_in_single_characters_stays_within_the_bounds() -> None:
    name = "n" * 64
    client = Client(frozenset({name}))
    assert client.run(streamed(*f'<tool_call>\n  {{"name": "{name}"}}</tool_call>')) == [ROLE, STOP, USAGE]


def test_text_after_the_leaked_call_is_dropped_and_the_ending_arrives() -> None:
    assert Client(NAMES).run(streamed(LEAK, "\nHere is the forecast: sunny.")) == [ROLE, STOP, USAGE]


def test_the_next_response_starts_fresh() -> None:
    Client(NAMES).run(streamed(LEAK))
    assert Client(NAMES).run(streamed("Hello")) == streamed("Hello")


def test_a_leak_is_told_to_the_operator_once() -> None:
    client = Client(NAMES)
    client.run(streamed(LEAK, LEAK))
    assert client.suppressor.leaks == [Leak(0, "F01")]


def test_reasoning_calls_finish_and_usage_of_a_leaked_choice_survive() -> None:
    mixed = chunk(LEAK, reasoning_content="hm", role="assistant")
    mixed["choices"][0]["finish_reason"] = "length"
    sent = Client(NAMES).run([mixed, chunk(tool_calls=CALL)])
    kept = chunk("", finish="length", reasoning_content="hm", role="assistant")
    assert sent == [kept, chunk(tool_calls=CALL)]


def test_usage_on_a_dropped_chunk_survives() -> None:
    sent = Client(NAMES).run([{**chunk(LEAK), "usage": {"total_tokens": 3}}])
    assert sent == [{**chunk(), "usage": {"total_tokens": 3}}]


def test_clean_text_is_released_with_the_character_that_refutes_the_marker() -> None:
    client = Client(NAMES)
    moves = [client.take(chunk(text)) for text in ("<func", "tional", " programming")]
    assert (moves, client.content()) == (
        [ActionKind.HOLD, ActionKind.RELEASE, ActionKind.RELEASE],
        "<functional programming",
    )


@pytest.mark.parametrize("text", ["<", "  ", "<tool_call>", "<function=get_weather", '<tool_call>{"name": "get_w'])
def test_an_undecided_text_is_released_before_the_finish(text: str) -> None:
    assert Client(NAMES).run(streamed(text)) == streamed(text)


@pytest.mark.parametrize("text", ["<", "  ", "<tool_call>"])
def test_an_undecided_text_is_released_at_the_end_of_a_stream_without_finish(text: str) -> None:
    assert Client(NAMES).run([chunk(text)]) == [chunk(text)]


def test_flushing_twice_does_no_harm() -> None:
    client = Client(NAMES)
    client.run([chunk("<")])
    assert client.suppressor.flush().kind is ActionKind.RELEASE


def test_an_error_event_releases_what_is_held_before_it() -> None:
    error: Event = {"error": {"message": "boom"}, "choices": []}
    client = Client(NAMES)
    client.take(chunk("<tool"))
    assert (client.take(error), client.sent) == (ActionKind.RELEASE, [chunk("<tool"), error])


def test_an_event_without_choices_keeps_its_place() -> None:
    ping: Event = {"choices": []}
    assert Client(NAMES).run([chunk("<"), ping, chunk("b")]) == [chunk("<"), ping, chunk("b")]


def test_blanks_are_held_alone_and_released_when_something_else_is_said() -> None:
    client = Client(NAMES)
    moves = [client.take(event) for event in (chunk("\n"), chunk(reasoning="hm"), chunk(LEAK))]
    assert (moves, client.content()) == ([ActionKind.HOLD, ActionKind.RELEASE, ActionKind.EDIT], "\n")


def test_choices_are_judged_apart_and_the_clean_one_passes_unchanged() -> None:
    events = [chunk(LEAK[:5]), chunk("Hel", index=1), chunk(LEAK[5:]), chunk("lo", index=1), STOP]
    assert Client(NAMES).run(events) == [events[1], events[3], STOP]


def test_two_choices_in_one_event_are_edited_apart() -> None:
    both: Event = {"choices": [chunk(LEAK)["choices"][0], chunk("Hi", index=1)["choices"][0]]}
    client = Client(NAMES)
    client.run([both])
    assert (client.content(0), client.content(1)) == ("", "Hi")


@pytest.mark.parametrize("left", ["<tool_call>", "<tool_call>\n</tool_call>", "<function", "</tool_call>"])
def test_markers_alone_beside_structured_calls_are_dropped(left: str) -> None:
    call = chunk(tool_calls=CALL)
    assert Client(NAMES).run([chunk(left), call, STOP]) == [call, STOP]


def test_markers_alone_after_structured_calls_are_dropped() -> None:
    call = chunk(tool_calls=CALL)
    assert Client(NAMES).run([call, chunk("<tool_call>"), STOP]) == [call, STOP]


def test_other_held_text_beside_structured_calls_is_released() -> None:
    events = [chunk("<tool_call>{"), chunk(tool_calls=CALL), STOP]
    assert Client(NAMES).run(events) == events


def test_beyond_the_bounds_the_text_goes_out_as_clean() -> None:
    head = '<tool_call>{"arguments": "'
    client = Client(NAMES)
    moves = [client.take(chunk(text)) for text in (head, *["x"] * 1100)]
    assert (moves[:-1].count(ActionKind.HOLD) > 500, moves[-1], client.held) == (True, ActionKind.RELEASE, [])


def test_one_huge_frame_is_not_held() -> None:
    client = Client(NAMES)
    assert client.take(chunk("<", junk="x" * 300_000)) is ActionKind.RELEASE


def test_invented_choices_beyond_the_bound_pass_unwatched() -> None:
    client = Client(NAMES)
    for index in range(128):
        client.take(chunk("ok", index=index))
    assert client.take(chunk("<tool", index=500)) is ActionKind.RELEASE


def test_settled_means_that_every_choice_asked_for_is_clean() -> None:
    client = Client(NAMES)
    client.take(chunk("Hello"))
    assert (client.suppressor.settled(1), client.suppressor.settled(2)) == (True, False)


@pytest.mark.parametrize("event", [None, 3, [], "x", {"choices": "x"}, {"choices": [{"delta": 3}]}])
def test_odd_events_are_released(event: Event) -> None:
    assert Client(NAMES).take(event) is ActionKind.RELEASE


EVENTS: Final = st.one_of(
    st.builds(chunk, st.text(alphabet="<function=tol_cagwher>| \n{", max_size=9), st.integers(0, 2)),
    st.builds(lambda text, index: chunk(index=index, reasoning=text), st.text(max_size=3), st.integers(0, 2)),
    st.builds(lambda index: chunk(index=index, finish="stop"), st.integers(0, 2)),
    st.builds(lambda index: chunk(index=index, role="assistant"), st.integers(0, 2)),
    st.just(USAGE),
)


@NO_DEADLINE
@given(st.lists(EVENTS, max_size=25))
def test_without_a_leak_the_client_receives_every_frame_in_order(events: list[Event]) -> None:
    assert Client(frozenset()).run(events) == events


@NO_DEADLINE
@given(st.lists(st.integers(0, len(LEAK)), max_size=9), st.lists(EVENTS, max_size=12), st.randoms())
def test_a_leak_in_one_choice_costs_the_others_nothing(cuts: list[int], others: list[Event], rng: Random) -> None:
    leak = [chunk(LEAK[a:b], index=7) for a, b in pairwise([0, *sorted(cuts), len(LEAK)])]
    places = sorted(rng.randint(0, len(others)) for _ in leak)
    events = list(others)
    for place, event in reversed(list(zip(places, leak, strict=True))):
        events.insert(place, event)
    client = Client(NAMES)
    rest = [event for event in client.run(events) if event not in leak]
    assert (client.suppressor.leaks, client.content(7), rest) == ([Leak(7, "F01")], "", others)


def body(content: object, **message: object) -> dict[str, object]:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": "stop"}
    return {"id": "c", "choices": [choice], "usage": {"total_tokens": 5}}


def test_a_leaked_body_keeps_everything_but_its_content() -> None:
    assert suppress_body(body(LEAK), NAMES) == body("")


@pytest.mark.parametrize("content", ["Hello", None, "<", "", "<tool_call>", "Prose. " + LEAK])
def test_a_clean_body_is_not_touched(content: str | None) -> None:
    assert suppress_body(body(content), NAMES) is None


def test_a_body_without_finish_reason_is_judged_too() -> None:
    assert suppress_body({"choices": [{"message": {"content": LEAK}}]}, NAMES) is not None


def test_residue_in_a_body_is_emptied_and_its_calls_stay() -> None:
    assert suppress_body(body("<tool_call>", tool_calls=CALL), NAMES) == body("", tool_calls=CALL)


def test_the_leaks_of_a_body_are_told() -> None:
    assert find_leaks(body(LEAK), NAMES) == (Leak(0, "F01"),)


@pytest.mark.parametrize("marker", CLASSIC_MARKERS)
def test_a_kept_copy_that_starts_with_a_marker_becomes_empty(marker: str) -> None:
    assert strip_textual_tool_call(f"\n {marker.upper()} anything") == ""


@pytest.mark.parametrize("text", ["", "Hello", "Use <tool_call> here", "<f, g>"])
def test_any_other_copy_stays_as_it_is(text: str) -> None:
    assert strip_textual_tool_call(text) == text
