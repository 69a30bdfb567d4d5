"""More bugs planted in the share group of `mock_share_group`: of locks, and of what is persisted."""

# ruff: noqa: D102 - a bug says in its class what its methods do

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from attrs import define, field

from tests.support.mock_share_group import MockRecord, MockShareGroup, MockState

NEVER_MS: Final = 1_000_000
"""Later than any run lasts. [ms]"""


class ClosedSessionCancelsOtherLocks(MockShareGroup):
    """With the locks of a member that leaves, those that expire at the same time are cancelled, and never expire."""

    def close_session(self, member: str) -> None:
        ended = {record.deadline_ms for record in self.log.values() if record.owner == member}
        super().close_session(member)
        for record in self.log.values():
            if record.state is MockState.ACQUIRED and record.deadline_ms in ended:
                record.deadline_ms = NEVER_MS


class LockJoinsTheEarliest(MockShareGroup):
    """What a member gets expires with what it has had for longer."""

    def acquire(self, member: str, record: MockRecord) -> None:
        owned = [other.deadline_ms for other in self.log.values() if other.owner == member]
        super().acquire(member, record)
        record.deadline_ms = min([record.deadline_ms, *owned])


class ClosedSessionKeepsLaterLocks(MockShareGroup):
    """A member that leaves loses what it got first, and owns what it got later until that expires."""

    def close_session(self, member: str) -> None:
        owned = [record for record in self.log.values() if record.owner == member]
        earliest_ms = min((record.deadline_ms for record in owned), default=0)
        later = [record for record in owned if record.deadline_ms > earliest_ms]
        for record in later:
            record.owner = f"{member}, gone"
        super().close_session(member)


class ArchivedComesBackAfterFailover(MockShareGroup):
    """That a record was delivered often enough is not persisted."""

    def release(self, offset: int, record: MockRecord) -> None:
        super().release(offset, record)
        if record.state is MockState.TERMINAL and not self.writes_fail:
            self.stored[offset] = MockState.AVAILABLE, record.count - 1


class UnwrittenTakenForAccepted(MockShareGroup):
    """A new leader takes what lies below the last persisted record, and was not persisted itself, for accepted."""

    def fail_over(self) -> None:
        super().fail_over()
        for offset, record in self.log.items():
            if offset < max(self.stored, default=0) and offset not in self.stored:
                record.state = MockState.TERMINAL


@define
class FullWindowHidesItsGaps(MockShareGroup):
    """A new leader never fetches what was not persisted, if what was persisted after it fills the record locks."""

    hidden: set[int] = field(factory=set)

    def fail_over(self) -> None:
        super().fail_over()
        last = max(self.stored, default=-1)
        unwritten = {offset for offset in self.log if offset < last and offset not in self.stored}
        is_full = last - min(unwritten, default=last) + 1 >= self.settings.max_record_locks
        self.hidden = unwritten if is_full else set()

    def readable(self) -> Iterator[tuple[int, MockRecord]]:
        return ((offset, record) for offset, record in super().readable() if offset not in self.hidden)


class OneRecordLockMore(MockShareGroup):
    """There is one record lock more than there should be."""

    def room(self) -> int:
        return super().room() + 1


class ClosedSessionByPrefix(MockShareGroup):
    """The session of a member that leaves is closed for members too whose id begins with its id."""

    def close_session(self, member: str) -> None:
        for name in {record.owner for record in self.log.values() if record.owner.startswith(member)}:
            super().close_session(name)


class ReleaseOfPartReleasesAll(MockShareGroup):
    """A member that releases one record loses all that it owns."""

    def release(self, offset: int, record: MockRecord) -> None:
        owner = record.owner
        super().release(offset, record)
        for other, theirs in self.log.items():
            if theirs.state is MockState.ACQUIRED and theirs.owner == owner:
                super().release(other, theirs)


LOCK_BUGS: Final[Sequence[type[MockShareGroup]]] = (
    ClosedSessionCancelsOtherLocks,
    LockJoinsTheEarliest,
    ClosedSessionKeepsLaterLocks,
    ArchivedComesBackAfterFailover,
    UnwrittenTakenForAccepted,
    FullWindowHidesItsGaps,
    OneRecordLockMore,
    ClosedSessionByPrefix,
    ReleaseOfPartReleasesAll,
)
