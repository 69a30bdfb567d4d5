"""Bugs planted in the share group of `mock_share_group`, each with its name and what it does wrong."""

# ruff: noqa: ARG002, D102 - a bug says in its class what its method does, and does not look at all that it is given

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from sharestate.testing.groups import AcknowledgementBatch
from tests.planted.bulk import MANY
from tests.planted.healed_by_failover import HEALED_BY_FAILOVER
from tests.planted.locks import LOCK_BUGS
from tests.planted.overlapping import OVERLAPPING
from tests.support.mock_share_group import RELEASE, RENEW, MockRecord, MockShareGroup, MockState

PLANTED: Final[dict[str, type[MockShareGroup]]] = {}


def planted(bug: type[MockShareGroup]) -> type[MockShareGroup]:
    """Add a bug to the table, under the name of its class."""
    PLANTED["".join(f" {char.lower()}" if char.isupper() else char for char in bug.__name__).strip()] = bug
    return bug


# ---- the delivery count


@planted
class DeliveryLimitPlusOne(MockShareGroup):
    """A record is delivered once more than the limit says."""

    def is_at_limit(self, record: MockRecord) -> bool:
        return record.count > self.settings.delivery_count_limit


@planted
class LimitForgottenByExpiry(MockShareGroup):
    """An expired lock makes a record available however often it was delivered."""

    def expire(self, offset: int, record: MockRecord) -> None:
        self.become(offset, record, MockState.AVAILABLE)


@planted
class LimitForgottenByClosing(MockShareGroup):
    """A closed session makes records available however often they were delivered."""

    def close_session(self, member: str) -> None:
        for offset, record in self.log.items():
            if record.state is MockState.ACQUIRED and record.owner == member:
                self.become(offset, record, MockState.AVAILABLE)


@planted
class LimitMinusOne(MockShareGroup):
    """A record is given up one delivery too early."""

    def is_at_limit(self, record: MockRecord) -> bool:
        return record.count >= self.settings.delivery_count_limit - 1


@planted
class CountNotRaisedAfterExpiry(MockShareGroup):
    """An expired lock takes its delivery off the count."""

    def expire(self, offset: int, record: MockRecord) -> None:
        record.count -= 1
        super().expire(offset, record)


@planted
class CountRaisedByRelease(MockShareGroup):
    """A release counts as a delivery."""

    def release(self, offset: int, record: MockRecord) -> None:
        super().release(offset, record)
        record.count += 1


@planted
class CountLostAtFailover(MockShareGroup):
    """A new leader counts from the beginning."""

    def fail_over(self) -> None:
        super().fail_over()
        for record in self.log.values():
            record.count = 0


# ---- locks and owners


@planted
class DoubledLock(MockShareGroup):
    """A member gets what another one has acquired."""

    def may_acquire(self, member: str, record: MockRecord) -> bool:
        return super().may_acquire(member, record) or (record.state is MockState.ACQUIRED and record.owner != member)


@planted
class LocksNeverExpire(MockShareGroup):
    """A lock lasts until its record is acknowledged."""

    def has_expired(self, record: MockRecord) -> bool:
        return False


@planted
class LocksExpireEarly(MockShareGroup):
    """A lock lasts half as long as it should."""

    def deadline_ms(self) -> int:
        return self.now_ms + self.settings.lock_duration_ms // 2 - 1


@planted
class OneExpiryReleasesAll(MockShareGroup):
    """When one lock of a member expires, all that it owns is released."""

    def expire(self, offset: int, record: MockRecord) -> None:
        self.close_session(record.owner)

    def close_session(self, member: str) -> None:
        for offset, record in self.log.items():
            if record.state is MockState.ACQUIRED and record.owner == member:
                self.release(offset, record)


