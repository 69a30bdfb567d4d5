"""``sharestate monitor`` beside brokers under load: it is killed, they are restarted, and its metrics are theirs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient
from kio.schema.describe_share_group_offsets.v1 import request as describe_v1
from kio.schema.describe_share_group_offsets.v1.response import DescribeShareGroupOffsetsResponse

from sharestate.cli.commands import sharestate
from sharestate.coordinator import ShareSnapshot, StateRecord
from sharestate.coordinator.wire import topic_id_bytes
from sharestate.persister import PartitionIdLeaderEpochData, ReadSummaryParameters
from sharestate.persister.kafka import KafkaPersister
from sharestate.state_topic import StateTopic, state_topic_files
from sharestate.testing.servers import ACCEPT as RAW_ACCEPT
from sharestate.testing.servers import RELEASE as RAW_RELEASE
from sharestate.testing.servers import FetchLimits, Partition, RawMember
from tests.broker.conftest import RELEASES, running
from tests.broker.kafka_broker import KafkaBroker, free_ports
from tests.broker.members import ACCEPT, PATIENCE_S, REJECT, RELEASE, configure, member, produce
from tests.clients.java_clients import SHARE_GROUPS, close_idle, printed
from tests.support.scrapes import Monitor, Scrape

pytestmark = pytest.mark.broker

SETTINGS: Final = {"group.share.min.assignment.interval.ms": "0", "group.share.min.session.timeout.ms": "1000"}
COURIERS, PARCELS, PARTS = "couriers", "parcels", 2
LEDGER, PAYMENTS = "ledger", "payments"
IDLE: Final = "dreamers"
LIMIT: Final = 3
GROUPS: Final = {COURIERS: (PARCELS, PARTS), LEDGER: (PAYMENTS, 1), IDLE: (PARCELS, PARTS)}
ACKNOWLEDGED, ARCHIVED = 2, 4
TERMINAL: Final = (ACKNOWLEDGED, ARCHIVED)
WITHIN: Final = FetchLimits(max_wait_ms=300)


class Scene:
    """
    A broker with groups at work, and a monitor of it.

    Attributes:
        broker: The broker.
        topic_ids: The ids of topics by name.
        checkpoint: Where the monitor goes on.
        done: What members of the couriers have accepted, and rejected: partition and offset.
        at_wrong_count: What the monitor has shown while the count of the ledger was wrong, and Kafka's lag then.
        later: The same when more records had come, so that nothing showed it any more.
        before_kill: What the monitor has shown before it was killed.
        last: What it shows in the end.
    """

    def __init__(self, broker: KafkaBroker, home: Path) -> None:
        """Make topics and groups."""
        self.broker = broker
        self.checkpoint = home / "checkpoint.sqlite"
        self.topic_ids = {PARCELS: broker.create_topic(PARCELS, PARTS), PAYMENTS: broker.create_topic(PAYMENTS, 1)}
        for group_id in GROUPS:
            configure(broker, group_id, {"share.delivery.count.limit": str(LIMIT)})
        self.done: dict[Any, set[tuple[int, int]]] = {ACCEPT: set(), REJECT: set()}
        self.at_wrong_count: tuple[Scrape, int]
        self.later: tuple[Scrape, int]
        self.before_kill: Scrape
        self.last: Scrape

    def monitor(self) -> Monitor:
        """Start the monitor."""
        return Monitor(self.broker.address, self.checkpoint)

    def work(self, consumer: ShareConsumer, count: int) -> None:
        """Have a member finish so many records; every tenth it never does, every other tenth it rejects."""
        finished = 0
        give_up_s = time.monotonic() + PATIENCE_S
        while finished < count:
            assert time.monotonic() < give_up_s
            decisions = {}
            for message in consumer.poll(0.5):
                if message.error() is not None:
                    continue
                last_digit = (message.offset() or 0) % 10
                decision = RELEASE if last_digit == 3 else REJECT if last_digit == 7 else ACCEPT
                decisions[message.partition() or 0, message.offset() or 0] = decision
                consumer.acknowledge(message, decision)
            if any(error is not None for error in consumer.commit_sync(PATIENCE_S).values()):
                continue
            for place, decision in decisions.items():
                if decision != RELEASE:
                    self.done[decision].add(place)
                    finished += 1

    def quiet(self, monitor: Monitor) -> Scrape:
        """Return what is shown when all lags are known: brokers that have just started tell no ends of logs."""
        give_up_s = time.monotonic() + PATIENCE_S
        while True:
            scrape = monitor.scrape()
            if all(scrape.find("sharestate_lag_records", **labels(*place)) for place in PLACES):
                return scrape
            assert time.monotonic() < give_up_s

    # ---- what Kafka says

    def described(self) -> dict[tuple[str, int], tuple[int, int, int]]:
        """Return start offset, leader epoch and lag of each share partition, by DescribeShareGroupOffsets."""
        topic: Any = describe_v1.DescribeShareGroupOffsetsRequestTopic
        group: Any = describe_v1.DescribeShareGroupOffsetsRequestGroup
        request = describe_v1.DescribeShareGroupOffsetsRequest(
            groups=tuple(
                group(group_id=name, topics=(topic(topic_name=of, partitions=tuple(range(count))),))
                for name, (of, count) in GROUPS.items()
            )
        )
        return {
            (group.group_id, each.partition_index): (each.start_offset, each.leader_epoch, each.lag)
            for group in self.broker.ask(request, DescribeShareGroupOffsetsResponse).groups
            for each in group.topics[0].partitions
        }

    def summary(self, group_id: str, partition: int) -> dict[str, int]:
        """Return what the share coordinator answers to ReadShareGroupStateSummary."""
        topic_id = self.topic_ids[GROUPS[group_id][0]]
        request = ReadSummaryParameters.of(group_id, topic_id, PartitionIdLeaderEpochData(partition=partition))
        with KafkaPersister(self.broker.address) as persister:
            entry = persister.read_summary(request).result(PATIENCE_S).find(topic_id, partition)
        assert entry is not None
        names = ("state_epoch", "leader_epoch", "start_offset")
        return {name: getattr(entry, name) for name in names} | {"complete_records": entry.delivery_complete_count}

    def lag(self, group_id: str) -> int:
        """Return what DescribeShareGroupOffsets says of partition 0."""
        return self.described()[group_id, 0][2]

    def records(self) -> list[tuple[int, StateRecord]]:
        """Return what stands in the state topic on the disk, with the partition of the topic."""
        files = state_topic_files(self.broker.log_dir)
        return [(each.state_partition or 0, each.decode()) for file in files for each in file]


class LedgerHand(NamedTuple):
    """A member of the ledger by hand, and its partition."""

    member: RawMember
    partition: Partition

    def take(self) -> list[tuple[int, int, int]]:
        """Return the next ranges that it acquires."""
        give_up_s = time.monotonic() + PATIENCE_S
        while not (acquired := self.member.fetch(limits=WITHIN).acquired.get(self.partition)):
            assert time.monotonic() < give_up_s
            self.member.heartbeat()
        return acquired

    def acknowledge(self, *ranges: tuple[int, int, int]) -> None:
        """Acknowledge ranges, each with one type."""
        given = {self.partition: [(first, last, (kind,)) for first, last, kind in ranges]}
        assert self.member.acknowledge(given) == {None: "none", self.partition: "none"}


def hand(scene: Scene) -> LedgerHand:
    """Return a member of the ledger that has joined."""
    joined = RawMember(scene.broker.address, LEDGER, [PAYMENTS])
    joined.join()
    return LedgerHand(joined, (uuid.UUID(bytes=topic_id_bytes(scene.topic_ids[PAYMENTS])), 0))


def miscount(scene: Scene, ledger: LedgerHand) -> None:
    """
    Let the leader of the ledger count four records below the SPSO (B22); two records are not finished then.

    A transaction is read that is not committed, the log start moves into its batch, and it is aborted: the records of
    the batch that members hold below the SPSO are archived, and counted, by the next fetch that only reads what is
    committed.
    """
    settings: dict[str, str | int | float | bool] = {"bootstrap.servers": scene.broker.address, "log_level": 0}
    producer = Producer({**settings, "transactional.id": "ledger", "linger.ms": 10_000, "batch.num.messages": 10})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for number in range(10):
        producer.produce(PAYMENTS, b"%d" % number, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    assert ledger.take() == [(0, 9, 1)]
    fifth = TopicPartition(PAYMENTS, 0, 5)
    admin = AdminClient(settings)
    assert admin.delete_records([fifth])[fifth].result(PATIENCE_S).low_watermark == 5
    ledger.acknowledge((0, 0, RAW_RELEASE))
    ledger.member.fetch(limits=WITHIN)  # finds that the log starts later
    ledger.acknowledge((5, 7, RAW_RELEASE))
    producer.abort_transaction(PATIENCE_S)
    configure(scene.broker, LEDGER, {"share.isolation.level": "read_committed"})
    time.sleep(1)  # nothing says when the leader has it
    assert ledger.take() == [(10, 10, 1)]  # the abort marker, which clients pass over
    produce(scene.broker, PAYMENTS, 10)
    assert ledger.take() == [(11, 20, 1)]
    ledger.acknowledge((11, 11, RAW_RELEASE), (12, 20, RAW_ACCEPT))
    assert ledger.take() == [(11, 11, 2)]
    ledger.acknowledge((11, 11, RAW_ACCEPT))


@pytest.fixture(scope="module", params=RELEASES)
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Members work, the monitor is killed and started again, the broker is restarted, members work, all is quiet."""
    home = tmp_path_factory.mktemp("monitor")
    (home / "broker").mkdir()
    with running(request.param, home / "broker", SETTINGS, "warn") as broker, ExitStack() as stack:
        stack.callback(close_idle)
        scene = Scene(broker, home)
        courier = stack.enter_context(member(broker, COURIERS, PARCELS))
        stack.enter_context(member(broker, IDLE, "nothing"))
        for partition in range(PARTS):
            produce(broker, PARCELS, 30, partition=partition)
        scene.work(courier, 20)
        first = scene.monitor()
        scene.before_kill = first.scrape()
        scene.work(courier, 20)
        first.kill()
        monitor = stack.enter_context(scene.monitor())
        ledger = hand(scene)
        stack.callback(ledger.member.hang_up)
        miscount(scene, ledger)
        scene.at_wrong_count = monitor.scrape(), scene.lag(LEDGER)
        produce(broker, PAYMENTS, 30)
        scene.later = monitor.scrape(), scene.lag(LEDGER)
        broker.stop()
        broker.start()
        for partition in range(PARTS):
            produce(broker, PARCELS, 20, partition=partition)
        scene.work(courier, 20)
        courier.close()
        again = hand(scene)
        taken = again.take()
        again.acknowledge((taken[0][0], taken[0][1], RAW_ACCEPT))
        again.member.leave()
        scene.last = scene.quiet(monitor)
        yield scene


