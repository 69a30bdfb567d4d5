"""A share group whose methods await something, and bugs that are planted in it: they need calls that overlap."""

# ruff: noqa: D102 - a bug says in its class what its methods do

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar, Final

from attrs import define, field

from sharestate.testing.groups import AcknowledgementBatch
from tests.support.mock_share_group import INVALID_RECORD_STATE, MockShareGroup, MockState


class SlowShareGroup(MockShareGroup):
    """A correct one: what awaits something looks again afterwards."""

    members_overlap: ClassVar[bool] = False

    async def fetches(self, member: str, max_records: int) -> list[tuple[int, int, int]]:
        """Acquire for a member."""
        await asyncio.sleep(0)
        return self.fetch(member, max_records)

    async def acknowledges(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        """Acknowledge all ranges, or refuse them all."""
        await asyncio.sleep(0)
        return self.acknowledge(member, batches)

    async def closes(self, member: str) -> None:
        """Release what a member owns."""
        await asyncio.sleep(0)
        self.close_session(member)


class AcknowledgedLater(SlowShareGroup):
    """An acknowledgement looks who owns the records, waits, and changes them, even if others own them then."""

    async def acknowledges(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        self.expire_locks()
        changes = list(self.changes(batches))
        if not all(self.may_acknowledge(member, offset, type_) for offset, type_ in changes):
            return INVALID_RECORD_STATE
        await asyncio.sleep(0)
        if self.writes_fail:
            return self.failed(changes)
        for offset, type_ in changes:
            if offset >= self.log_start:
                self.change(offset, self.log[offset], type_)
        return 0


class ClosedOneByOne(SlowShareGroup):
    """A session that is closed looks what its member owns, and releases one after the other, even if others own it."""

    async def closes(self, member: str) -> None:
        self.expire_locks()
        for offset in [offset for offset, record in self.log.items() if record.owner == member]:
            for _ in range(3):  # a write, and its answer
                await asyncio.sleep(0)
            if self.log[offset].state is MockState.ACQUIRED and not self.writes_fail:
                self.release(offset, self.log[offset])


class StoredTogether(SlowShareGroup):
    """An acknowledgement stores the whole group as it was when it began: what others have stored since is lost."""

    async def acknowledges(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        before = dict(self.stored)
        code = self.acknowledge(member, batches)
        changed = {offset: self.stored[offset] for offset, _ in self.changes(batches) if offset in self.stored}
        await asyncio.sleep(0)
        if code == 0:
            self.stored = {**before, **changed}
        return code


class CountedEarly(SlowShareGroup):
    """A fetch reads the delivery counts, waits, and counts on from what it has read."""

    async def fetches(self, member: str, max_records: int) -> list[tuple[int, int, int]]:
        self.expire_locks()
        counts = {offset: record.count for offset, record in self.log.items()}
        await asyncio.sleep(0)
        response = []
        for offset, _, _ in self.fetch(member, max_records):
            self.log[offset].count = counts.get(offset, 0) + 1
            response.append((offset, offset, self.log[offset].count))
        return response


@define
class LateAnswer(SlowShareGroup):
    """A fetch that overlaps another one of the same member brings what that one brings, too."""

    members_overlap: ClassVar[bool] = True
    on_their_way: dict[str, list[tuple[int, int, int]]] = field(factory=dict)

    async def fetches(self, member: str, max_records: int) -> list[tuple[int, int, int]]:
        got = self.fetch(member, max_records)
        self.on_their_way.setdefault(member, []).extend(got)
        await asyncio.sleep(0)
        return sorted(self.on_their_way.pop(member, got))


OVERLAPPING: Final[Sequence[type[SlowShareGroup]]] = (
    AcknowledgedLater,
    ClosedOneByOne,
    StoredTogether,
    CountedEarly,
    LateAnswer,
)