@planted
class AnyoneMayAcknowledge(MockShareGroup):
    """Every member may acknowledge what one has acquired."""

    def may_acknowledge(self, member: str, offset: int, type_: int) -> bool:
        record = self.log.get(offset)
        return super().may_acknowledge(record.owner if record else member, offset, type_)


@planted
class SecondAcknowledgementAccepted(MockShareGroup):
    """What was acknowledged may be acknowledged again."""

    def may_acknowledge(self, member: str, offset: int, type_: int) -> bool:
        record = self.log.get(offset)
        is_terminal = record is not None and record.state is MockState.TERMINAL
        return is_terminal or super().may_acknowledge(member, offset, type_)

    def change(self, offset: int, record: MockRecord, type_: int) -> None:
        if record.state is MockState.ACQUIRED:
            super().change(offset, record, type_)


@planted
class LateAcknowledgementAccepted(MockShareGroup):
    """Whose lock has expired may acknowledge until another member gets the record."""

    late: str = ""

    def expire(self, offset: int, record: MockRecord) -> None:
        owner = record.owner
        super().expire(offset, record)
        record.owner = owner

    def may_acknowledge(self, member: str, offset: int, type_: int) -> bool:
        record = self.log.get(offset)
        is_late = record is not None and record.owner == member
        return is_late or super().may_acknowledge(member, offset, type_)


@planted
class NeverAcquiredAcknowledged(MockShareGroup):
    """What nobody has acquired may be acknowledged."""

    def may_acknowledge(self, member: str, offset: int, type_: int) -> bool:
        record = self.log.get(offset)
        is_new = record is not None and record.count == 0 and not record.is_control
        return is_new or super().may_acknowledge(member, offset, type_)


@planted
class OtherErrorCode(MockShareGroup):
    """Refusals have the error code UNKNOWN_SERVER_ERROR."""

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        return -1 if super().acknowledge(member, batches) else 0


@planted
class RecordLocksIgnored(MockShareGroup):
    """A fetch takes as much as there is."""

    def room(self) -> int:
        return len(self.log)


@planted
class RenewalWithoutEffect(MockShareGroup):
    """RENEW succeeds, and the lock goes on as it was."""

    def change(self, offset: int, record: MockRecord, type_: int) -> None:
        if type_ != RENEW:
            super().change(offset, record, type_)


@planted
class RenewalThatIsOff(MockShareGroup):
    """RENEW succeeds although the group has it switched off."""

    def may_acknowledge(self, member: str, offset: int, type_: int) -> bool:
        return super().may_acknowledge(member, offset, RELEASE if type_ == RENEW else type_)


@planted
class RenewalAddsUp(MockShareGroup):
    """RENEW puts a whole lock duration behind what is left of the lock."""

    def change(self, offset: int, record: MockRecord, type_: int) -> None:
        if type_ == RENEW:
            record.deadline_ms += self.settings.lock_duration_ms
        else:
            super().change(offset, record, type_)


@planted
class LockSharedByMember(MockShareGroup):
    """A member that gets another record has its locks on the earlier ones extended."""

    def acquire(self, member: str, record: MockRecord) -> None:
        super().acquire(member, record)
        for other in self.log.values():
            if other.state is MockState.ACQUIRED and other.owner == member:
                other.deadline_ms = record.deadline_ms


@planted
class LimitOfAFetchIgnored(MockShareGroup):
    """A member that asks for two records gets three if there are as many."""

    def fetch(self, member: str, max_records: int) -> list[tuple[int, int, int]]:
        return super().fetch(member, max_records + 1)


# ---- acknowledgements


@planted
class ArchivedWithItsNeighbour(MockShareGroup):
    """A record that is archived at the limit takes the next one with it, if that is available."""

    def release(self, offset: int, record: MockRecord) -> None:
        super().release(offset, record)
        neighbour = self.log.get(offset + 1)
        if record.state is MockState.TERMINAL and neighbour is not None and neighbour.state is MockState.AVAILABLE:
            self.become(offset + 1, neighbour, MockState.TERMINAL)


