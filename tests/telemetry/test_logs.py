"""The log has the form that was asked for, one line per entry, and neither prompts nor keys in it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from tests.telemetry.rows import row
from troyproxy.errors import ConfigError
from troyproxy.telemetry.access import AccessLog
from troyproxy.telemetry.clean import mask_keys
from troyproxy.telemetry.logs import QuietHandler, setup

OURS = logging.getLogger("troyproxy.test")


class Log:
    """A log set up by the code under test."""

    def __init__(self, level_form: str = "info,json", *, tty: bool = False, worker: str | None = None) -> None:
        self.stream = io.StringIO()
        self.handler = setup(level_form, self.stream, tty=tty, worker=worker)

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def entries(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.text.split("\n") if line]


@pytest.fixture(autouse=True)
def _the_loggers_are_put_back() -> Iterator[None]:
    root, names = logging.getLogger(), ("troyproxy", "uvicorn", "uvicorn.error", "uvicorn.access", "somelib")
    handlers = list(root.handlers)
    before = {name: _state(logging.getLogger(name)) for name in names}
    for name in names:  # a server of another test may have turned one down, off, or away from the root
        _put(logging.getLogger(name), (logging.NOTSET, True, False, [], []))
    yield
    root.handlers[:] = handlers
    for name, state in before.items():
        _put(logging.getLogger(name), state)


State = tuple[int, bool, bool, list[logging.Handler], list[object]]


def _state(logger: logging.Logger) -> State:
    return logger.level, logger.propagate, logger.disabled, list(logger.handlers), list(logger.filters)


def _put(logger: logging.Logger, state: State) -> None:
    level, logger.propagate, logger.disabled, logger.handlers[:], logger.filters[:] = state  # type: ignore[assignment]
    logger.setLevel(level)


def test_one_of_several_workers_is_named_in_every_line() -> None:
    log = Log(worker="worker-2")
    OURS.info("hello")
    assert [(entry["worker"], entry["message"]) for entry in log.entries] == [("worker-2", "hello")]
    people = Log("info,human", worker="worker-2")
    OURS.info("hello")
    assert people.text.endswith(" INFO    worker-2 test hello\n")


@pytest.mark.parametrize(
    ("level_form", "tty", "people"),
    [
        ("info", True, True),
        ("info", False, False),
        ("info,json", True, False),
        ("info,human", False, True),
    ],
)
def test_the_form_is_asked_for_or_follows_the_terminal(level_form: str, tty: bool, people: bool) -> None:
    log = Log(level_form, tty=tty)
    OURS.info("hello")
    assert log.text.startswith("{") is not people


@pytest.mark.parametrize(("level", "count"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_the_level_is_that_of_our_own_loggers(level: str, count: int) -> None:
    log = Log(level)
    for say in (OURS.debug, OURS.info, OURS.warning, OURS.error):
        say("x")
    assert len(log.entries) == count


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="LOUD"):
        Log("loud")


def test_a_second_setup_replaces_the_first() -> None:
    first, second = Log(), Log()
    OURS.info("once")
    assert (first.text, len(second.entries)) == ("", 1)


def test_an_entry_has_time_level_logger_message_and_facts() -> None:
    log = Log()
    OURS.warning("hello %s", "you", extra={"facts": {"count": 3, "at": "never"}})
    entry = log.entries[0]
    assert str(entry.pop("at")).endswith("Z")
    assert entry == {"level": "warning", "logger": "troyproxy.test", "message": "hello you", "count": 3}


def test_a_line_for_people_has_the_same() -> None:
    log = Log("info,human")
    OURS.info("hello", extra={"facts": {"count": 3, "who": "you there", "ok": True, "none": "", "x": "a=b"}})
    assert log.text[12:] == ' INFO    test hello count=3 who="you there" ok=true none="" x="a=b"\n'


def test_an_access_line_can_be_read_back() -> None:
    log = Log()
    AccessLog().request_finished(row())
    assert {"status": 200, "provider": "alpha", "model": "m1", "cost_usd": 0.25}.items() <= log.entries[0].items()


@pytest.mark.parametrize("name", ["prompt", "messages", "Authorization", "api_key", "content"])
def test_a_fact_that_may_hold_content_is_dropped(name: str) -> None:
    log = Log()
    OURS.info("hello", extra={"facts": {name: "something private", "kept": 1}})
    assert "private" not in log.text
    assert log.entries[0]["kept"] == 1


@pytest.mark.parametrize("value", [None, ["a prompt"], {"role": "user"}, b"bytes", float("nan"), float("inf")])
def test_a_fact_is_a_number_a_flag_or_a_text(value: object) -> None:
    log = Log()
    OURS.info("hello", extra={"facts": {"odd": value}})
    assert "odd" not in log.entries[0]


def test_facts_that_are_none_are_ignored() -> None:
    log = Log()
    OURS.info("hello", extra={"facts": "no mapping"})
    assert log.entries[0]["message"] == "hello"


@pytest.mark.parametrize("form", ["json", "human"])
def test_a_key_is_masked_in_messages_and_facts(form: str) -> None:
    log = Log(f"info,{form}")
    OURS.info("said Bearer abcdefghijklm", extra={"facts": {"reason": "bad key sk-0123456789abcdef"}})
    assert "abcdefghijklm" not in log.text
    assert "0123456789abcdef" not in log.text


def test_a_mask_of_the_caller_is_used() -> None:
    stream = io.StringIO()
    setup("info", stream, tty=False, mask=lambda text: mask_keys(text).replace("hunter2", "***"))
    OURS.info("hunter2", extra={"facts": {"reason": "hunter2"}})
    assert "hunter2" not in stream.getvalue()


@pytest.mark.parametrize("form", ["json", "human"])
def test_a_line_break_or_terminal_control_forges_nothing(form: str) -> None:
    log = Log(f"info,{form}")
    OURS.info("a\r\nb\x1b[2J\u2028\x7f\x85", extra={"facts": {"model": "m\nforged"}})
    assert log.text.isascii()
    assert log.text[:-1].isprintable()


def test_a_long_fact_is_cut() -> None:
    log = Log()
    OURS.info("hello", extra={"facts": {"model": "m" * 10_000}})
    assert len(str(log.entries[0]["model"])) == 501


def test_an_exception_shows_type_and_place_but_not_what_it_quotes() -> None:
    log = Log()
    try:
        int("my private prompt")
    except ValueError:
        OURS.exception("failed")
    assert log.entries[0]["error"] == "ValueError"
    assert "test_an_exception_shows_type" in str(log.entries[0]["where"])
    assert "private" not in log.text


def refuse() -> None:
    raise PermissionError(13, "denied")


def start(*, hidden: bool) -> None:
    try:
        refuse()
    except OSError as error:
        raise ConfigError("TROY_PORT is no port") from (None if hidden else error)


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        (False, "ConfigError: TROY_PORT is no port < PermissionError: [Errno 13] denied"),
        (True, "ConfigError: TROY_PORT is no port"),
    ],
)
def test_our_own_errors_and_those_of_the_system_show_their_message(hidden: bool, shown: str) -> None:
    log = Log()
    try:
        start(hidden=hidden)
    except ConfigError:
        OURS.exception("failed")
    assert log.entries[0]["error"] == shown


def test_a_ring_of_causes_ends() -> None:
    log = Log()
    one, two = KeyError("a"), TypeError("b")
    one.__cause__, two.__cause__ = two, one
    OURS.error("failed", exc_info=one)
    assert log.entries[0]["error"] == "KeyError < TypeError"


def test_an_exception_that_is_none_is_no_fact() -> None:
    log = Log()
    OURS.error("failed", exc_info=(None, None, None))
    assert "error" not in log.entries[0]


def test_other_libraries_speak_from_warning_on_and_one_line_only() -> None:
    log = Log("debug")
    library = logging.getLogger("somelib")
    library.setLevel(logging.DEBUG)
    library.debug("Authorization: …")
    library.info("GET https://…")
    library.warning("careful\nfuture: <Task exception=ValueError('prompt')>")
    assert [entry["message"] for entry in log.entries] == ["careful"]


def test_the_server_tells_of_its_start_but_not_of_each_path() -> None:
    log = Log()
    logging.getLogger("uvicorn.error").info("Started")
    logging.getLogger("uvicorn.access").info("GET /?key=…")
    assert [entry["message"] for entry in log.entries] == ["Started"]


def test_an_exporter_that_complains_at_each_try_is_not_shown() -> None:
    log = Log()
    logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter").warning("away, retrying")
    logging.getLogger("opentelemetry.sdk").warning("queue full")
    assert [entry["message"] for entry in log.entries] == ["queue full"]


def test_a_broken_entry_and_a_closed_stream_hurt_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    log = Log()
    log.handler.handle(OURS.makeRecord(OURS.name, logging.INFO, __file__, 1, "%d private", ("no number",), None))
    log.stream.close()
    OURS.info("hello private")
    assert "private" not in capsys.readouterr().err


def test_a_narrow_stream_gets_escapes() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    setup("info,human", stream, tty=False)
    OURS.info("grün")
    stream.flush()
    assert b"gr\\xfcn" in raw.getvalue()


def test_handlers_of_others_stay() -> None:
    root, mine = logging.getLogger(), logging.NullHandler()
    root.addHandler(mine)
    handler = Log().handler
    assert mine in root.handlers
    assert isinstance(handler, QuietHandler)
