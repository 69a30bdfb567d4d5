"""
Recorded clients of real brokers in trouble: ``python -m tests.broker.recorded_runs NAME OUTDIR [--kafka 4.4.0]``.

A run is a directory of files of operations, one of each client and one of who makes the trouble.
"""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from attrs import frozen

from sharestate.audit import CrashOperation, FaultOperation, SettingsOperation
from sharestate.audit.recorder import Recorder
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.kafka_cluster import BROKERS, KafkaCluster
from tests.broker.members import configure
from tests.clients.java_clients import PRODUCER, SHARE_CONSUMER
from tests.clients.java_clients import command as java_command

RELEASES: Final = ("4.3.1", "4.4.0")

TOPIC: Final = "orders"

PARTITIONS: Final = 2

LOCK_MS: Final = 1500
"""How long records are locked. [ms]"""

GROUPS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "billing": {"share.record.lock.duration.ms": str(LOCK_MS), "share.isolation.level": "read_committed"},
        "shipping": {"share.record.lock.duration.ms": str(LOCK_MS), "share.isolation.level": "read_uncommitted"},
    }
)
"""What groups are configured with."""

BROKER: Final = MappingProxyType(
    {
        "auto.create.topics.enable": "false",
        "group.share.min.assignment.interval.ms": "0",
        "group.share.assignment.interval.ms": "0",
        "group.share.min.session.timeout.ms": "1000",
    }
)


class Run:
    """A broker, clients that are recorded, and the file of who makes trouble."""

    def __init__(self, broker: KafkaBroker | KafkaCluster, logs: Path) -> None:
        """Begin with a topic, and with groups that are configured."""
        self.broker = broker
        self.recorder = Recorder(logs / "trouble.jsonl", client="trouble")
        self._logs = logs
        self._clients: list[tuple[subprocess.Popen[str], str]] = []
        broker.create_topic(TOPIC, PARTITIONS)
        for group, config in GROUPS.items():
            configure(broker, group, config)
            self.recorder.write(
                SettingsOperation(
                    at_ms=self.recorder.now_ms(),
                    group=group,
                    record_lock_duration_ms=LOCK_MS,
                    delivery_count_limit=5,
                    max_record_locks=2000,
                    isolation_level=config["share.isolation.level"],
                    auto_offset_reset="earliest",
                )
            )

    def start(self, role: str, **orders: object) -> int:
        """Start a client, and return its number."""
        seed = len(self._clients) + 1
        given = {"address": self.broker.address, "topic": TOPIC, "logs": str(self._logs), "seed": seed, **orders}
        command = [sys.executable, "-m", "tests.broker.recorded_clients", role, json.dumps(given)]
        client = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
        self._clients.append((client, str(orders.get("group", ""))))
        return seed

    def start_tool(self, name: str, main: str, *arguments: str, group: str = "") -> int:
        """Start one of Kafka's verifiable clients, whose events go to a file; return its number."""
        with (self._logs / f"{name}.jsonl").open("w") as events:
            command = java_command(main, "--bootstrap-server", self.broker.address, "--topic", TOPIC, *arguments)
            tool = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=events, stderr=subprocess.DEVNULL, text=True)
        self._clients.append((tool, group))
        return len(self._clients)

    def kill_tool(self, number: int) -> None:
        """Kill one of them."""
        tool, _ = self._clients[number - 1]
        tool.kill()
        tool.wait()

    def stop_tool(self, number: int) -> None:
        """Let one of them stop in order."""
        tool, _ = self._clients[number - 1]
        tool.terminate()
        tool.wait(60)

    def kill_client(self, number: int) -> None:
        """Kill a client, and write down that it has crashed."""
        client, group = self._clients[number - 1]
        at_ms = self.recorder.now_ms()
        client.kill()
        client.wait()
        lines = (self._logs / f"client-{number}.jsonl").read_text().splitlines()
        name = json.loads(lines[1])["client"]
        self.recorder.write(CrashOperation(at_ms=at_ms, group=group, client=name))

    @contextmanager
    def fault(self, what: str) -> Iterator[None]:
        """Write down that something is wrong meanwhile."""
        begin_ms = self.recorder.now_ms()
        yield
        self.recorder.write(FaultOperation(begin_ms=begin_ms, end_ms=self.recorder.now_ms(), what=what))

    def kill_broker(self) -> None:
        """Kill the broker, and start it again."""
        with self.fault("restart"):
            self.broker.kill()
            self.broker.start()
            time.sleep(2)  # until share partitions are read again

    def end(self) -> None:
        """Let producers stop, then consumers."""
        for groups in (False, True):
            some = [client for client, group in self._clients if bool(group) is groups and client.poll() is None]
            for client in some:
                assert client.stdin is not None
                client.stdin.close()
            for client in some:
                client.wait(120)
        self.recorder.close()

    def stop(self) -> None:
        """Kill what is left of the clients."""
        for client, _ in self._clients:
            client.kill()
            with client:  # closes its standard input, and waits for its end
                pass