PLACES: Final = [(group_id, number) for group_id in (COURIERS, LEDGER) for number in range(GROUPS[group_id][1])]


def labels(group_id: str, number: int) -> dict[str, str]:
    """Return the labels of a share partition."""
    return {"group": group_id, "topic": GROUPS[group_id][0], "partition": str(number)}


# ---- at a quiet moment


def test_it_is_what_the_admin_rpc_says(scene: Scene) -> None:
    """SPSO, leader epoch and lag are those of DescribeShareGroupOffsets."""
    shown = {
        place: tuple(
            scene.last.value(f"sharestate_{name}", **labels(*place))
            for name in ("start_offset", "leader_epoch", "lag_records")
        )
        for place in PLACES
    }

    described = scene.described()
    assert shown == {place: described[place] for place in PLACES}


def test_it_is_what_kafka_share_groups_prints(scene: Scene) -> None:
    """The same by Kafka's own tool, in its columns."""
    for group_id in (COURIERS, LEDGER):
        out = printed(
            *(SHARE_GROUPS, "--bootstrap-server", scene.broker.address, "--describe", "--offsets", "--verbose"),
            *("--group", group_id),
        )
        heading, *rows = [line.split() for line in out.splitlines() if line.strip()]
        table = [dict(zip(heading, row, strict=True)) for row in rows]
        shown = {
            str(number): tuple(
                scene.last.value(f"sharestate_{name}", **labels(group_id, number))
                for name in ("start_offset", "leader_epoch", "lag_records")
            )
            for number in range(GROUPS[group_id][1])
        }
        assert {
            row["PARTITION"]: (int(row["START-OFFSET"]), int(row["LEADER-EPOCH"]), int(row["LAG"])) for row in table
        } == shown


