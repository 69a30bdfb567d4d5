"""
Six orders, two of which nobody can process, and the dead-letter queue in which they end.

Run it with `python examples/dead_letters.py`. A leader ends between the two writes of a dead letter, and the next one
finishes what it has begun; so one dead letter is written twice. There is no broker, no clock and no network.
"""

import sys
from collections.abc import Iterator
from itertools import count

from sharestate import (
    KAFKA_4_4,
    AcknowledgementBatch,
    AcknowledgeType,
    FetchedRecords,
    InMemoryDeadLetterQueue,
    InMemoryPersister,
    Leader,
    RecordBatch,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
)
from sharestate.dead_letters import DeadLetterSettings, SourceRecord
from sharestate.persister import InitializeStateParameters, PartitionStateData

KEY = SharePartitionKey(group_id="packers", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)
ORDERS = [b"2 hats", b"1 coat", b"?!#", b"3 gloves", b"-7 socks", b"1 scarf"]
LAST = len(ORDERS) - 1
SETTINGS = DeadLetterSettings(topic_name="dlq.orders", topic_group_enable=True, copy_record_enable=True)


def order(_: SharePartitionKey, offset: int) -> SourceRecord:
    """Return the record at *offset*, for the copy in its dead letter."""
    return SourceRecord(value=ORDERS[offset])


class Packers:
    """A share group with a dead-letter queue, which gives up a record after two deliveries."""

    def __init__(self) -> None:
        """Begin with nothing in flight."""
        self.persister = InMemoryPersister()
        state = PartitionStateData(partition=KEY.partition, start_offset=0)
        self.persister.initialize_state(InitializeStateParameters.of(KEY.group_id, KEY.topic_id, state)).result()
        self.queue = InMemoryDeadLetterQueue(SETTINGS, topic_names={KEY.topic_id: "orders"}, read_record=order)
        self.epochs = count(1)
        self.times: Iterator[int] = count()
        self.leader = self.lead()

    def lead(self) -> Leader:
        """Return a new leader that has loaded the persisted state."""
        config = ShareConfig(delivery_count_limit=2, dead_letter_queue=SETTINGS.has_queue)
        partition = SharePartition(KEY, leader_epoch=next(self.epochs), profile=KAFKA_4_4, config=config)
        leader = Leader(partition, self.persister, reset_offset=lambda _: 0, dead_letter_queue=self.queue)
        leader.start(now_ms=next(self.times)).result()
        return leader

    def acquire(self) -> str:
        """Acquire what there is for ann, and return which records she got."""
        fetched = FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, LAST)])
        acquired = self.leader.acquire("ann", fetched, now_ms=next(self.times))
        return ", ".join(f"{first}-{last} (delivery {count})" for first, last, count in acquired)

    def say(self, first: int, last: int, what: AcknowledgeType) -> None:
        """Have ann acknowledge the records *first* to *last*."""
        batches = [AcknowledgementBatch(first, last, (what,))]
        self.leader.acknowledge("ann", batches, now_ms=next(self.times)).result()

    def show(self, what_happened: str) -> None:
        """Print what happened, the states of the records, and the dead letters."""
        batches = self.leader.partition.batches()
        states = [f"{run.first_offset}-{run.last_offset} {run.state.name}" for batch in batches for run in batch.runs]
        print(f"\n{what_happened}\n    in flight: {', '.join(states) or 'nothing'}")
        for line in self.dead_letters():
            print(f"    dead letter: {line}")

    def dead_letters(self) -> list[str]:
        """Return what each dead letter says."""
        said = []
        for record in self.queue.records:
            header = {name.removeprefix("__dlq.errors."): value.decode() for name, value in record.headers}
            text = (record.value or b"").decode()
            said.append(f"{header['topic']}-{header['partition']}@{header['offset']} {text!r}: {header['message']}")
        return said


def main() -> None:
    """Run the example."""
    packers = Packers()
    packers.show(f"ann acquires {packers.acquire()}.")
    packers.say(0, 1, AcknowledgeType.ACCEPT)
    packers.say(2, 2, AcknowledgeType.REJECT)
    packers.say(3, LAST, AcknowledgeType.RELEASE)
    packers.show(
        "She packs 0 and 1. She cannot read 2 and rejects it: its dead letter is written. She has no time left."
    )
    got = packers.acquire()
    packers.say(3, 3, AcknowledgeType.ACCEPT)
    packers.queue.is_holding = True
    packers.say(4, 4, AcknowledgeType.RELEASE)
    packers.say(5, LAST, AcknowledgeType.ACCEPT)
    packers.show(
        f"She acquires {got}, and cannot make sense of 4. That was its last delivery; the queue takes its time."
    )
    packers.queue.held[0].lose(TimeoutError("no answer"))
    packers.queue.is_holding = False
    packers.leader = packers.lead()
    packers.show("The queue has written it, but the leader has gone before it knew. The next one asks again.")
    is_as_it_should_be = (
        [line.partition(" ")[0] for line in packers.dead_letters()],
        packers.leader.partition.start_offset,
    ) == (["orders-0@2", "orders-0@4", "orders-0@4"], LAST + 1)
    print(f"\nVERDICT: {'as it should be' if is_as_it_should_be else 'NOT as it should be'}.", end=" ")
    print("2 records have dead letters, 1 of them twice, and the SPSO is past them all.")
    sys.exit(0 if is_as_it_should_be else 1)


if __name__ == "__main__":
    main()
