"""Bugs of mock brokers, each with a word on what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from sharestate import AcknowledgementBatch, AcknowledgeType, ErrorCode
from tests.support.naive_broker import NaiveBroker, NaiveRecord


class DeliversOnceTooOften(NaiveBroker):
    """A record is delivered once more than the limit says."""

    def release(self, record: NaiveRecord) -> None:
        """Give it up one delivery too late."""
        record.member = ""
        record.state = "archived" if record.delivery_count > self.limit else "available"


class LosesReleasedRecords(NaiveBroker):
    """What is released is never delivered again."""

    def release(self, record: NaiveRecord) -> None:
        """Give it up."""
        record.member, record.state = "", "archived"


class DeliversAbortedRecords(NaiveBroker):
    """Records of aborted transactions are delivered."""

    def is_hidden(self, offset: int) -> bool:
        """Hide nothing."""
        return offset < 0


class DoublesLocks(NaiveBroker):
    """Locks last twice as long."""

    def start(self, config: dict[str, int]) -> None:
        """Begin with longer locks."""
        super().start({**config, "record_lock_duration_ms": 2 * config["record_lock_duration_ms"]})


class ExpiresAtTheDeadline(NaiveBroker):
    """A lock expires one millisecond too early."""

    def has_expired(self, record: NaiveRecord) -> bool:
        """Return whether the lock is over."""
        return record.deadline_ms <= self.now_ms


class TrustsEveryMember(NaiveBroker):
    """A member may acknowledge what another one has."""

    def may_acknowledge(self, member: str, offset: int) -> bool:
        """Ask for the state only."""
        record = self.records.get(offset)
        return record is not None and record.state == "acquired" and member != ""


class FetchesBeyondTheWindow(NaiveBroker):
    """There is always room for more records in flight."""

    def start(self, config: dict[str, int]) -> None:
        """Begin without a bound."""
        super().start({**config, "max_record_locks": 10**6})


class IgnoresTheLimitOfAFetch(NaiveBroker):
    """A member gets more records than it has asked for."""

    def fetch(self, member: str, offsets: range, max_records: int) -> Iterable[Sequence[int]]:
        """Fetch twice as many."""
        return super().fetch(member, offsets, 2 * max_records)


class RejectsAsReleases(NaiveBroker):
    """What a member rejects is delivered again."""

    def settle(self, record: NaiveRecord, kind: AcknowledgeType) -> None:
        """Take REJECT for RELEASE."""
        super().settle(record, AcknowledgeType.RELEASE if kind is AcknowledgeType.REJECT else kind)


class KeepsWhatAMemberHad(NaiveBroker):
    """The records of a member that has left stay with it until their locks expire."""

    def close_session(self, member: str) -> None:
        """Do nothing."""


class RefusesHalf(NaiveBroker):
    """A refused acknowledgement has acknowledged the records before the wrong one."""

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        """Acknowledge batch by batch."""
        for batch in batches:
            if (code := super().acknowledge(member, [batch])) != ErrorCode.NONE:
                return code
        return ErrorCode.NONE


class RenewsNothing(NaiveBroker):
    """RENEW leaves the lock as it is."""

    def settle(self, record: NaiveRecord, kind: AcknowledgeType) -> None:
        """Ignore RENEW."""
        if kind is not AcknowledgeType.RENEW:
            super().settle(record, kind)


class CountsReleases(NaiveBroker):
    """A release counts as a delivery."""

    def release(self, record: NaiveRecord) -> None:
        """Count it."""
        record.delivery_count += 1
        super().release(record)


class DeliversBelowTheLogStart(NaiveBroker):
    """Records that the log has deleted are delivered again."""

    def delete_records(self, before_offset: int) -> None:
        """Move nothing."""


BUGS: Final[tuple[type[NaiveBroker], ...]] = (
    DeliversOnceTooOften,
    LosesReleasedRecords,
    DeliversAbortedRecords,
    DoublesLocks,
    ExpiresAtTheDeadline,
    TrustsEveryMember,
    FetchesBeyondTheWindow,
    IgnoresTheLimitOfAFetch,
    RejectsAsReleases,
    KeepsWhatAMemberHad,
    RefusesHalf,
    RenewsNothing,
    CountsReleases,
    DeliversBelowTheLogStart,
)
"""All of them."""
