"""
Kafka's bugs on its own brokers, as their request logs show them: ``python -m tests.broker.bug_excerpts [BUG ...]``.

Each scene leads a broker into one bug, in a group and a topic of its own, and expects what the bug does. What the
broker has logged of it, shortened, goes into ``tests/data/kafka-bug-excerpts.json``, and from there onto the page of
bugs that are ready to report.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias
from uuid import UUID

from attrs import frozen
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kio.schema.write_share_group_state.v1 import request as write_v1
from kio.schema.write_share_group_state.v1.response import WriteShareGroupStateResponse

from sharestate import StateBatch
from sharestate.coordinator.wire import topic_id_bytes
from sharestate.persister import (
    InitializeStateParameters,
    PartitionIdLeaderEpochData,
    PartitionStateBatchData,
    PartitionStateData,
    ReadStateParameters,
    WriteStateParameters,
)
from sharestate.persister.kafka import KafkaPersister
from sharestate.testing.servers import ACCEPT, RELEASE, FetchLimits, Partition, RawConnection
from tests.broker.conftest import running
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import PATIENCE_S, configure
from tests.broker.scenarios import COMMITTED, ISOLATION
from tests.broker.told_members import Consumer, Place

Json = Any
Scene: TypeAlias = Callable[[Place], Iterator[str]]
"""Leads a broker into a bug; what it yields is said of the lines that come next."""

Record: TypeAlias = tuple[Partition, int, int]
"""A record that is held: its offset and delivery count."""

EXCERPTS: Final = Path(__file__).parents[1] / "data" / "kafka-bug-excerpts.json"
VERSION: Final = 1

LOCKS: Final = MappingProxyType({"share.partition.max.record.locks": "100"})
"""The fewest that are allowed."""

BATCH: Final = FetchLimits(max_records=60, batch_size=60)
"""As much as a log batch has."""

TRIES: Final = 5
"""How often nothing has to come, in a tenth of a second each."""

ANSWERED_S: Final = 10
"""How long an answer may take that may never come. [s]"""

LOGGED_S: Final = 0.5
"""How long a broker may take to log what it has answered. [s]"""

_StateBatch: Any = write_v1.StateBatch
_PartitionData: Any = write_v1.PartitionData
_StateData: Any = write_v1.WriteStateData
_WriteState: Any = write_v1.WriteShareGroupStateRequest


# ---- scenes


def full_gap_window(place: Place) -> Iterator[str]:
    """F1: a gap window is as large as records may be in flight."""
    yield "A member gets 0-119, in two log batches, and accepts 10-119."
    place.write(120, batch=60)
    before = _accepted(place, (10, 59), (60, 119))
    yield "The broker is restarted: its state has a gap, 0-9. A member gets it, and accepts it: all is done now."
    _restart(place.broker)
    before.member.hang_up()
    with place.member() as consumer:
        _say(consumer, consumer.some(BATCH), ACCEPT)
        yield "60 records more are written, 120-179. Nobody gets them."
        place.write(60, batch=60)
        _expect_nothing(consumer)


def log_start_past_available(place: Place) -> Iterator[str]:
    """F4: the log start passes the last available records of a full share partition."""
    yield "A member gets 0-119, in two log batches, and accepts 10-119."
    place.write(120, batch=60)
    consumer = place.lost_member()
    held = consumer.some(BATCH)
    _say(consumer, held, ACCEPT, (10, 59))
    _say(consumer, consumer.some(BATCH), ACCEPT)
    yield "Records below 10 are deleted, and the member releases 0-9."
    _delete_below(place, 10)
    _say(consumer, held, RELEASE, (0, 9))
    yield "60 records more are written, 120-179. Nobody gets them."
    place.write(60, batch=60)
    _expect_nothing(consumer)
    consumer.member.leave()


def log_start_in_the_gap(place: Place) -> Iterator[str]:
    """F5: the log start moves into the gap that is fetched next."""
    yield "A member gets 0-19, and accepts 10-19."
    place.write(20, batch=20)
    before = _accepted(place, (10, 19))
    yield "The broker is restarted: its state has a gap, 0-9. Records below 5 are deleted. Nobody gets 5-9."
    _restart(place.broker)
    before.member.hang_up()
    _delete_below(place, 5)
    with place.member() as consumer:
        _expect_nothing(consumer)


def aborted_transaction(place: Place) -> Iterator[str]:
    """F7: a transaction of as many records as may be in flight is aborted."""
    yield "120 records are written in a transaction, which is aborted. The group reads what is committed."
    producer = Producer(
        {
            "bootstrap.servers": place.broker.address,
            "transactional.id": place.name,
            "linger.ms": 10_000,
            "batch.num.messages": 60,
        }
    )
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for _ in range(120):
        producer.produce(place.topic, value=b"value", partition=0)
    producer.flush(PATIENCE_S)
    producer.abort_transaction(PATIENCE_S)
    with place.member() as consumer:
        _expect_nothing(consumer)
        yield "60 records more are written, without a transaction. Nobody gets them."
        place.write(60, batch=60)
        _expect_nothing(consumer)


def late_write(place: Place) -> Iterator[str]:
    """F3: a write that is retried comes after a later one; the two are sent in that order here."""
    with _Stored(place) as stored:
        yield "A leader's second write, of which the start offset is 20, comes first; then the first one, retried: 10."
        stored.initialize(0)
        stored.read()
        stored.write(20)
        stored.write(10)
        yield "The next leader begins at 10."
        assert stored.read() == 10


def reversed_batch(place: Place) -> Iterator[str]:
    """C1: a state batch ends before it begins, and meets another one."""
    with _Stored(place) as stored:
        yield "A write has a state batch from 5 to 2 beside another one."
        stored.initialize(0)
        try:
            stored.write_raw((4, 9, 4, 1), (5, 2, 2, 2))
        except OSError:
            yield "The write has no answer in 10 s, and no line: a thread of the coordinator never comes to an end."


def repeated_initialization(place: Place) -> Iterator[str]:
    """C2: an initialization is retried, and comes after a leader's write; it is sent in that order here."""
    with _Stored(place) as stored:
        yield "A share partition is initialized, read by a leader, and written."
        stored.initialize(-1)
        stored.read()
        stored.write(50, StateBatch(52, 56, 2, 1))
        yield "The same initialization comes again."
        stored.initialize(-1)
        yield "The next leader is told that nothing was ever written."
        assert stored.read() == -1


