"""
Test share groups of your own: a naive one whose bugs are found one by one, and the mock broker, in which none is.

`NaiveGroup` is what one writes at first. Each class after it mends what `ShareGroupMachine` finds in the one before.
Run it from the top of the repository: ``python -m examples.testing_share_groups``.
"""

# ruff: noqa: D102 - what a machine implements has its docstring there

from collections.abc import Sequence
from typing import ClassVar

from attrs import define

from examples.mock_broker import Log, MockBroker
from sharestate import NO_PRODUCER_ID, AcknowledgementBatch, AcknowledgeType, AcquiredRecords, ControlType, ShareConfig
from sharestate.testing.groups import (
    READ_COMMITTED,
    Allowance,
    GroupSettings,
    Guarantee,
    GuaranteeBrokenError,
    ShareGroupMachine,
)

PRODUCER_IDS = {None: NO_PRODUCER_ID, "p1": 1, "p2": 2}
INVALID_RECORD_STATE = 121


@define
class Progress:
    """How far a record has come."""

    deliveries: int = 0
    owner: str = ""
    deadline_ms: int = 0
    is_done: bool = False


class NaiveGroup:
    """A share group on one partition. It has three bugs."""

    def __init__(self, settings: GroupSettings) -> None:
        """Begin with an empty log."""
        self.settings = settings
        self.log = Log()
        self.now_ms = 0
        self.progress: dict[int, Progress] = {}
        self.producer_ids: dict[int, int] = {}

    def append(self, count: int, producer_id: int) -> range:
        """Append a batch."""
        first = self.log.transactions.next_offset
        self.log.append(*["value"] * count, producer_id=producer_id)
        for offset in range(first, first + count):
            self.progress[offset] = Progress()
            self.producer_ids[offset] = producer_id
        return range(first, first + count)

    def fetch(self, member: str, max_records: int) -> list[tuple[int, int, int]]:
        """Acquire records that nobody owns."""
        response: list[tuple[int, int, int]] = []
        for offset, progress in self.progress.items():
            is_free = not progress.is_done and (not progress.owner or self.now_ms > progress.deadline_ms)
            if not is_free or not self.is_visible(offset) or offset < self.log.start_offset:
                continue
            if self.is_at_limit(progress):
                progress.is_done = True
            elif len(response) < max_records:
                progress.deliveries += 1
                progress.owner, progress.deadline_ms = member, self.now_ms + self.settings.lock_duration_ms
                response.append((offset, offset, progress.deliveries))
        return response

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        """Acknowledge records, or refuse to."""
        types = {}
        for first, last, names in batches:
            for index, offset in enumerate(range(first, last + 1)):
                types[offset] = names[index if len(names) > 1 else 0]
        if not all(self.may_acknowledge(member, offset) for offset in types):
            return INVALID_RECORD_STATE
        for offset, type_ in types.items():
            self.progress[offset].owner = ""
            self.progress[offset].is_done = type_ != AcknowledgeType.RELEASE
        return 0

    def is_at_limit(self, progress: Progress) -> bool:
        """Return whether a record was delivered often enough."""
        return progress.deliveries > self.settings.delivery_count_limit

    def may_acknowledge(self, member: str, offset: int) -> bool:
        """Return whether a member may acknowledge a record."""
        return offset in self.progress and self.progress[offset].owner == member

    def is_visible(self, offset: int) -> bool:
        """Return whether a record may be delivered, as far as transactions are concerned."""
        return offset < self.log.transactions.last_stable_offset


class CountsRight(NaiveGroup):
    """The delivery count limit is a number of deliveries, not one that they may exceed."""

    def is_at_limit(self, progress: Progress) -> bool:
        return progress.deliveries >= self.settings.delivery_count_limit


class LeavesOutAborted(CountsRight):
    """The records of aborted transactions lie below the last stable offset too, and are not delivered."""

    def is_visible(self, offset: int) -> bool:
        aborted = {transaction.producer_id for transaction in self.log.transactions.aborted_in(offset, offset)}
        return super().is_visible(offset) and self.producer_ids[offset] not in aborted


class LooksAtTheClock(LeavesOutAborted):
    """A member whose lock has expired does not own the record any more, even if nobody has taken it since."""

    def may_acknowledge(self, member: str, offset: int) -> bool:
        return super().may_acknowledge(member, offset) and self.now_ms <= self.progress[offset].deadline_ms