@planted
class ReleasedRecordLost(MockShareGroup):
    """The next fetch goes on where the last one stopped, and misses what was released before."""

    position: int = 0

    def readable(self) -> Iterator[tuple[int, MockRecord]]:
        return ((offset, record) for offset, record in super().readable() if offset >= self.position)

    def release(self, offset: int, record: MockRecord) -> None:
        super().release(offset, record)
        self.position = max(self.position, offset + 1)


@planted
class ReleaseCountedAsAccept(MockShareGroup):
    """RELEASE does what ACCEPT does."""

    def change(self, offset: int, record: MockRecord, type_: int) -> None:
        super().change(offset, record, 1 if type_ == RELEASE else type_)


@planted
class RejectedRecordComesBack(MockShareGroup):
    """REJECT does what RELEASE does."""

    def reject(self, offset: int, record: MockRecord) -> None:
        self.release(offset, record)


@planted
class TypesShifted(MockShareGroup):
    """Of a list of types, each record gets that of the one after it."""

    def changes(self, batches: Sequence[AcknowledgementBatch]) -> Iterator[tuple[int, int]]:
        return super().changes(
            [AcknowledgementBatch(first, last, (*types[1:], types[0])) for first, last, types in batches]
        )


@planted
class FirstTypeForAll(MockShareGroup):
    """Of a list of types, the first one counts for all records."""

    def changes(self, batches: Sequence[AcknowledgementBatch]) -> Iterator[tuple[int, int]]:
        return super().changes([AcknowledgementBatch(first, last, types[:1]) for first, last, types in batches])


@planted
class OnlyFirstRange(MockShareGroup):
    """Of several ranges, only the first one is applied."""

    def changes(self, batches: Sequence[AcknowledgementBatch]) -> Iterator[tuple[int, int]]:
        return super().changes(batches[:1])


@planted
class RefusedInPart(MockShareGroup):
    """What stands before the record for which an acknowledgement is refused is applied."""

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        for offset, type_ in self.changes(batches):
            single = AcknowledgementBatch(offset, offset, (type_,))
            if code := super().acknowledge(member, [single]):
                return code
        return 0


@planted
class ClosedSessionKeepsLocks(MockShareGroup):
    """A member that leaves goes on owning what it has."""

    def close_session(self, member: str) -> None:
        pass


@planted
class ClosedSessionReleasesAll(MockShareGroup):
    """When one member leaves, all members lose what they own."""

    def close_session(self, member: str) -> None:
        for offset, record in self.log.items():
            if record.state is MockState.ACQUIRED:
                self.release(offset, record)


# ---- the log


@planted
class AbortedTransactionIgnored(MockShareGroup):
    """Aborted records are delivered with read_committed."""

    def abort_transaction(self, producer: str) -> int:
        return self.end_transaction(producer)


@planted
class OnlyLastBatchAborted(MockShareGroup):
    """Of an aborted transaction only the last batch is left out."""

    def abort_transaction(self, producer: str) -> int:
        before = self.aborted.copy()
        last = max(self.undecided_offsets(producer))
        marker = super().abort_transaction(producer)
        self.aborted = before | {last}
        return marker


@planted
class OpenTransactionDelivered(MockShareGroup):
    """With read_committed, records are delivered before their transaction has ended."""

    def is_visible(self, offset: int, record: MockRecord) -> bool:
        return offset not in self.aborted or super().is_visible(offset, record)


@planted
class CommittedTakenForAborted(MockShareGroup):
    """The records of a committed transaction are taken for aborted ones."""

    def commit_transaction(self, producer: str) -> int:
        return self.abort_transaction(producer)


@planted
class AbortEndsAllTransactions(MockShareGroup):
    """A transaction that is aborted takes the open ones of other producers with it."""

    def abort_transaction(self, producer: str) -> int:
        self.aborted |= {offset for offset, record in self.log.items() if record.producer is not None}
        return super().abort_transaction(producer)