def test_it_is_what_the_share_coordinator_has(scene: Scene) -> None:
    """Epochs, SPSO and delivery complete count are those of the summary."""
    for place in PLACES:
        names = ("state_epoch", "leader_epoch", "start_offset", "complete_records")
        shown = {name: scene.last.value(f"sharestate_{name}", **labels(*place)) for name in names}
        assert shown == scene.summary(*place)


def test_it_is_what_members_did(scene: Scene) -> None:
    """Totals are those of what was accepted and rejected, or released once too often, though the monitor was killed."""
    state = StateTopic()
    state.read(state_topic_files(scene.broker.log_dir))
    for number in range(PARTS):
        accepted, rejected = (
            {offset for partition, offset in scene.done[decision] if partition == number}
            for decision in (ACCEPT, REJECT)
        )
        limited = {offset for offset in range(max(accepted | rejected) + 1) if offset % 10 == 3}
        archived = scene.last.value("sharestate_archived_records_total", **labels(COURIERS, number))
        assert scene.last.value("sharestate_acknowledged_records_total", **labels(COURIERS, number)) == len(accepted)
        assert len(rejected) <= archived <= len(rejected | limited)


def test_it_is_what_the_state_topic_says(scene: Scene) -> None:
    """Counters are those of the records on the disk, counted one by one, and gauges those of what they add up to."""
    expected: dict[tuple[str, int], Counter[str]] = {place: Counter() for place in PLACES}
    epochs: dict[tuple[str, int], int] = {}
    stored: dict[tuple[tuple[str, int], int], set[int]] = {}
    for _, record in scene.records():
        place = record.key.group_id, record.key.partition
        if place not in expected or record.value is None:
            continue
        is_snapshot = isinstance(record.value, ShareSnapshot)
        expected[place]["snapshot" if is_snapshot else "update"] += 1
        expected[place]["fencings"] += record.value.leader_epoch > epochs.setdefault(place, record.value.leader_epoch)
        epochs[place] = max(epochs[place], record.value.leader_epoch)
        for first, last, state, _ in record.value.state_batches:
            stored.setdefault((place, state), set()).update(range(first, last + 1))
    for place in PLACES:
        values = {
            "snapshot": scene.last.value("sharestate_state_records_total", **labels(*place), type="snapshot"),
            "update": scene.last.value("sharestate_state_records_total", **labels(*place), type="update"),
            "fencings": scene.last.value("sharestate_fencings_total", **labels(*place)),
        }
        assert values == {name: expected[place][name] for name in values}
        assert values["fencings"] >= 1
        for name, state in (("acknowledged", ACKNOWLEDGED), ("archived", ARCHIVED)):
            total = scene.last.value(f"sharestate_{name}_records_total", **labels(*place))
            assert total == len(stored.get((place, state), ()))


