"""
What tests ask of a test broker, with few records, members and partitions and with many: ``bench.test_broker_growth``.

Each figure is CPU time for one of them, with so many and with four times as many; beside it is the ratio of the two,
which is 1 where the time is linear in their number. Clients are left out: the node is called, and all that happens is
recorded, as for any test.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from time import process_time
from typing import Any, Final

from bench.tables import table
from sharestate import AcknowledgementBatch, AcknowledgeType
from sharestate.broker import QUICK_SETTINGS, StandingClock, TestBroker
from sharestate.broker.groups import ShareGroupHeartbeat
from sharestate.broker.node import (
    CreatableTopic,
    CreateTopicsRequest,
    LogRecord,
    PartitionOfRequest,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
    ShareAcknowledgeRequest,
    ShareBroker,
    ShareFetchRequest,
)
from sharestate.persister import InitializeStateParameters, PartitionStateData

GROUP, TOPIC, MEMBER = "g", "orders", "m"
ACCEPT: Final = (AcknowledgeType.ACCEPT,)
TIMES: Final = 4
"""How much more the second figure has."""

Steps = dict[str, float]
"""The CPU time of each step of a test. [s]"""


class Scene:
    """
    A test broker, its time standing, and what a test does with it.

    Attributes:
        steps: How long each step has taken so far. [s]
    """

    def __init__(self, partitions: int = 1) -> None:
        """Begin with a topic, from whose beginning a group begins."""
        self.steps: Steps = {}
        settings = {**QUICK_SETTINGS, "group.share.max.size": "1000", "group.share.max.share.sessions": "1000"}
        self._broker = TestBroker(clock=StandingClock(now_ms=0), config=settings)
        self._broker.__enter__()
        self._partitions = range(partitions)
        self._epoch = 0
        self._left = 0
        self.call(CreateTopicsRequest(topics=[CreatableTopic(name=TOPIC, partition_count=partitions)]))
        self.topic_id: str = self._broker.run(lambda node: next(iter(node.topics)).topic_id)
        for partition in self._partitions:
            state = PartitionStateData(partition=partition, start_offset=0)
            self.call(InitializeStateParameters.of(GROUP, self.topic_id, state))

    def call(self, *requests: Any) -> list[Any]:  # noqa: ANN401 - of any kind
        """Return the answers of the node to *requests*."""
        return self.run(lambda node: [node.call(request, now_ms=0) for request in requests])

    def run(self, function: Callable[[ShareBroker], list[Any]]) -> list[Any]:
        """Return what *function* makes of the node."""
        return self._broker.run(function)

    def step(self, name: str, function: Callable[[], object]) -> None:
        """Take a step."""
        begin = process_time()
        function()
        self.steps[name] = process_time() - begin

    def produce(self, count: int) -> None:
        """Write *count* records to each partition, each a batch of its own."""
        batch = ProducedBatch(records=[LogRecord(b"key", b"value")])
        places = [ProducedPartition(self.topic_id, partition, batch) for partition in self._partitions]
        request = ProduceRequest(partitions=places)
        self.call(*[request] * count)
        self._left += count * len(places)

    def take(self, most: int, *, by: int) -> None:
        """Fetch *most* records at a time until none is left, and accept them, *by* of them with each request."""

        def take_all(node: ShareBroker) -> list[Any]:
            while self._left:
                for partition, offsets in self._fetch(node, most).items():
                    self._left -= len(offsets)
                    for begin in range(0, len(offsets), by):
                        self._accept(node, partition, offsets[begin], offsets[begin : begin + by][-1])
            return []

        self.run(take_all)

    def ask(self) -> None:
        """Ask what a test asks in the end."""
        broker = self._broker
        self.step("expect_delivered_once", lambda: broker.expect_delivered_once(GROUP))
        self.step("expect_all_done", lambda: broker.expect_all_done(GROUP))
        self.step("not_done", broker.not_done)
        self.step("explain", lambda: broker.explain(TOPIC, 0, 0))
        self.step("share_partitions", broker.share_partitions)
        broker.__exit__(None, None, None)

    # ---- inside

    def _next_epoch(self) -> int:
        self._epoch += 1
        return self._epoch - 1

    def _fetch(self, node: ShareBroker, most: int) -> dict[int, range]:
        epoch = self._next_epoch()
        request = ShareFetchRequest(
            group_id=GROUP,
            member_id=MEMBER,
            share_session_epoch=epoch,
            partitions=[] if epoch else [PartitionOfRequest(self.topic_id, each) for each in self._partitions],
            max_records=most,
            batch_size=most,
        )
        response: Any = node.call(request, now_ms=0)
        return {
            each.partition: range(each.acquired_records[0].first_offset, each.acquired_records[-1].last_offset + 1)
            for each in response.partitions
            if each.acquired_records
        }

    def _accept(self, node: ShareBroker, partition: int, first: int, last: int) -> None:
        batch = AcknowledgementBatch(first, last, ACCEPT)
        partitions = [PartitionOfRequest(self.topic_id, partition, [batch])]
        request = ShareAcknowledgeRequest(
            group_id=GROUP, member_id=MEMBER, share_session_epoch=self._next_epoch(), partitions=partitions
        )
        node.call(request, now_ms=0)


# ---- tests


def one_by_one(count: int) -> Steps:
    """Take *count* records of a log one by one."""
    scene = Scene()
    scene.step("produce", lambda: scene.produce(count))
    scene.step("take", lambda: scene.take(1, by=1))
    scene.ask()
    return scene.steps


def accepted_one_by_one(count: int) -> Steps:
    """Take *count* records 500 at a time, and accept them one by one."""
    scene = Scene()
    scene.produce(count)
    scene.step("take", lambda: scene.take(500, by=1))
    scene.ask()
    return scene.steps


def many_partitions(count: int) -> Steps:
    """Take 10 records of each of *count* partitions."""
    scene = Scene(count)
    scene.step("produce", lambda: scene.produce(10))
    scene.step("take", lambda: scene.take(500, by=500))
    scene.ask()
    return scene.steps


def many_members(count: int) -> Steps:
    """Have *count* members join a group with 500 partitions, and each send 10 heartbeats."""
    scene = Scene(500)
    epochs = {f"member-{number}": 0 for number in range(count)}

    def heartbeats(rounds: int) -> None:
        for member_id in [*epochs] * rounds:
            epoch = epochs[member_id]
            topics = None if epoch else (TOPIC,)
            heartbeat = ShareGroupHeartbeat(group_id=GROUP, member_id=member_id, member_epoch=epoch, topic_names=topics)
            epochs[member_id] = scene.call(heartbeat)[0].result.member_epoch

    scene.step("join", lambda: heartbeats(1))
    scene.step("heartbeats", lambda: heartbeats(10))
    return scene.steps


TESTS: Final[Mapping[str, tuple[Callable[[int], Steps], int]]] = {
    "records one by one": (one_by_one, 5_000),
    "accepted one by one": (accepted_one_by_one, 5_000),
    "partitions": (many_partitions, 125),
    "members": (many_members, 50),
}
"""What is done, and with how many at first."""


def report(part: float, rounds: int) -> Iterator[str]:
    """Yield the lines of a table, with *part* of the numbers of ``TESTS``."""
    rows = []
    for name, (test, number) in TESTS.items():
        few = max(1, round(part * number))
        taken = [[test(each) for _ in range(rounds)] for each in (few, TIMES * few)]
        least = [{step: min(times[step] for times in of_size) for step in of_size[0]} for of_size in taken]
        for step, of_few in least[0].items():
            of_many = least[1][step]
            times = (f"{of_few * 1e3:.1f}", f"{of_many * 1e3:.1f}")
            rows.append((f"{few:,} and {TIMES * few:,} {name}: {step}", *times, f"{of_many / of_few / TIMES:.2f}"))
    yield from table(("", "few, ms", "many, ms", "ratio for one"), rows)


if __name__ == "__main__":
    parser = ArgumentParser(prog="python -m bench.test_broker_growth")
    parser.add_argument("--part", type=float, default=1, help="of the numbers of records, members and partitions; 1")
    parser.add_argument("--rounds", type=int, default=3, help="of which the least counts; 3")
    arguments = parser.parse_args()
    print("\n".join(report(arguments.part, arguments.rounds)))  # noqa: T201 - what it is for
