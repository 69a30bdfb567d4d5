"""Share groups in memory that are correct, and do otherwise than `MockShareGroup` what Kafka leaves open."""

# ruff: noqa: D102 - each says in its class what its methods do

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field

from tests.support.mock_share_group import MockRecord, MockShareGroup


@define
class KeepsBatchOfLogStart(MockShareGroup):
    """The log keeps the batch in which it starts as a whole, and a new leader delivers all of it that is not done."""

    firsts: dict[int, int] = field(factory=dict)
    """The first offset of the batch of each offset."""

    def produce(self, count: int, producer: str | None) -> list[int]:
        offsets = super().produce(count, producer)
        self.firsts.update(dict.fromkeys(offsets, offsets[0]))
        return offsets

    def readable(self) -> Iterator[tuple[int, MockRecord]]:
        log_start = self.log_start
        self.log_start = self.firsts.get(log_start, log_start)
        readable = [*super().readable()]
        self.log_start = log_start
        yield from readable