def test_what_is_in_flight_is_what_the_records_add_up_to(scene: Scene) -> None:
    """Records that are done, near the limit and in flight, by `state rebuild` from the disk."""
    result = CliRunner().invoke(sharestate, ["state", "rebuild", "--json", str(scene.broker.log_dir)])
    states = {(line["group_id"], line["partition"]): line for line in map(json.loads, result.stdout.splitlines())}
    deliveries: dict[str, Counter[int]] = {COURIERS: Counter(), LEDGER: Counter()}
    for place in PLACES:
        batches = states[place]["state_batches"]
        sizes = [(last - first + 1, state, count) for first, last, state, count in batches]
        expected = {
            "stored_done_records": sum(size for size, state, _ in sizes if state in TERMINAL),
            "near_limit_records": sum(n for n, state, count in sizes if state not in TERMINAL and count >= LIMIT - 1),
            "in_flight_records": batches[-1][1] + 1 - states[place]["start_offset"] if batches else 0,
        }
        assert {name: scene.last.value(f"sharestate_{name}", **labels(*place)) for name in expected} == expected
        for size, state, count in sizes:
            deliveries[place[0]][count] += size if state not in TERMINAL else 0
    for group_id, counts in deliveries.items():
        total = scene.last.value("sharestate_delivery_count_gcount", group=group_id, topic=GROUPS[group_id][0])
        assert total == counts.total()
    assert deliveries[COURIERS].total() > 0


