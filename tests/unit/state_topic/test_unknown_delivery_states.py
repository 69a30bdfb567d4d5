"""A release of Kafka to come may store delivery states that nobody knows yet: every reader says so, or goes on."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from sharestate import (
    InitializationError,
    InMemoryPersister,
    Lifecycle,
    MalformedInputError,
    PersistedState,
    SharePartition,
)
from sharestate.cli.commands import sharestate
from sharestate.coordinator import COORDINATOR_PROFILES, CoordinatorProfile, decode_record, encode_record
from sharestate.dead_letter_topic.archived import ArchivedRecords
from sharestate.diagnose import diagnose_stored
from sharestate.explain import StoredReason, explain_stored
from sharestate.history.runner import ReplaySettings, replay_events
from sharestate.log_check.verify import Verdict, verify
from sharestate.monitor.following import Follower
from sharestate.monitor.readings import ClusterReading, reading_of
from sharestate.persister import (
    InitializeStateParameters,
    PartitionErrorData,
    PartitionStateBatchData,
    PartitionStateData,
    WriteStateParameters,
)
from sharestate.plots.lines import line_of
from sharestate.state_topic import RebuiltPartition, StateTopic
from sharestate.values.records import unknown_state
from sharestate.values.requests import StateBatch
from tests.support.hand_made_events import HandMadeLife
from tests.support.logged_shard import led
from tests.support.watched_cluster import KEY, WatchedCluster, snapshot

BUSY: Final = Path(__file__).parents[2] / "data" / "broker-log" / "k440-busy"
"""A short run of a broker, with its request log."""

UNKNOWN: Final = (10, 14, 5, 1)
"""The state after those of Kafka 4.4.0, whose RecordState has 0 to 4."""

SAID: Final = "unknown delivery state 5 at 10-14"


@pytest.fixture
def cluster() -> WatchedCluster:
    """A cluster whose state topic has one share partition, with records that are acknowledged and unknown ones."""
    cluster = WatchedCluster()
    cluster.write(snapshot(5, (5, 9, 2, 1), UNKNOWN))
    return cluster


def test_the_states_of_kafka_are_known() -> None:
    """0 to 4 are (RecordState, Kafka 4.4.0); of others the first is named, with its offsets."""
    assert unknown_state([(0, 0, state, 1) for state in range(5)]) is None
    assert unknown_state([(0, 4, 2, 1), UNKNOWN, (20, 20, -1, 1)]) == SAID


def test_a_leader_does_not_take_over() -> None:
    """Its initialization fails, as where Kafka's throws (rule 24.2), and says what it has read."""
    partition = SharePartition(KEY)
    partition.initialize()
    error = partition.read_succeeded(PersistedState(start_offset=5, state_batches=(StateBatch(*UNKNOWN),))).error

    assert isinstance(error, InitializationError)
    assert (error.reason, partition.lifecycle) == (SAID, Lifecycle.FAILED)


@pytest.mark.parametrize("profile", COORDINATOR_PROFILES.values(), ids=COORDINATOR_PROFILES)
def test_share_coordinators_keep_them(profile: CoordinatorProfile) -> None:
    """A share coordinator judges no delivery state: what is written is stored and read, byte for byte."""
    coordinator = led(profile)
    (record,) = coordinator.write(UNKNOWN, start=5).records

    assert decode_record(*encode_record(record)) == record
    assert coordinator.state.state_batches == (StateBatch(*UNKNOWN),)


def test_persisters_keep_them() -> None:
    """One stores what it is given."""
    persister = InMemoryPersister()
    start = PartitionStateData(partition=0, start_offset=5, state_epoch=1)
    persister.initialize_state(InitializeStateParameters.of("g", "t", start))
    entry = PartitionStateBatchData(
        partition=0, state_epoch=1, leader_epoch=1, start_offset=5, state_batches=[StateBatch(*UNKNOWN)]
    )
    written = persister.write_state(WriteStateParameters.of("g", "t", entry)).result(timeout=0)

    assert written.find("t", 0) == PartitionErrorData(partition=0)
    stored = persister.stored("g", "t", 0)
    assert stored is not None
    assert stored.state_batches == (StateBatch(*UNKNOWN),)


def rebuilt_of(cluster: WatchedCluster) -> RebuiltPartition:
    """Return the share partition as the state topic has it."""
    topic = StateTopic()
    for logged in cluster.records(cluster.state_offsets()):
        topic.add(logged)
    (rebuilt,) = topic.share_partitions()
    return rebuilt


