"""A mock broker as people write them for their tests: one share partition with a log, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define

from sharestate import AcknowledgementBatch, AcknowledgeType, ErrorCode
from sharestate.testing.search import OwnLogPeer


@define
class NaiveRecord:
    """A record of the log: who has it until when, and how often it was delivered."""

    state: str = "available"
    delivery_count: int = 0
    member: str = ""
    deadline_ms: int = 0


class NaiveBroker(OwnLogPeer):
    """A broker by the rules of the KIP, as far as one record each goes."""

    def start(self, config: dict[str, int]) -> None:
        """Begin with an empty log."""
        self.limit = config["delivery_count_limit"]
        self.lock_ms = config["record_lock_duration_ms"]
        self.most_in_flight = config["max_record_locks"]
        self.records: dict[int, NaiveRecord] = {}
        self.log: dict[int, bool] = {}
        self.now_ms = self.begin = self.end = 0

    def append(self, offset: int, *, is_aborted: bool) -> None:
        """Append a record."""
        self.log[offset] = is_aborted

    def fetch(self, member: str, offsets: range, max_records: int) -> Iterable[Sequence[int]]:
        """Give the member what is available, as long as there is room."""
        room = min(max_records, self.most_in_flight - (self.end - self.begin))
        if room <= 0:  # what was delivered before may always be delivered again
            offsets = range(offsets[0], min(offsets.stop, self.end))
            room = min(max_records, len(offsets))
        for offset in offsets:
            if offset not in self.log or offset < self.begin:
                continue
            record = self.records.setdefault(offset, NaiveRecord())
            if record.state == "available" and room > 0:
                room -= 1
                if not self.records.keys() - {offset}:
                    self.begin = offset
                self.end = max(self.end, offset + 1)
                record.state, record.member = "acquired", member
                record.delivery_count += 1
                record.deadline_ms = self.now_ms + self.lock_ms
                if self.is_hidden(offset):
                    record.state, record.member = "archived", ""
                else:
                    yield offset, offset, record.delivery_count
            elif record.delivery_count == 0:
                del self.records[offset]
        self.advance()  # past what nobody may have

    def is_hidden(self, offset: int) -> bool:
        """Return whether nobody may have the record at *offset*."""
        return self.log[offset]

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        """Acknowledge all of it, or nothing."""
        types = {
            offset: given[0 if len(given) == 1 else offset - first]
            for first, last, given in batches
            for offset in range(first, last + 1)
            if offset >= self.begin
        }
        for offset in types:
            if not self.may_acknowledge(member, offset):
                return ErrorCode.INVALID_RECORD_STATE if offset in self.records else ErrorCode.INVALID_REQUEST
        for offset, kind in types.items():
            self.settle(self.records[offset], AcknowledgeType(kind))
        if set(types.values()) - {AcknowledgeType.RENEW}:
            self.advance()
        return ErrorCode.NONE

    def may_acknowledge(self, member: str, offset: int) -> bool:
        """Return whether the member has the record."""
        record = self.records.get(offset)
        return record is not None and record.state == "acquired" and record.member == member

    def settle(self, record: NaiveRecord, kind: AcknowledgeType) -> None:
        """Do what an acknowledgement of this type says."""
        if kind is AcknowledgeType.RENEW:
            record.deadline_ms = self.now_ms + self.lock_ms
            return
        record.member = ""
        if kind is AcknowledgeType.RELEASE:
            self.release(record)
        else:
            record.state = "acknowledged" if kind is AcknowledgeType.ACCEPT else "archived"

    def release(self, record: NaiveRecord) -> None:
        """Make a record available again, unless it was delivered too often."""
        record.member = ""
        record.state = "archived" if record.delivery_count >= self.limit else "available"

    def advance_clock(self, ms: int) -> None:
        """Let time pass, and with it locks expire."""
        self.now_ms += ms
        for offset in sorted(self.records):
            record = self.records.get(offset)
            if record and record.state == "acquired" and self.has_expired(record):
                if offset < self.begin:
                    record.state, record.member = "archived", ""
                else:
                    self.release(record)
                self.advance()

    def has_expired(self, record: NaiveRecord) -> bool:
        """Return whether the lock is over."""
        return record.deadline_ms < self.now_ms

    def close_session(self, member: str) -> None:
        """Release all that the member has."""
        held = {offset: record for offset, record in self.records.items() if record.member == member}
        for offset, record in held.items():
            self.release(record)
            if offset < self.begin:
                record.state = "archived"
        if held:
            self.advance()

    def delete_records(self, before_offset: int) -> None:
        """Give up what the log no longer has."""
        if before_offset > self.begin:
            for offset, record in self.records.items():
                if record.state == "available" and offset < before_offset:
                    record.state = "archived"
            # Kafka counts one record in flight when the log start has passed all that is cached.
            self.begin, self.end = before_offset, max(before_offset + bool(self.records), self.end)
            self.advance()

    def advance(self) -> None:
        """Forget what is done, from the beginning on."""
        last = -1
        for last in sorted(self.records):
            if self.records[last].state not in {"acknowledged", "archived"}:
                self.begin = max(self.begin, last)
                return
            del self.records[last]
        self.begin = self.end = max(self.begin, last + 1)