def test_logs_and_the_state_topic_are_where_brokers_say(scene: Scene) -> None:
    """Starts and ends of logs, and of the partitions of the state topic, are those of ListOffsets."""
    consumer = Consumer({"bootstrap.servers": scene.broker.address, "group.id": "t", "enable.auto.commit": False})
    for group_id, number in PLACES:
        shown = [
            scene.last.value(f"sharestate_log_{end}_offset", **labels(group_id, number)) for end in ("start", "end")
        ]
        place = TopicPartition(GROUPS[group_id][0], number)
        assert tuple(shown) == consumer.get_watermark_offsets(place, timeout=PATIENCE_S)
    for number in range(3):
        place = TopicPartition("__share_group_state", number)
        shown = [
            scene.last.value(f"sharestate_state_topic_{end}_offset", state_partition=str(number))
            for end in ("begin", "end")
        ]
        assert tuple(shown) == consumer.get_watermark_offsets(place, timeout=PATIENCE_S)
    consumer.close()


def test_settings_are_told(scene: Scene) -> None:
    """The limits of a group are those that it was given, and are not assumed."""
    assert scene.last.value("sharestate_delivery_count_limit", group=COURIERS, assumed="false") == LIMIT
    assert scene.last.value("sharestate_max_record_locks", group=COURIERS, assumed="false") == 2000


# ---- Kafka's wrong counts


def test_a_wrong_count_is_shown_and_corrected(scene: Scene) -> None:
    """B22: Kafka's lag is -3; one record is not finished, the abort marker that the member holds."""
    scrape, lag = scene.at_wrong_count

    place = labels(LEDGER, 0)
    assert (lag, scrape.value("sharestate_lag_records", **place)) == (-3, -3)
    assert scrape.value("sharestate_complete_records_wrong", **place, reason="beyond_log") == 1
    assert scrape.value("sharestate_corrected_lag_records", **place) == 1


def test_a_count_stays_wrong_until_a_leader_counts_again(scene: Scene) -> None:
    """With thirty more records nothing shows it, but it is as wrong; after a failover Kafka's lag is right again."""
    scrape, lag = scene.later

    place = labels(LEDGER, 0)
    assert (lag, scrape.value("sharestate_lag_records", **place)) == (27, 27)
    assert scrape.value("sharestate_corrected_lag_records", **place) == 31
    assert scene.last.find("sharestate_complete_records_wrong", **place) == []
    assert scene.last.value("sharestate_corrected_lag_records", **place) == scene.lag(LEDGER)


# ---- restarts


def test_nothing_is_counted_twice(scene: Scene) -> None:
    """What the monitor shows that was killed is what one shows that has read all of the topic at once."""
    from_beginning = Monitor(scene.broker.address, None)
    with from_beginning:
        fresh = from_beginning.scrape()

    counters = {key: value for key, value in scene.last.values.items() if key[0].endswith("_total")}
    assert {key: value for key, value in fresh.values.items() if key in counters} == {
        key: value for key, value in counters.items() if key[0] != "sharestate_failed_rounds_total"
    } | {("sharestate_failed_rounds_total", frozenset()): 0}
    for number in range(PARTS):
        name = "sharestate_acknowledged_records_total"
        before, after = (each.value(name, **labels(COURIERS, number)) for each in (scene.before_kill, scene.last))
        assert before <= after


