"""
A share group in memory, record by record, into which bugs can be planted; it shares no code with the library.

Each bug of `PLANTED` is a subclass that changes one method.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final

from attrs import define, field

from sharestate.testing.groups import READ_COMMITTED, AcknowledgementBatch, GroupSettings

INVALID_RECORD_STATE: Final = 121
COORDINATOR_NOT_AVAILABLE: Final = 15
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4


class MockState(Enum):
    """The state of a record."""

    AVAILABLE = 0
    ACQUIRED = 1
    TERMINAL = 2


@define
class MockRecord:
    """One offset of the log, as the group sees it."""

    producer: str | None = None
    is_control: bool = False
    state: MockState = MockState.AVAILABLE
    count: int = 0
    owner: str = ""
    deadline_ms: int = 0


@define
class MockShareGroup:
    """A correct one."""

    settings: GroupSettings
    now_ms: int = 0
    log: dict[int, MockRecord] = field(factory=dict)
    log_start: int = 0
    log_end: int = 0
    batches: int = 0
    undecided: set[str] = field(factory=set)
    aborted: set[int] = field(factory=set)
    stored: dict[int, tuple[MockState, int]] = field(factory=dict)
    writes_fail: bool = False

    # ---- the log

    def produce(self, count: int, producer: str | None) -> list[int]:
        """Append a batch; every third one is followed by an offset that the log does not have."""
        offsets = [*range(self.log_end, self.log_end + count)]
        self.log.update({offset: MockRecord(producer) for offset in offsets})
        self.batches += 1
        self.log_end += count + (self.batches % 3 == 0)
        if producer is not None:
            self.undecided.add(producer)
        return offsets

    def commit_transaction(self, producer: str) -> int:
        """Commit."""
        return self.end_transaction(producer)

    def abort_transaction(self, producer: str) -> int:
        """Abort."""
        self.aborted |= set(self.undecided_offsets(producer))
        return self.end_transaction(producer)

    def end_transaction(self, producer: str) -> int:
        """Append a marker, and return its offset."""
        for offset in self.undecided_offsets(producer):
            self.log[offset].producer = None
        self.undecided.discard(producer)
        self.log[self.log_end] = MockRecord(is_control=True)
        self.log_end += 1
        return self.log_end - 1

    def undecided_offsets(self, producer: str) -> list[int]:
        """Return the offsets of an open transaction."""
        return [offset for offset, record in self.log.items() if record.producer == producer]

    def delete_records(self, before_offset: int) -> None:
        """Move the log start offset."""
        self.log_start = before_offset

    # ---- members

    def fetch(self, member: str, max_records: int) -> list[tuple[int, int, int]]:
        """Acquire for a member."""
        self.expire_locks()
        most = min(max_records, self.room())
        response: list[tuple[int, int, int]] = []
        for offset, record in self.readable():
            if len(response) >= most:
                break
            if self.may_acquire(member, record):
                self.acquire(member, record)
                response.append((offset, offset, record.count))
        return response

    def room(self) -> int:
        """Return how many records may still be acquired."""
        return self.settings.max_record_locks - [record.state for record in self.log.values()].count(MockState.ACQUIRED)

    def readable(self) -> Iterator[tuple[int, MockRecord]]:
        """Go through the records that members may get."""
        for offset, record in self.log.items():
            if offset >= self.log_start and not record.is_control and self.is_visible(offset, record):
                yield offset, record

    def is_visible(self, offset: int, record: MockRecord) -> bool:
        """Return whether the isolation level lets a record through."""
        is_decided = record.producer is None and offset not in self.aborted
        return is_decided or self.settings.isolation_level != READ_COMMITTED

    def may_acquire(self, member: str, record: MockRecord) -> bool:  # noqa: ARG002 - for bugs
        """Return whether a record is free for a member."""
        return record.state is MockState.AVAILABLE

    def acquire(self, member: str, record: MockRecord) -> None:
        """Give a record to a member."""
        record.state = MockState.ACQUIRED
        record.owner = member
        record.count += 1
        record.deadline_ms = self.deadline_ms()

    def deadline_ms(self) -> int:
        """Return when a lock that begins now expires."""
        return self.now_ms + self.settings.lock_duration_ms

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        """Acknowledge all ranges, or refuse them all."""
        self.expire_locks()
        changes = list(self.changes(batches))
        if not all(self.may_acknowledge(member, offset, type_) for offset, type_ in changes):
            return INVALID_RECORD_STATE
        if self.writes_fail:
            return self.failed(changes)
        for offset, type_ in changes:
            if offset >= self.log_start:
                self.change(offset, self.log[offset], type_)
        return 0

    def failed(self, changes: Sequence[tuple[int, int]]) -> int:  # noqa: ARG002 - for bugs
        """Leave an acknowledgement undone that cannot be stored, and return the error code."""
        return COORDINATOR_NOT_AVAILABLE

    def changes(self, batches: Sequence[AcknowledgementBatch]) -> Iterator[tuple[int, int]]:
        """Go through the offsets of an acknowledgement, each with its type."""
        for first, last, types in batches:
            for index, offset in enumerate(range(first, last + 1)):
                yield offset, types[index if len(types) > 1 else 0]

    def may_acknowledge(self, member: str, offset: int, type_: int) -> bool:
        """Return whether a member may acknowledge an offset."""
        if offset < self.log_start:
            return True
        if type_ == RENEW and not self.settings.renew_acknowledge_enable:
            return False
        record = self.log.get(offset)
        return record is not None and record.state is MockState.ACQUIRED and record.owner == member

    def change(self, offset: int, record: MockRecord, type_: int) -> None:
        """Carry out an acknowledgement of one record."""
        if type_ == RENEW:
            record.deadline_ms = self.deadline_ms()
        elif type_ == RELEASE:
            self.release(offset, record)
        elif type_ == ACCEPT:
            self.accept(offset, record)
        else:
            self.reject(offset, record)

    def accept(self, offset: int, record: MockRecord) -> None:
        """Carry out ACCEPT."""
        self.become(offset, record, MockState.TERMINAL)

    def reject(self, offset: int, record: MockRecord) -> None:
        """Carry out REJECT."""
        self.become(offset, record, MockState.TERMINAL)

    def release(self, offset: int, record: MockRecord) -> None:
        """Carry out RELEASE."""
        self.become(offset, record, MockState.TERMINAL if self.is_at_limit(record) else MockState.AVAILABLE)

    def is_at_limit(self, record: MockRecord) -> bool:
        """Return whether a record is not delivered again."""
        return record.count >= self.settings.delivery_count_limit

    def become(self, offset: int, record: MockRecord, state: MockState) -> None:
        """Change a record's state, and store it."""
        record.state = state
        record.owner = ""
        if not self.writes_fail:
            self.stored[offset] = state, record.count

    def close_session(self, member: str) -> None:
        """Release what a member owns."""
        self.expire_locks()
        for offset, record in self.log.items():
            if record.state is MockState.ACQUIRED and record.owner == member and not self.writes_fail:
                self.release(offset, record)

    # ---- time and leaders

    def advance_clock(self, ms: int) -> None:
        """Let time pass."""
        self.now_ms += ms
        self.expire_locks()

    def expire_locks(self) -> None:
        """Release what was acquired for too long."""
        acquired = MockState.ACQUIRED
        for offset, record in self.log.items():
            if record.state is acquired and self.has_expired(record):
                self.expire(offset, record)

    def has_expired(self, record: MockRecord) -> bool:
        """Return whether a lock has expired."""
        return self.now_ms > record.deadline_ms

    def expire(self, offset: int, record: MockRecord) -> None:
        """Handle an expired lock."""
        self.release(offset, record)

    def fail_over(self) -> None:
        """Begin anew with what is stored."""
        for offset, record in self.log.items():
            record.state, record.count = self.stored.get(offset, (MockState.AVAILABLE, 0))
            record.owner = ""