@frozen
class Act:
    """A scene, and what it takes."""

    scene: Scene
    config: Mapping[str, str] = LOCKS
    """The group's."""

    releases: tuple[str, ...] = ("4.3.1", "4.4.0")
    """Those that show the bug."""

    @property
    def kafka(self) -> str:
        """The release whose excerpt is on the page: the latest that shows the bug."""
        return self.releases[-1]


ACTS: Final[Mapping[str, Act]] = MappingProxyType(
    {
        "F1": Act(full_gap_window),
        "F3": Act(late_write, releases=("4.3.1",)),
        "F4": Act(log_start_past_available),
        "F5": Act(log_start_in_the_gap),
        "F7": Act(aborted_transaction, config={**LOCKS, ISOLATION: COMMITTED}),
        "C2": Act(repeated_initialization),
        "C1": Act(reversed_batch),  # the last: some brokers are no good after it
    }
)
"""The scenes, by the bugs that they show."""


def _accepted(place: Place, *ranges: tuple[int, int]) -> Consumer:
    """Return a member that has fetched a log batch for each of *ranges*, which it accepts; the rest it holds."""
    consumer = place.lost_member()
    for each in ranges:
        _say(consumer, consumer.some(BATCH), ACCEPT, each)
    return consumer


def _say(consumer: Consumer, records: list[Record], how: int, offsets: tuple[int, int] | None = None) -> None:
    """Acknowledge records that follow each other, or those at *offsets* only, in one range."""
    (partition, first, _), (_, last, _) = records[0], records[-1]
    consumer.member.acknowledge({partition: [(*(offsets or (first, last)), (how,))]})


def _restart(broker: KafkaBroker) -> None:
    broker.stop()
    broker.start()


def _delete_below(place: Place, offset: int) -> None:
    at = TopicPartition(place.topic, 0, offset)
    admin = AdminClient({"bootstrap.servers": place.broker.address})  # without a name it would be gone too early
    admin.delete_records([at])[at].result(PATIENCE_S)


