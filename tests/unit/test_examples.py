"""The scripts in `examples`: the story runs, and the mock broker does what a broker does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples import testing_share_partitions
from examples.mock_broker import Consumer, MockBroker
from examples.testing_share_groups import BROKEN, CORRECT
from sharestate import AcknowledgeType, ControlType, ErrorCode
from sharestate.testing.groups import ShareGroupMachine
from tests.support.mock_machine import broken_by
from tests.support.partition_machine import difference_of

EXAMPLES = Path(__file__).parents[2] / "examples"
LOCK_MS = 30_000


def output_of(script: str) -> list[str]:
    """Run an example on its own; it warns of nothing."""
    result = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / script)], capture_output=True, check=True, text=True
    )
    assert result.stderr == ""
    return result.stdout.splitlines()


def start_offsets(broker: MockBroker) -> list[int]:
    """Return the SPSO of each partition."""
    return [leader.partition.start_offset for leader in broker.leaders]


def test_the_story_ends_well() -> None:
    """Its last line is its verdict."""
    assert output_of("story.py")[-1].startswith("VERDICT: as it should be. 7 records were processed, 1 was given up")


def test_the_mock_broker_runs_on_its_own() -> None:
    """At its end all records of both partitions have been delivered."""
    assert output_of("mock_broker.py")[-1].startswith("bob gets ['b3', 'b4', 'a1'] and accepts them")


def test_the_dead_letters_end_well() -> None:
    """Both records that nobody could process have dead letters, and the one that a crash has interrupted has two."""
    *lines, verdict = output_of("dead_letters.py")

    assert verdict.startswith("VERDICT: as it should be. 2 records have dead letters, 1 of them twice")
    assert [line.split()[2] for line in lines if "dead letter:" in line][-3:] == [
        "orders-0@2",
        "orders-0@4",
        "orders-0@4",
    ]


CLIENTS = {"test_your_consumer.py": 5, "test_with_kio.py": 2}
"""The tests of clients, and how many each file has."""


@pytest.fixture(scope="module")
def outcomes() -> list[str]:
    """The summary of a run of them, with the plugin for pytest, in a process of its own."""
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "sharestate.broker.pytest_plugin"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    files = [EXAMPLES / script for script in CLIENTS]
    result = subprocess.run(
        [*command, "-p", "no:cacheprovider", *files], capture_output=True, text=True, check=False, env=environment
    )
    _, _, summary = result.stdout.partition("short test summary info")
    return summary.splitlines()


@pytest.mark.parametrize(("script", "count"), CLIENTS.items())
def test_the_tests_of_clients_pass(script: str, count: int, outcomes: list[str]) -> None:
    """Each of them, and there are as many as there should be."""
    ended = [line.partition(" ")[0] for line in outcomes if f"{script}::" in line]

    assert ended == ["PASSED"] * count, outcomes


def test_partitions_share_the_most_records_of_a_fetch() -> None:
    """Each gives what is left of it, rounded up to a batch, and the next fetch begins with another partition."""
    broker = MockBroker(partitions=3)
    for log, letter in zip(broker.logs, "abc", strict=True):
        log.append(letter + "0", letter + "1")
        log.append(letter + "2", letter + "3")
    ann, bob = Consumer(broker, "ann"), Consumer(broker, "bob")

    assert ann.poll(max_records=5) == ["a0", "a1", "a2", "a3", "b0", "b1"]
    assert bob.poll(max_records=1) == ["b2", "b3"]
    assert ann.poll(max_records=5) == ["c0", "c1", "c2", "c3"]


def test_the_next_poll_accepts_what_was_polled() -> None:
    """The SPSO moves past it, and nobody gets it again."""
    broker = MockBroker(partitions=1)
    broker.logs[0].append("a0", "a1")
    ann = Consumer(broker, "ann")

    assert ann.poll() == ["a0", "a1"]
    assert ann.poll() == []
    broker.advance_clock(LOCK_MS + 1)
    assert ann.poll() == []
    assert start_offsets(broker) == [2]


def test_a_released_record_is_delivered_again_and_a_rejected_one_is_not() -> None:
    """What a member says of single records decides."""
    broker = MockBroker(partitions=1)
    broker.logs[0].append("a0", "a1", "a2")
    ann, bob = Consumer(broker, "ann"), Consumer(broker, "bob")
    ann.poll()
    ann.acknowledge(0, 0, AcknowledgeType.REJECT)
    ann.acknowledge(0, 1, AcknowledgeType.RELEASE)

    assert ann.commit() == {0: ErrorCode.NONE}
    assert bob.poll() == ["a1"]
    assert bob.commit() == {0: ErrorCode.NONE}
    assert start_offsets(broker) == [3]


def test_members_get_committed_records_only() -> None:
    """Records of open transactions wait, aborted ones are never delivered, and markers do not hold up the SPSO."""
    broker = MockBroker(partitions=1)
    (log,) = broker.logs
    log.append("a0", "a1", producer_id=7)
    log.append("b2", producer_id=8)
    log.append(producer_id=7, control=ControlType.ABORT)
    log.append("c4")
    ann = Consumer(broker, "ann")

    assert ann.poll() == []
    log.append(producer_id=8, control=ControlType.COMMIT)
    assert ann.poll() == ["b2", "c4"]
    assert ann.commit() == {0: ErrorCode.NONE}
    assert start_offsets(broker) == [6]


def test_compacted_records_do_not_hold_up_the_spso() -> None:
    """The consumer acknowledges their offsets as gaps."""
    broker = MockBroker(partitions=1)
    broker.logs[0].append("a0", "a1", "a2")
    del broker.logs[0].values[1]
    ann = Consumer(broker, "ann")

    assert ann.poll() == ["a0", "a2"]
    assert ann.commit() == {0: ErrorCode.NONE}
    assert start_offsets(broker) == [3]


def test_a_closed_session_releases_what_the_member_held() -> None:
    """Another member gets it at once, and the member's own session is gone."""
    broker = MockBroker(partitions=2)
    broker.logs[0].append("a0")
    broker.logs[1].append("b0")
    ann, bob = Consumer(broker, "ann"), Consumer(broker, "bob")
    ann.poll()
    assert bob.poll() == []

    broker.close_session("ann")
    assert sorted(bob.poll()) == ["a0", "b0"]
    with pytest.raises(KeyError, match="ann"):
        ann.broker.share_fetch("ann", 1)


