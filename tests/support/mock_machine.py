"""The share group of `mock_share_group` as a machine, correct or with a bug."""

# ruff: noqa: D102 - what a machine implements has its docstring there

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from sharestate.testing.groups import (
    AcknowledgementBatch,
    AcquireMode,
    GroupSettings,
    GuaranteeBrokenError,
    ShareGroupMachine,
)
from tests.planted.overlapping import SlowShareGroup
from tests.support.mock_share_group import MockShareGroup
from tests.support.searches import error_of


class MockMachine(ShareGroupMachine):
    """A share group in memory; the number of runs is counted."""

    group_type: ClassVar[type[MockShareGroup]] = MockShareGroup
    runs: ClassVar[int] = 0
    renews = True
    acquire_mode = AcquireMode.RECORD_LIMIT

    def start(self, settings: GroupSettings) -> None:
        type(self).runs += 1
        self.group = self.group_type(settings)

    def produce(self, count: int, producer: str | None) -> list[int]:
        return self.group.produce(count, producer)

    def commit_transaction(self, producer: str) -> int:
        return self.group.commit_transaction(producer)

    def abort_transaction(self, producer: str) -> int:
        return self.group.abort_transaction(producer)

    def fetch(self, member: str, max_records: int) -> list[tuple[int, int, int]]:
        return self.group.fetch(member, max_records)

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        return self.group.acknowledge(member, batches)

    def close_session(self, member: str) -> None:
        self.group.close_session(member)

    def advance_clock(self, ms: int) -> None:
        self.group.advance_clock(ms)

    def delete_records(self, before_offset: int) -> None:
        self.group.delete_records(before_offset)

    def fail_over(self) -> None:
        self.group.fail_over()

    def fail_writes(self) -> None:
        self.group.writes_fail = True

    def mend_writes(self) -> None:
        self.group.writes_fail = False


class SlowMachine(MockMachine):
    """A share group whose methods are coroutines."""

    group: SlowShareGroup

    async def fetch(self, member: str, max_records: int) -> list[tuple[int, int, int]]:  # type: ignore[override]
        return await self.group.fetches(member, max_records)

    async def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:  # type: ignore[override]
        return await self.group.acknowledges(member, batches)

    async def close_session(self, member: str) -> None:  # type: ignore[override]
        await self.group.closes(member)


def machine_of(group_type: type[MockShareGroup]) -> type[MockMachine]:
    """Return a machine of one kind of share group, whose runs are counted from 0."""
    if issubclass(group_type, SlowShareGroup):
        own = {"group_type": group_type, "runs": 0, "members_overlap": group_type.members_overlap}
        return type("MockMachine", (SlowMachine,), own)
    return type("MockMachine", (MockMachine,), {"group_type": group_type, "runs": 0})


def broken_by(
    machine: type[ShareGroupMachine], *, max_examples: int = 1_600, shrinks: bool = False
) -> GuaranteeBrokenError | None:
    """Run a machine always in the same way, and return the guarantee that it finds broken."""
    return error_of(machine, GuaranteeBrokenError, max_examples=max_examples, shrinks=shrinks)