def _expect_nothing(consumer: Consumer) -> None:
    for _ in range(TRIES):
        records = consumer.take(BATCH)
        assert not records, records


class _Stored:
    """What a persister asks a broker's share coordinator about one share partition."""

    def __init__(self, place: Place) -> None:
        self._key = place.name, place.broker.create_topic(f"{place.topic}-stored", 1)
        self._address = place.broker.address
        self._persister = KafkaPersister(place.broker.address, take_over=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._persister.close()

    def initialize(self, start_offset: int) -> None:
        entry = PartitionStateData(partition=0, state_epoch=1, start_offset=start_offset)
        self._persister.initialize_state(InitializeStateParameters.of(*self._key, entry)).result(PATIENCE_S)

    def read(self) -> int | None:
        entry = PartitionIdLeaderEpochData(partition=0, leader_epoch=1)
        read = self._persister.read_state(ReadStateParameters.of(*self._key, entry)).result(PATIENCE_S)
        found = read.find(self._key[1], 0)
        return None if found is None else found.start_offset

    def write(self, start_offset: int, *batches: StateBatch) -> None:
        entry = PartitionStateBatchData(
            partition=0, state_epoch=1, leader_epoch=1, start_offset=start_offset, state_batches=batches
        )
        self._persister.write_state(WriteStateParameters.of(*self._key, entry)).result(PATIENCE_S)

    def write_raw(self, *batches: tuple[int, int, int, int]) -> None:
        """Write state batches that no persister takes, and wait for the answer."""
        rows = tuple(
            _StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
            for first, last, state, count in batches
        )
        head = {"state_epoch": 1, "leader_epoch": 1, "start_offset": 0, "delivery_complete_count": -1}
        partition = _PartitionData(partition=0, state_batches=rows, **head)
        topic = _StateData(topic_id=UUID(bytes=topic_id_bytes(self._key[1])), partitions=(partition,))
        request = _WriteState(group_id=self._key[0], topics=(topic,))
        with closing(RawConnection(self._address, "persister", patience_s=ANSWERED_S)) as connection:
            connection.ask(request, WriteShareGroupStateResponse)


# ---- lines


APIS: Final = (
    *("SHARE_FETCH", "SHARE_ACKNOWLEDGE", "DELETE_RECORDS", "END_TXN"),
    *("INITIALIZE_SHARE_GROUP_STATE", "READ_SHARE_GROUP_STATE", "WRITE_SHARE_GROUP_STATE"),
)
"""What an excerpt has."""

FIELDS: Final = frozenset(
    {
        *("stateEpoch", "leaderEpoch", "startOffset", "deliveryCompleteCount", "stateBatches", "acquiredRecords"),
        *("acknowledgementBatches", "errorCode", "errorMessage", "acknowledgeErrorCode", "offset", "committed"),
    }
)
"""The fields that are shown; those that they are in are not."""

WIDTH: Final = 84
"""What a line has at most. [characters]"""


def excerpt(scene: Iterable[str], log: Path, name: str) -> list[str]:
    """Play a *scene*, and return what a broker logs of it; what the scene says is a comment."""
    at = log.stat().st_size
    lines: list[str] = []
    for comment in scene:
        at = _take(log, at, name, lines)
        lines += wrap(f"# {comment}", WIDTH, subsequent_indent="# ")
    _take(log, at, name, lines)
    return lines


def _take(log: Path, at: int, name: str, lines: list[str]) -> int:
    """Add what was logged from a byte on, and return where it ends."""
    time.sleep(LOGGED_S)
    with log.open("rb") as file:
        file.seek(at)
        logged = file.read()
    whole = logged[: logged.rfind(b"\n") + 1]
    lines += shortened(whole.decode().splitlines(), name)
    return at + len(whole)


def shortened(logged: Iterable[str], name: str) -> list[str]:
    """Return what *logged* lines say of the group or topic *name*; lines that say the same are one."""
    said = [line for line in (_shortened(each, name) for each in logged) if line is not None]
    lines: list[str] = []
    for _, same in groupby(said, key=lambda line: line[1]):
        (at, text), *others = same
        again = f" ({len(others)} more like it)" if others else ""
        lines += wrap(f"{at} {text}{again}", WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return lines


def _shortened(line: str, name: str) -> tuple[str, str] | None:
    stamp, _, text = line.partition(" Completed request:")
    logged = json.loads(text) if text else {}
    api = logged.get("requestHeader", {}).get("requestApiKeyName")
    if api not in APIS or name not in _names(logged["request"]):
        return None
    request, response = ([*_fields(logged[each])] for each in ("request", "response"))
    return stamp.partition("T")[2][:12], " ".join([api, *request, "->", *(response or ["errorCode=0"])])


def _names(request: Mapping[str, Json]) -> set[str | None]:
    """Return the group and the topics of a request, as far as it names them."""
    topics = {topic.get("name") for topic in request.get("topics", ()) if isinstance(topic, dict)}
    return {request.get("groupId"), request.get("transactionalId"), *topics}


def _fields(value: Json) -> Iterator[str]:
    """Yield the fields that are shown, no matter how deep they are; error codes only if there is an error."""
    if isinstance(value, list):
        for each in value:
            yield from _fields(each)
    if not isinstance(value, dict):
        return
    for name, each in value.items():
        if name == "currentLeader":
            continue
        if name not in FIELDS:
            yield from _fields(each)
        elif isinstance(each, list):
            yield f"{name}=[{', '.join(_ranges(each))}]"
        elif each is not None and not (name.endswith("rrorCode") and each == 0):
            yield f"{name}={each}"


def _ranges(rows: list[Json]) -> Iterator[str]:
    """Yield ranges of offsets and what is said of them; those that follow each other and say the same are one."""
    runs: list[tuple[int, int, str, int]] = []
    for row in rows:
        said = " ".join(f"{name}={json.dumps(value)}" for name, value in row.items() if "Offset" not in name)
        first, last = row["firstOffset"], row["lastOffset"]
        if runs and (runs[-1][1] + 1, runs[-1][2]) == (first, said):
            runs[-1] = (runs[-1][0], last, said, runs[-1][3] + 1)
        else:
            runs.append((first, last, said, 1))
    for first, last, said, count in runs:
        yield f"{first}-{last} {said}" + (f" in {count} batches" if count > 1 else "")


# ---- the command


def play(bug: str, broker: KafkaBroker) -> list[str]:
    """Play the scene of a *bug*, and return the excerpt."""
    act = ACTS[bug]
    name = f"bug-{bug.lower()}"
    broker.create_topic(name, 1)
    configure(broker, name, act.config)
    return excerpt(act.scene(Place(broker, name, (name,))), broker.request_log, name)


def write(excerpts: Mapping[str, tuple[str, list[str]]], path: Path = EXCERPTS) -> None:
    """Write the *excerpts*, by bug the release and the lines; those of other bugs stay."""
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    kept = {row["id"]: row for row in rows}
    kept |= {bug: {"id": bug, "kafka": kafka, "lines": lines} for bug, (kafka, lines) in excerpts.items()}
    document = {"kafka_bug_excerpts": VERSION, "rows": [kept[bug] for bug in ACTS if bug in kept]}
    path.write_text(json.dumps(document, indent=2) + "\n")


def main() -> None:
    """Play the scenes that are named, each release's on a broker of its own."""
    parser = ArgumentParser(prog="python -m tests.broker.bug_excerpts", description="Show Kafka's bugs on its brokers.")
    parser.add_argument("bugs", nargs="*", metavar="BUG", help=f"some of {', '.join(ACTS)}; all unless given")
    parser.add_argument("--kafka", metavar="RELEASE", help="a release, of which nothing is kept; else the page's")
    given = parser.parse_args()
    wanted = [bug for bug in ACTS if not given.bugs or bug in given.bugs]
    excerpts: dict[str, tuple[str, list[str]]] = {}
    for kafka in [given.kafka] if given.kafka else sorted({ACTS[bug].kafka for bug in wanted}):
        with TemporaryDirectory() as home, running(kafka, Path(home)) as broker:
            for bug in wanted:
                if kafka in ACTS[bug].releases if given.kafka else kafka == ACTS[bug].kafka:
                    excerpts[bug] = kafka, play(bug, broker)
                    sys.stdout.write("\n".join([f"{bug}, Kafka {kafka}", *excerpts[bug][1], "", ""]))
    if not given.kafka:
        write(excerpts)


if __name__ == "__main__":
    main()
