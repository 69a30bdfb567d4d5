"""Several groups and partitions in memory, each share partition a `MockShareGroup`, as a machine of the kit."""

# ruff: noqa: D102 - what a machine implements has its docstring there

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from attrs import define, field

from sharestate.testing.groups import AcknowledgementBatch, AcquireMode, GroupSettings, ShareGroupMachine
from tests.support.mock_share_group import MockShareGroup

BESIDE_EACH_OTHER = ((0, 0), (0, 1), (1, 0))
"""Two partitions of a group, and one of them in another group."""


@define
class MockNeighbours:
    """Correct ones; each bug of `mixed_up` is a subclass that changes one method."""

    settings: GroupSettings
    all: dict[tuple[int, int], MockShareGroup] = field(init=False)
    group: int = 0
    partition: int = 0

    def __attrs_post_init__(self) -> None:
        """Begin with empty logs."""
        self.all = {place: MockShareGroup(self.settings) for place in BESIDE_EACH_OTHER}

    @property
    def here(self) -> MockShareGroup:
        """The share partition that requests are about."""
        return self.all[self.group, self.partition]

    def of_partition(self) -> Iterator[MockShareGroup]:
        """Go through the share partitions that read the partition's log."""
        return (each for (_, partition), each in self.all.items() if partition == self.partition)

    def in_log(self, name: str, *arguments: Any) -> Any:  # noqa: ANN401 - whatever the method returns
        """Let something happen in the log of the partition, and return what it returns."""
        first, *_ = [getattr(each, name)(*arguments) for each in self.of_partition()]
        return first

    def fetch(self, member: str, max_records: int) -> list[tuple[int, int, int]]:
        """Acquire for a member."""
        return self.here.fetch(member, max_records)

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        """Acknowledge all ranges, or refuse them all."""
        return self.here.acknowledge(member, batches)

    def close_session(self, member: str) -> None:
        """Release what a member of the group owns."""
        for (group, _), each in self.all.items():
            if group == self.group:
                each.close_session(member)

    def fail_over(self) -> None:
        """Begin anew with what is stored."""
        for each in self.all.values():
            each.fail_over()


class NeighboursMachine(ShareGroupMachine):
    """Several share partitions in memory."""

    broker_type: ClassVar[type[MockNeighbours]] = MockNeighbours
    share_partitions = BESIDE_EACH_OTHER
    renews = True
    acquire_mode = AcquireMode.RECORD_LIMIT

    def start(self, settings: GroupSettings) -> None:
        self.broker = self.broker_type(settings)

    def select_share_partition(self, group: int, partition: int) -> None:
        self.broker.group, self.broker.partition = group, partition

    def produce(self, count: int, producer: str | None) -> list[int]:
        offsets: list[int] = self.broker.in_log("produce", count, producer)
        return offsets

    def commit_transaction(self, producer: str) -> int:
        return int(self.broker.in_log("commit_transaction", producer))

    def abort_transaction(self, producer: str) -> int:
        return int(self.broker.in_log("abort_transaction", producer))

    def delete_records(self, before_offset: int) -> None:
        self.broker.in_log("delete_records", before_offset)

    def fetch(self, member: str, max_records: int) -> list[tuple[int, int, int]]:
        return self.broker.fetch(member, max_records)

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        return self.broker.acknowledge(member, batches)

    def close_session(self, member: str) -> None:
        self.broker.close_session(member)

    def advance_clock(self, ms: int) -> None:
        for each in self.broker.all.values():
            each.advance_clock(ms)

    def fail_over(self) -> None:
        self.broker.fail_over()
