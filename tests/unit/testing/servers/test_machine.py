"""The machine for real servers, in front of the test broker, whose clock stands unless the machine lets time pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from sharestate import KAFKA_4_4
from sharestate.broker import QUICK_SETTINGS, StandingClock, TestBroker
from sharestate.testing.groups import Guarantee, GuaranteeBrokenError, ShareGroupMachine
from sharestate.testing.servers.machine import RealServerMachine, values_of
from tests.planted.servers import ANSWERED_ONLY
from tests.support.batch_bytes import batch_bytes


@pytest.fixture
def server() -> Iterator[TestBroker]:
    """A broker in which locks last as short a time as brokers let them."""
    config = {**QUICK_SETTINGS, "group.share.min.record.lock.duration.ms": "1000"}
    with TestBroker(profile=KAFKA_4_4.healed, config=config, clock=StandingClock()) as server:
        yield server


def machine(server: TestBroker, runs: int, **fields: Any) -> type[RealServerMachine]:  # noqa: ANN401 - as classes have them
    """Return a machine in front of a broker."""

    def advance_clock(_: RealServerMachine, ms: int) -> None:
        server.advance(ms=ms)

    quick = {"lock_duration_ms": 10_000, "clock_tolerance_ms": 4_000, "max_wait_ms": 0, "advance_clock": advance_clock}
    address = {"bootstrap_servers": server.bootstrap_servers}
    made: Any = type("TheMachine", (RealServerMachine,), {**address, **quick, **fields})
    made.TestCase.settings = settings(made.TestCase.settings, max_examples=runs)
    return made  # type: ignore[no-any-return] # made of names and values


def test_nothing_is_found_in_a_healthy_server(server: TestBroker) -> None:
    """Runs judge what members get, and find nothing."""
    judged = machine(server, 3)

    judged.TestCase().runTest()

    assert judged.reached["member_fetches"] > 10
    assert not [noted for noted in judged.reached if noted.startswith("given up")]


def test_groups_and_partitions_may_be_beside_each_other(server: TestBroker) -> None:
    """What happens at one share partition is judged there, and nothing is found in a healthy server."""
    judged = machine(server, 2, share_partitions=((0, 0), (0, 1), (1, 0)))

    judged.TestCase().runTest()

    assert judged.reached["elsewhere"] > 10
    assert not [noted for noted in judged.reached if noted.startswith("given up")]


def test_runs_may_go_on_at_once(server: TestBroker) -> None:
    """Each of them has a topic and a group of its own, and none disturbs another one."""
    judged = machine(server, 4, runs_at_once=4, advance_clock=ShareGroupMachine.advance_clock)

    judged.TestCase().runTest()

    assert judged.reached["member_fetches"] > 10
    assert judged.reached["time_passes"] == 0


def test_a_server_that_forgets_acknowledgements_is_found(server: TestBroker) -> None:
    """What is found has the program as a note, as it was found."""
    broken = machine(server, 10)

    with server.fault(ANSWERED_ONLY["acknowledgements"]), pytest.raises(GuaranteeBrokenError) as found:
        broken.TestCase().runTest()

    (note,) = found.value.__notes__
    assert "state.group_starts(" in note
    assert "state.teardown()" in note


def test_other_bytes_than_those_produced_are_found(server: TestBroker) -> None:
    """A server that delivers the record of another partition at an offset is found by what is in it."""

    def other_bytes(self: RealServerMachine, member: str, records: bytes) -> None:
        RealServerMachine._expect_values(self, member, records and batch_bytes())  # noqa: SLF001 - what a server sends

    with pytest.raises(GuaranteeBrokenError) as found:
        machine(server, 5, _expect_values=other_bytes).TestCase().runTest()

    assert found.value.guarantee is Guarantee.ONLY_PRODUCED


def test_what_took_too_long_is_not_judged(server: TestBroker) -> None:
    """Without any tolerance each run is given up, and counted."""
    strict = machine(server, 2, clock_tolerance_ms=0)

    strict.TestCase().runTest()

    assert strict.reached["given up: an answer took longer than the tolerance"] == 2


def test_records_are_read_as_far_as_they_go() -> None:
    """A batch that is cut off is left out; those before it are read."""
    batch = batch_bytes()

    assert [*values_of(batch + batch[:-1])] == [(0, b"v")]