class NaiveMachine(ShareGroupMachine):
    """A naive group, or one that was mended. Its sessions have no end, and there is no other leader."""

    group_type: ClassVar[type[NaiveGroup]] = NaiveGroup
    isolation_level = READ_COMMITTED
    max_record_locks = 2_000

    def start(self, settings: GroupSettings) -> None:
        self.group = self.group_type(settings)

    def produce(self, count: int, producer: str | None) -> range:
        return self.group.append(count, PRODUCER_IDS[producer])

    def commit_transaction(self, producer: str) -> None:
        self.group.log.append(producer_id=PRODUCER_IDS[producer], control=ControlType.COMMIT)

    def abort_transaction(self, producer: str) -> None:
        self.group.log.append(producer_id=PRODUCER_IDS[producer], control=ControlType.ABORT)

    def fetch(self, member: str, max_records: int) -> list[tuple[int, int, int]]:
        return self.group.fetch(member, max_records)

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        return self.group.acknowledge(member, batches)

    def advance_clock(self, ms: int) -> None:
        self.group.now_ms += ms


class MockBrokerMachine(ShareGroupMachine):
    """The broker of `mock_broker.py`, with one partition."""

    delivers_ranges = True
    isolation_level = READ_COMMITTED
    max_record_locks = 2_000
    allowances = (
        # Every release of Kafka stalls here, and so does its profile: docs/kafka-bugs.md.
        Allowance("F5", Guarantee.NOTHING_LOST, lambda machine: machine.fetches_below_the_log_start()),
    )

    def start(self, settings: GroupSettings) -> None:
        config = ShareConfig(
            delivery_count_limit=settings.delivery_count_limit,
            record_lock_duration_ms=settings.lock_duration_ms,
            max_record_locks=settings.max_record_locks,
        )
        self.broker = MockBroker(partitions=1, config=config)
        for member in self.members:
            self.broker.open_session(member)

    def produce(self, count: int, producer: str | None) -> range:
        first = self.broker.logs[0].transactions.next_offset
        self.broker.logs[0].append(*["value"] * count, producer_id=PRODUCER_IDS[producer])
        return range(first, first + count)

    def commit_transaction(self, producer: str) -> None:
        self.broker.logs[0].append(producer_id=PRODUCER_IDS[producer], control=ControlType.COMMIT)

    def abort_transaction(self, producer: str) -> None:
        self.broker.logs[0].append(producer_id=PRODUCER_IDS[producer], control=ControlType.ABORT)

    def fetch(self, member: str, max_records: int) -> tuple[AcquiredRecords, ...]:
        fetched = self.broker.share_fetch(member, max_records)
        return fetched[0].acquired if fetched else ()

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        return self.broker.share_acknowledge(member, 0, list(batches))

    def close_session(self, member: str) -> None:
        self.broker.close_session(member)
        self.broker.open_session(member)

    def advance_clock(self, ms: int) -> None:
        self.broker.advance_clock(ms)

    def delete_records(self, before_offset: int) -> None:
        self.broker.logs[0].delete_records(before_offset)

    def fail_over(self) -> None:
        self.broker.fail_over(0)

    def fetches_below_the_log_start(self) -> bool:
        """Return whether the next fetch is out of range, although the SPSO has moved to the log start."""
        leader = self.broker.leaders[0]
        return leader.next_fetch_offset(now_ms=self.broker.now_ms) < leader.partition.start_offset


class CountsRightMachine(NaiveMachine):
    """The first bug is mended."""

    group_type = CountsRight


class LeavesOutAbortedMachine(NaiveMachine):
    """The second one, too."""

    group_type = LeavesOutAborted


class LooksAtTheClockMachine(NaiveMachine):
    """All are."""

    group_type = LooksAtTheClock


BROKEN = (NaiveMachine, CountsRightMachine, LeavesOutAbortedMachine)
CORRECT = (LooksAtTheClockMachine, MockBrokerMachine)


def main() -> None:
    """Test one after the other, and print what is found."""
    for machine in (*BROKEN, *CORRECT):
        try:
            machine.TestCase().runTest()
        except GuaranteeBrokenError as error:
            print(f"{machine.__name__}: {error}", *error.__notes__, "", sep="\n")
        else:
            print(f"{machine.__name__}: every guarantee holds")


if __name__ == "__main__":
    main()
