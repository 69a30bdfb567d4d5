"""Raw members, in front of the test broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sharestate import ErrorCode
from sharestate.broker import QUICK_SETTINGS, Disconnect, Fail, Fault, TestBroker
from sharestate.testing.servers import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    Fetched,
    FetchLimits,
    RawMember,
)
from sharestate.testing.servers.raw_members import CONNECTION_LOST
from tests.support.wire_members import GROUP, TOPIC, filled

AT_ONCE = FetchLimits(max_wait_ms=0)
SOON = FetchLimits(max_wait_ms=5_000)
"""The broker may take a moment to notice that a connection is cut."""


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    """A broker with four records, for a group that begins at the first."""
    with TestBroker(config=QUICK_SETTINGS) as broker:
        broker.configure_group(GROUP, {"share.auto.offset.reset": "earliest"})
        filled(broker, 4)
        yield broker


@pytest.fixture
def member(broker: TestBroker) -> Iterator[RawMember]:
    """A member that has joined."""
    member = RawMember(broker.bootstrap_servers, GROUP, [TOPIC])
    member.join()
    yield member
    member.hang_up()


def acquired(fetched: Fetched) -> list[tuple[int, int, int]]:
    """Return the ranges of the only partition."""
    assert fetched.error == "none"
    return [each for ranges in fetched.acquired.values() for each in ranges]


def test_every_type_does_what_it_says(member: RawMember) -> None:
    """Of records that are accepted, released, rejected and renewed, those that are released come again."""
    assert acquired(member.fetch(limits=AT_ONCE)) == [(0, 3, 1)]
    (partition,) = member.assigned

    types = [(0, 0, (ACCEPT,)), (1, 1, (RELEASE,)), (2, 2, (REJECT,)), (3, 3, (RENEW,))]
    codes = member.acknowledge({partition: types}, renews=True)

    assert codes == {None: "none", partition: "none"}
    assert acquired(member.fetch(limits=AT_ONCE)) == [(1, 1, 2)]


def test_a_fetch_acknowledges_and_brings_bytes(member: RawMember) -> None:
    """Acknowledgements ride on a fetch, which brings the records that it acquires."""
    fetched = member.fetch(limits=FetchLimits(max_wait_ms=0, max_records=1, batch_size=1))
    (partition,) = member.assigned
    assert b"0" in fetched.records[partition]

    fetched = member.fetch({partition: [(0, 0, (REJECT,))]}, AT_ONCE)

    assert fetched.codes[partition] == ("none", 0)
    assert acquired(fetched) == [(1, 3, 1)]


def test_a_fetch_renews(member: RawMember) -> None:
    """A fetch without limits renews locks and brings nothing."""
    member.fetch(limits=AT_ONCE)
    (partition,) = member.assigned

    fetched = member.fetch({partition: [(0, 3, (RENEW,))]})

    assert (fetched.codes[partition], acquired(fetched)) == (("none", 0), [])


@pytest.mark.parametrize("how", ["closes", "reconnects"])
def test_a_session_that_ends_releases_what_it_held(member: RawMember, how: str) -> None:
    """A session that is closed, and one whose connection is cut, hold nothing any more."""
    member.fetch(limits=AT_ONCE)

    if how == "closes":
        member.acknowledge({}, closes=True)
    else:
        member.reconnect()

    assert member.epoch == 0
    assert acquired(member.fetch(limits=SOON)) == [(0, 3, 2)]


def test_a_member_that_leaves_may_join_again(broker: TestBroker, member: RawMember) -> None:
    """Another member is assigned what the one that has left had."""
    member.leave()
    other = RawMember(broker.bootstrap_servers, GROUP, [TOPIC], "other")

    other.join()

    assert (other.member_id, other.assigned) == ("other", member.assigned)
    other.leave()


def test_a_broker_that_hangs_up_is_found_again(broker: TestBroker, member: RawMember) -> None:
    """A request that is not answered is reported as such, and the next one opens a connection."""
    member.fetch(limits=AT_ONCE)
    with broker.fault(Fault(on="ShareFetch", action=Disconnect())):
        assert member.fetch(limits=AT_ONCE).error == CONNECTION_LOST

    assert acquired(member.fetch(limits=SOON)) == [(0, 3, 2)]


def test_errors_of_the_coordinator_are_told(broker: TestBroker, member: RawMember) -> None:
    """A heartbeat that is refused says how; if the coordinator has moved, it is looked for."""
    with broker.fault(Fault(on="ShareGroupHeartbeat", action=Fail(ErrorCode.NOT_COORDINATOR))):
        assert member.heartbeat() == "not_coordinator"

    assert member.heartbeat() == "none"
