"""The table from foreign exceptions to faults."""

from __future__ import annotations

import errno
import ssl

import aiohttp
import httpx
import pytest

from troyproxy.ports import UpstreamFailed
from troyproxy.resilience.faults import Fault
from troyproxy.upstream.failures import Progress, failed, failures

SENT = Progress(sent=True)


@pytest.mark.parametrize(
    ("exc", "fault", "sent"),
    [
        (httpx.PoolTimeout("x"), Fault.SATURATED, False),
        (httpx.ConnectTimeout("x"), Fault.TIMEOUT_CONNECT, False),
        (httpx.ConnectError("x"), Fault.CONNECT, False),
        (httpx.ReadTimeout("x"), Fault.TIMEOUT_FIRST_BYTE, True),
        (httpx.ReadError("x"), Fault.RESET, True),
        (httpx.RemoteProtocolError("x"), Fault.PROTOCOL, True),
        (aiohttp.ServerDisconnectedError(), Fault.RESET, True),
        (aiohttp.ClientPayloadError("x"), Fault.RESET, True),
        (ssl.SSLError(1, "x"), Fault.TLS, False),
        (ConnectionResetError(104, "reset"), Fault.RESET, True),
        (KeyError("x"), Fault.PROTOCOL, True),
    ],
)
def test_an_exception_is_one_fault(exc: BaseException, fault: Fault, sent: bool) -> None:
    mapped = failed(exc, SENT)
    assert (mapped.fault, mapped.body_sent) == (fault, sent)


def test_the_cause_is_believed_more_than_the_transport() -> None:
    exc = httpx.ConnectTimeout("x")
    exc.__cause__ = aiohttp.ServerDisconnectedError()
    assert failed(exc, SENT).fault is Fault.RESET


def test_a_timeout_in_our_own_queue_is_saturation() -> None:
    assert failed(aiohttp.ConnectionTimeoutError("x"), Progress(queued=True)).fault is Fault.SATURATED


def test_a_detail_is_a_class_and_a_system_error() -> None:
    exc = ConnectionResetError(errno.ECONNRESET, "to https://secret.example")
    assert str(failed(exc, SENT)) == "ConnectionResetError: Connection reset by peer"


def test_our_own_mistakes_pass() -> None:
    with pytest.raises(ZeroDivisionError), failures(SENT):
        raise ZeroDivisionError


def test_a_foreign_one_is_kept_as_the_cause() -> None:
    with pytest.raises(UpstreamFailed) as caught, failures(SENT):
        raise httpx.ReadError("x")
    assert isinstance(caught.value.__cause__, httpx.ReadError)