def test_tls_and_login(scene: Scene, tmp_path: Path) -> None:
    """With settings in a file the same is found over the listener with TLS and SASL."""

    def once(*arguments: str | Path) -> str:
        result = CliRunner().invoke(sharestate, ["monitor", "--once", "--json", *map(str, arguments)])
        assert (result.exit_code, result.stderr) == (0, "")
        return result.stdout

    found = once("--bootstrap", scene.broker.secure_address, "--command-config", scene.broker.login(tmp_path))
    assert found == once("--bootstrap", scene.broker.address)
    assert len(found.splitlines()) >= len(PLACES)


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed")
def test_a_real_prometheus_scrapes_it(scene: Scene, tmp_path: Path) -> None:
    """With the rules of the examples; what it has is what is shown, and it judges every rule without an error."""
    examples = Path(__file__).parents[2] / "examples" / "monitor"
    with Monitor(scene.broker.address, None) as monitor:
        target = monitor.address.removeprefix("http://").removesuffix("/metrics")
        given = (examples / "prometheus.yml").read_text()
        given = (
            given.replace("127.0.0.1:9932", target).replace("15s", "1s").replace("alerts.yml", f"{examples}/alerts.yml")
        )
        (tmp_path / "prometheus.yml").write_text(given)
        with prometheus(tmp_path) as ask:
            give_up_s = time.monotonic() + PATIENCE_S
            found: list[Any] = []
            while not found:
                assert time.monotonic() < give_up_s
                time.sleep(0.2)
                found = ask("query", query="sharestate_lag_records").get("result", [])
            (group,) = ask("rules")["groups"]
            while any(rule["health"] == "unknown" for rule in group["rules"]):
                assert time.monotonic() < give_up_s
                time.sleep(0.2)
                (group,) = ask("rules")["groups"]

    lags = {(each["metric"]["group"], int(each["metric"]["partition"])): float(each["value"][1]) for each in found}
    assert lags == {place: scene.last.value("sharestate_lag_records", **labels(*place)) for place in PLACES}
    assert len(group["rules"]) == 11
    assert {rule["health"] for rule in group["rules"]} == {"ok"}


@contextmanager
def prometheus(home: Path) -> Iterator[Callable[..., Any]]:
    """Run Prometheus with the configuration in *home*; what is yielded asks its API."""
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    command = [
        str(shutil.which("prometheus")),
        f"--config.file={home}/prometheus.yml",
        f"--storage.tsdb.path={home}/data",
    ]
    command += [f"--web.listen-address={address}", "--log.level=error"]

    def ask(what: str, **parameters: str) -> Any:  # noqa: ANN401 - JSON
        try:
            with urlopen(f"http://{address}/api/v1/{what}?{urlencode(parameters)}") as response:
                return json.load(response)["data"]
        except OSError:  # not yet
            return {}

    with subprocess.Popen(command) as process:
        try:
            yield ask
        finally:
            process.terminate()


def test_why_the_lag_is_unknown(scene: Scene) -> None:
    """A group whose member never fetched has -1 in Kafka, and the reason here."""
    with member(scene.broker, "late", PARCELS) as late:
        configure(scene.broker, "late", {"share.auto.offset.reset": "latest"})
        late.poll(1)
        command = [
            sys.executable,
            "-m",
            "sharestate",
            "monitor",
            "--bootstrap",
            scene.broker.address,
            "--once",
            "--json",
        ]
        give_up_s = time.monotonic() + PATIENCE_S
        lines: list[dict[str, Any]] = []
        while not lines:
            assert time.monotonic() < give_up_s
            out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            lines = [line for line in map(json.loads, out.splitlines()) if line["group"] == "late"]

    for line in lines:
        is_known = line["start_offset"] >= 0
        assert line["lag_unknown"] == ({} if is_known else {"no_start_offset": 1})
        assert (line["lag_records"], line["corrected_lag_records"]) == (0 if is_known else None, 0)