@planted
class MarkersDelivered(MockShareGroup):
    """Members get transaction markers."""

    def end_transaction(self, producer: str) -> int:
        marker = super().end_transaction(producer)
        self.log[marker] = MockRecord()
        return marker


@planted
class HoleDelivered(MockShareGroup):
    """Members get offsets that the log does not have."""

    def produce(self, count: int, producer: str | None) -> list[int]:
        offsets = super().produce(count, producer)
        self.log.setdefault(self.log_end - 1, MockRecord())
        return offsets


@planted
class OffsetTwice(MockShareGroup):
    """A response names its first record twice, if it has two."""

    def fetch(self, member: str, max_records: int) -> list[tuple[int, int, int]]:
        response = super().fetch(member, max_records)
        return [*response, response[0]] if len(response) > 1 else response


@planted
class LogStartIgnored(MockShareGroup):
    """Deleted records are delivered."""

    def readable(self) -> Iterator[tuple[int, MockRecord]]:
        log_start, self.log_start = self.log_start, 0
        readable = [*super().readable()]
        self.log_start = log_start
        yield from readable


@planted
class OneMoreDeleted(MockShareGroup):
    """The first record after the log start offset is lost."""

    def delete_records(self, before_offset: int) -> None:
        super().delete_records(before_offset + 1)


# ---- leaders


@planted
class AcceptedComesBackAfterFailover(MockShareGroup):
    """ACCEPT is not persisted."""

    def accept(self, offset: int, record: MockRecord) -> None:
        record.state = MockState.TERMINAL


@planted
class RejectedComesBackAfterFailover(MockShareGroup):
    """REJECT is not persisted."""

    def reject(self, offset: int, record: MockRecord) -> None:
        record.state = MockState.TERMINAL


@planted
class RecordLostAtFailover(MockShareGroup):
    """A new leader begins after the last record that was ever acquired."""

    def fail_over(self) -> None:
        acquired = [record for record in self.log.values() if record.state is MockState.ACQUIRED]
        super().fail_over()
        for record in acquired:
            record.state = MockState.TERMINAL


@planted
class OwnersKeptAtFailover(MockShareGroup):
    """A new leader goes on with the owners and locks of the old one, and gives them new deadlines."""

    def fail_over(self) -> None:
        acquired = {offset: record.owner for offset, record in self.log.items() if record.state is MockState.ACQUIRED}
        super().fail_over()
        for offset, owner in acquired.items():
            self.acquire(owner, self.log[offset])


# ---- writes that fail


@planted
class ConfirmedWithoutWrite(MockShareGroup):
    """An acknowledgement that cannot be persisted succeeds nevertheless."""

    def failed(self, changes: Sequence[tuple[int, int]]) -> int:
        for offset, type_ in changes:
            if offset >= self.log_start:
                self.change(offset, self.log[offset], type_)
        return 0


@planted
class FailedWriteKept(MockShareGroup):
    """An acknowledgement that could not be persisted is answered with an error, and not rolled back."""

    def failed(self, changes: Sequence[tuple[int, int]]) -> int:
        for offset, type_ in changes:
            if offset >= self.log_start:
                self.change(offset, self.log[offset], type_)
        return super().failed(changes)


@planted
class LockLostByFailedWrite(MockShareGroup):
    """When an acknowledgement could not be persisted, the lock of its records never expires."""

    def failed(self, changes: Sequence[tuple[int, int]]) -> int:
        for offset, _ in changes:
            if offset in self.log:
                self.log[offset].deadline_ms = 1_000_000
        return super().failed(changes)


for further_bug in (*LOCK_BUGS, *HEALED_BY_FAILOVER, *MANY, *OVERLAPPING):
    planted(further_bug)

BUGS: Final[Mapping[str, type[MockShareGroup]]] = MappingProxyType(PLANTED)
