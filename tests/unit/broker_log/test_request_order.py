"""The order of the requests of a log: by the times at which they were taken, and within a connection by numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sharestate.broker_log import LoggedRequest
from sharestate.broker_log.request_order import RequestOrder
from tests.support.logged_requests import GivenRequests


def request(connection: str, number: int, at_ms: int, file: str = "request.log", waits_ms: int = 0) -> LoggedRequest:
    """Return a request of a connection that was taken at a time, and answered half a millisecond later or more."""
    given = GivenRequests()
    given.add("METADATA", {}, {}, at_ms=at_ms, waits_us=waits_ms * 1000)
    (made,) = given
    return made._replace(connection=connection, correlation_id=number, file=file)


def ordered(*requests: LoggedRequest, order: RequestOrder | None = None) -> list[tuple[str, int]]:
    """Return the connections and numbers of requests in their order."""
    order = RequestOrder() if order is None else order
    return [(each.connection, each.correlation_id) for each in order.ordered(requests)]


def test_requests_of_several_connections_are_in_the_order_of_their_times() -> None:
    """At those they were taken; lines are written when requests are answered."""
    found = ordered(request("a", 7, 30), request("c", 1, 20), request("a", 8, 40), request("b", 3, 10, waits_ms=50))

    assert found == [("b", 3), ("c", 1), ("a", 7), ("a", 8)]


def test_within_a_connection_the_numbers_decide() -> None:
    """Its requests never overlap, so a time that says otherwise is not exact; those of others keep their place."""
    assert ordered(request("a", 8, 10), request("b", 1, 11), request("a", 7, 12)) == [("a", 7), ("b", 1), ("a", 8)]


@pytest.mark.parametrize(("later_ms", "name"), [(1, "a"), (1_000, "a"), (1_001, "a#2")])
def test_a_connection_whose_numbers_begin_anew_is_another_one(later_ms: int, name: str) -> None:
    """If that is more than a second later: a request does not wait that long to be taken."""
    found = ordered(request("a", 8, 10), request("a", 1, 10 + later_ms))

    assert found == ([("a", 1), ("a", 8)] if name == "a" else [("a", 8), ("a#2", 1)])


def test_a_line_that_two_files_have_is_taken_once() -> None:
    """It is the same request if number and time are the same, and a file has each of its lines once."""
    order = RequestOrder()
    found = ordered(
        request("a", 1, 10, "one"),
        request("a", 1, 10, "other"),
        request("a", 2, 20, "one"),
        request("a", 2, 30, "other"),
        request("b", 1, 10, "one"),
        request("b", 1, 10, "one"),
        order=order,
    )

    assert sorted(found) == [("a", 1), ("a", 2), ("a", 2), ("b", 1), ("b", 1)]
    assert order.repeated == 1


@pytest.mark.parametrize(("ends_s", "late"), [(9.9, 0), (10.1, 1)])
def test_a_line_that_comes_too_late_is_counted(ends_s: float, late: int) -> None:
    """Requests that have waited ten seconds for earlier ones are in their order for good."""
    order = RequestOrder()
    list(order.ordered([request("a", 1, 60_000), request("b", 1, 60_000 - round(ends_s * 1000))]))

    assert order.late == late


def test_requests_of_one_instant_are_sorted_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """More wait than should, and none may go yet: they are looked through each time that there are twice as many."""
    monkeypatch.setattr("sharestate.broker_log.request_order._MOST_WAITING", 10)
    looked = 0
    before = RequestOrder._before  # noqa: SLF001 - it goes through all that wait

    def counted(order: RequestOrder, end_us: int) -> Iterator[LoggedRequest]:
        nonlocal looked
        looked += 1
        return before(order, end_us)

    monkeypatch.setattr(RequestOrder, "_before", counted)

    assert len(ordered(*(request("a", number, 20) for number in range(1_000)))) == 1_000
    # The first request; 11, 23, 47 ... 767; and the end.
    assert looked == 1 + 7 + 1