def locks(run: Run) -> None:
    """Slow consumers, whose locks expire."""
    run.start("producer")
    for group in ("billing", "billing", "shipping"):
        run.start("consumer", group=group, slow_s=2.0)
    time.sleep(12)


def transactions(run: Run) -> None:
    """Transactions that are committed and aborted, and a group that reads all, beside one that does not."""
    run.start("producer", transactional_id="tx")
    run.start("producer")
    for group in ("billing", "billing", "shipping", "shipping"):
        run.start("consumer", group=group)
    time.sleep(10)


def kill9(run: Run) -> None:
    """A broker that is killed, and consumers as well."""
    run.start("producer", pause_s=0.2)
    run.start("producer", pause_s=0.2, transactional_id="tx")
    first = run.start("consumer", group="billing")
    for group in ("billing", "shipping"):
        run.start("consumer", group=group, slow_s=2.0)
    time.sleep(8)
    run.kill_client(first)
    time.sleep(2)
    run.kill_broker()
    run.start("consumer", group="billing")
    time.sleep(25)  # librdkafka takes 20 s and more to be back in its group


def leaders(run: Run) -> None:
    """Three brokers, of which one is killed and started again; then leaders move, twice."""
    cluster = run.broker
    assert isinstance(cluster, KafkaCluster)
    run.start("producer", pause_s=0.2)
    run.start("producer", pause_s=0.2, transactional_id="tx")
    for group in ("billing", "billing", "shipping"):
        run.start("consumer", group=group, slow_s=2.0 if group == "shipping" else 0.0)
    time.sleep(8)
    with run.fault("restart"):
        cluster.brokers[2].kill()
        time.sleep(4)
        cluster.brokers[2].start()
        time.sleep(2)
    for first in (0, 1):
        time.sleep(4)
        with run.fault("failover"):
            orders = {
                each: [(first + each + step) % BROKERS + 1 for step in range(BROKERS)] for each in range(PARTITIONS)
            }
            cluster.prefer_leaders(TOPIC, orders)
            cluster.elect_preferred_leaders()
            time.sleep(2)
    time.sleep(15)


def verifiable(run: Run) -> None:
    """Kafka's verifiable clients, one of them killed."""
    made = run.start_tool("producer", PRODUCER, "--max-messages", "-1", "--throughput", "50")
    tools = [
        run.start_tool(f"consumer-{mode}", SHARE_CONSUMER, "--group-id", "billing", "--acknowledgement-mode", mode)
        for mode in ("sync", "async", "auto")
    ]
    time.sleep(8)
    run.kill_tool(tools[0])
    time.sleep(4)
    for tool in (made, *tools[1:]):
        run.stop_tool(tool)


def chaos(run: Run) -> None:
    """What librdkafka's chaos harness has its consumers print, while a broker is killed."""
    run.start("producer")
    for _ in range(2):
        run.start("chaos", group="billing")
    time.sleep(6)
    run.kill_broker()
    time.sleep(4)


KINDS: Final[Mapping[str, Callable[[Run], None]]] = MappingProxyType(
    {
        "locks": locks,
        "transactions": transactions,
        "kill9": kill9,
        "leaders": leaders,
        "verifiable": verifiable,
        "chaos": chaos,
    }
)


CLUSTERS: Final = {"leaders"}
"""Those with three brokers."""


@frozen
class Made:
    """
    A run that is over.

    Attributes:
        place: Its directory.
        size: The size of its files. [bytes]
    """

    place: Path
    size: int


def make(name: str, outdir: Path, kafka: str) -> Made:
    """Start a broker and do what the kind *name* says; keep the operations in a directory of *outdir*, compressed."""
    place = outdir / f"{kafka}-{name}"
    with tempfile.TemporaryDirectory(prefix="recorded-run-") as scratch:
        (home := Path(scratch) / "broker").mkdir()
        (logs := Path(scratch) / "logs").mkdir()
        broker = KafkaCluster(kafka, home, BROKER, "warn") if name in CLUSTERS else KafkaBroker(kafka, home, BROKER)
        broker.start()
        try:
            run = Run(broker, logs)
            try:
                KINDS[name](run)
                run.end()
            finally:
                run.stop()
        finally:
            broker.stop()
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for log in sorted(logs.iterdir()):
            (place / f"{log.name}.gz").write_bytes(gzip.compress(log.read_bytes(), mtime=0))
    return Made(place, sum(file.stat().st_size for file in place.iterdir()))


def main() -> None:
    """Make the runs that are asked for."""
    parser = ArgumentParser(prog="python -m tests.broker.recorded_runs", description=__doc__)
    parser.add_argument("name", choices=[*KINDS, "all"], metavar="NAME", help=f"{', '.join(KINDS)}, or all")
    parser.add_argument("outdir", type=Path, metavar="OUTDIR")
    parser.add_argument("--kafka", default=RELEASES[0], choices=RELEASES, metavar="RELEASE")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that brokers are stopped
    for name in KINDS if given.name == "all" else [given.name]:
        made = make(name, given.outdir, given.kafka)
        sys.stdout.write(f"{made.place}: {made.size:,} bytes\n")


if __name__ == "__main__":
    main()