def test_expired_locks_make_records_available() -> None:
    """Fetches that wait should look again, and a late acknowledgement is refused."""
    broker = MockBroker(partitions=1)
    broker.logs[0].append("a0")
    ann, bob = Consumer(broker, "ann"), Consumer(broker, "bob")
    ann.poll()

    broker.advance_clock(0)  # takes note of what happened so far
    assert broker.advance_clock(LOCK_MS) is False
    assert broker.advance_clock(1) is True
    assert bob.poll() == ["a0"]
    assert ann.commit() == {0: ErrorCode.INVALID_RECORD_STATE}
    assert bob.commit() == {0: ErrorCode.NONE}


def test_a_new_leader_knows_what_was_persisted() -> None:
    """Accepted records stay accepted, and what was acquired is available; the former holder is refused."""
    broker = MockBroker(partitions=1)
    broker.logs[0].append("a0", "a1")
    broker.logs[0].append("a2")
    ann, bob = Consumer(broker, "ann"), Consumer(broker, "bob")
    ann.poll(max_records=1)
    ann.commit()
    bob.poll()

    broker.fail_over(0)
    assert broker.leaders[0].partition.leader_epoch == 1
    assert start_offsets(broker) == [2]
    assert bob.commit() == {0: ErrorCode.INVALID_RECORD_STATE}
    assert ann.poll() == ["a2"]


def test_a_fetch_below_the_log_start_moves_the_spso() -> None:
    """Deleted records are gone: one fetch answers nothing, and the next one begins at the log start."""
    broker = MockBroker(partitions=1)
    broker.logs[0].append("a0", "a1")
    broker.logs[0].append("a2", "a3")
    broker.logs[0].delete_records(before=3)
    ann = Consumer(broker, "ann")

    assert ann.poll() == []
    assert start_offsets(broker) == [3]
    assert ann.poll() == ["a3"]


def test_nothing_is_acquired_while_as_much_is_in_flight_as_may_be() -> None:
    """The default is 2,000 records (share.partition.max.record.locks); acknowledging makes room."""
    broker = MockBroker(partitions=1)
    for first in range(0, 3_000, 500):
        broker.logs[0].append(*map(str, range(first, first + 500)))
    ann, bob = Consumer(broker, "ann"), Consumer(broker, "bob")

    assert len(ann.poll(max_records=5_000)) == 2_000
    assert bob.poll() == []
    ann.commit()
    assert bob.poll() == [str(offset) for offset in range(2_000, 2_500)]


@pytest.mark.parametrize("machine", BROKEN, ids=lambda machine: machine.__name__)
def test_the_bugs_of_a_naive_share_group_are_found(machine: type[ShareGroupMachine]) -> None:
    """One guarantee is broken until the last bug is mended."""
    assert broken_by(machine) is not None


@pytest.mark.parametrize("machine", CORRECT, ids=lambda machine: machine.__name__)
def test_nothing_is_found_in_a_share_group_without_bugs(machine: type[ShareGroupMachine]) -> None:
    """The mended one is as good as the mock broker."""
    assert broken_by(machine, max_examples=60) is None


def test_the_mistakes_of_a_leader_are_found() -> None:
    """One thing differs until the last mistake is mended."""
    for machine in testing_share_partitions.BROKEN:
        assert difference_of(machine) is not None
    assert difference_of(testing_share_partitions.LeaderMachine, max_examples=30) is None