def test_what_is_rebuilt_says_so(cluster: WatchedCluster) -> None:
    """They count as not done; the explanation, the diagnosis and the share partition itself name them."""
    rebuilt = rebuilt_of(cluster)
    (finding,) = diagnose_stored([rebuilt], records=1, log_ends={KEY: 20}).findings
    (reason,) = explain_stored(rebuilt, offset=12).findings

    assert (rebuilt.unknown_state, rebuilt.terminal_count) == (SAID, 5)
    assert finding.rule.name == "stored-unknown-state"
    assert f"There is an {SAID}" in finding.evidence
    assert (reason.reason, reason.facts["state"]) == (StoredReason.UNREADABLE, "5")


def test_the_command_says_so(cluster: WatchedCluster, tmp_path: Path) -> None:
    """``state rebuild`` has a line of it, and ``state decode`` the number."""
    ((key, value),) = cluster.logs[0]
    assert value is not None
    row = {"statePartition": 0, "offset": 0, "key": b64encode(key).decode(), "value": b64encode(value).decode()}
    (tmp_path / "state.jsonl").write_text(json.dumps(row) + "\n")

    rebuilt = CliRunner().invoke(sharestate, ["state", "rebuild", str(tmp_path / "state.jsonl")])
    decoded = CliRunner().invoke(sharestate, ["state", "decode", str(tmp_path / "state.jsonl")])

    assert (rebuilt.exit_code, decoded.exit_code) == (0, 0)
    assert f"g {KEY.topic_id} 0 {SAID}" in rebuilt.output
    assert "10-14:5:1" in decoded.output


def test_a_monitor_counts_them_as_not_done(cluster: WatchedCluster) -> None:
    """Neither acknowledged nor archived, and the first of them is what the share partition waits for."""
    follower = Follower()
    offsets = cluster.state_offsets()
    for logged in cluster.records(follower.wanted(offsets)):
        follower.add(logged)
    follower.caught_up(offsets)
    ((rebuilt, happened),) = follower.share_partitions()
    reading = reading_of(follower, ClusterReading(offsets, {KEY: range(20)}, {}, {}), 0)
    (partition,) = reading.share_partitions

    assert rebuilt.unknown_state == SAID
    assert (happened.acknowledged, happened.archived) == (5, 0)
    assert (partition.done_count, partition.unfinished_offset, partition.lag) == (5, 10, 10)


def test_dead_letters_are_not_among_them(cluster: WatchedCluster) -> None:
    """What is in no state on the way to the queue or archived was not handed over."""
    archived = ArchivedRecords(StateTopic())
    archived.read(cluster.records(cluster.state_offsets()))

    assert archived.accepted() == {KEY: [(5, 9)]}


def test_they_are_not_drawn() -> None:
    """A stored state with one is refused, as there is no color for it."""
    state = PersistedState(start_offset=5, state_batches=(StateBatch(*UNKNOWN),))

    with pytest.raises(MalformedInputError, match=SAID) as refused:
        line_of(state)
    assert refused.value.field == "state_batches"


def test_a_brokers_log_with_one_is_not_checked(tmp_path: Path) -> None:
    """A broker that writes one is newer than what is known here, and is blamed for nothing."""
    log = gzip.decompress((BUSY / "request.log.gz").read_bytes()).decode()
    (tmp_path / "request.log").write_text(log.replace('"deliveryState":2', '"deliveryState":5', 1))
    history = tmp_path / "history.jsonl"
    options = ["--segments", str(BUSY / "segments"), "-o", str(history)]
    imported = CliRunner().invoke(sharestate, ["log", "import", str(tmp_path / "request.log"), *options])
    reports = [*verify(history)]
    (finding,) = [each for report in reports for each in report.findings if "unknown" in each.reason]

    assert imported.exit_code == 0
    assert re.fullmatch(
        r"unknown delivery state 5 at \d+-\d+, in line \d+: a release of Kafka that is not known here has written it",
        finding.reason,
    )
    assert {report.verdict for report in reports} <= {Verdict.NOT_CHECKED, Verdict.EXPLAINED}


def test_a_history_with_one_is_replayed_as_kafka_does() -> None:
    """A leader that reads it fails to initialize (rule 24.2): nothing is acquired in the replay, which goes on."""
    life = HandMadeLife()
    life.appends(0, 0, 19)
    life.reads(10, 100, 0)
    response = {"state_epoch": 1, "start_offset": 0, "state_batches": (StateBatch(*UNKNOWN),)}
    events = [each._replace(response=response) if each.kind == "initialize" else each for each in life.events]

    life.fetches(20, 1, "m1", 1)
    rows = [*replay_events([*events, *life.events[len(events) :]], ReplaySettings(outputs={"initialization"}))]

    assert [row.values for row in rows] == [(1, None, None)]
