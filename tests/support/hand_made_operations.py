"""Operations that are written by hand, in short, and what is found out about them."""

from __future__ import annotations

from typing import Any, Final

from sharestate.audit import (
    AcknowledgedAs,
    AcknowledgedRange,
    AcknowledgedRanges,
    AcknowledgeOperation,
    AlterOffsetsOperation,
    Audit,
    AuditSettings,
    CloseOperation,
    CrashOperation,
    DeleteRecordsOperation,
    DeliveredRange,
    EndTransactionOperation,
    FaultOperation,
    FetchedRanges,
    FetchOperation,
    LoggedOperation,
    OperationLog,
    OperationsHeader,
    ProduceOperation,
    SettingsOperation,
    audit,
)

SETTINGS: Final = AuditSettings(
    record_lock_duration_ms=30_000,
    delivery_count_limit=5,
    max_record_locks=2000,
    isolation_level="read_committed",
    auto_offset_reset="earliest",
)
"""Kafka's defaults, but for the two in words."""

ACCEPT: Final = AcknowledgedAs.ACCEPT
RELEASE: Final = AcknowledgedAs.RELEASE
REJECT: Final = AcknowledgedAs.REJECT
RENEW: Final = AcknowledgedAs.RENEW

UNANSWERED: Final = None


class Written:
    """
    What clients of the group g have written down of partition 0 of the topic t; times are ms.

    Args:
        headers: What is not usual in the header of a client's file, by the client's name.
    """

    def __init__(self, **headers: dict[str, Any]) -> None:
        """Begin with nothing."""
        self._headers = headers
        self._operations: dict[str, list[LoggedOperation]] = {}

    def write(self, client: str, operation: LoggedOperation) -> Written:
        """Add any operation."""
        self._operations.setdefault(client, []).append(operation)
        return self

    def produce(  # noqa: PLR0913 - what a produce request has
        self, at: float, first: int, last: int, *, tx: str | None = None, end: float | None = -1, client: str = "p"
    ) -> Written:
        """Add records that were produced in a millisecond, or until *end*."""
        is_known = end is not None
        produced = ProduceOperation(
            begin_ms=at,
            end_ms=at + 1 if end == -1 else end,
            topic="t",
            partition=0,
            first_offset=first if is_known else None,
            last_offset=last if is_known else None,
            transaction=tx,
        )
        return self.write(client, produced)

    def end(self, at: float, tx: str, *, committed: bool = True, end: float | None = -1, code: int = 0) -> Written:
        """Add the end of a transaction."""
        end_ms = at + 1 if end == -1 else end
        ended = EndTransactionOperation(begin_ms=at, end_ms=end_ms, transaction=tx, committed=committed, code=code)
        return self.write("p", ended)

    def fetch(
        self,
        client: str,
        at: float,
        *ranges: tuple[int, int, int | None],
        end: float | None = -1,
        code: int = 0,
        partition: int = 0,
    ) -> Written:
        """Add a fetch of a millisecond, or until *end*."""
        got = tuple(DeliveredRange(*each) for each in ranges)
        partitions = (FetchedRanges("t", partition, got, code),) if got or code else ()
        end_ms = at + 1 if end == -1 else end
        return self.write(client, FetchOperation(begin_ms=at, end_ms=end_ms, group="g", partitions=partitions))

    def acknowledge(  # noqa: PLR0913 - what an acknowledgement has
        self,
        client: str,
        at: float,
        first: int,
        last: int,
        type_: AcknowledgedAs = ACCEPT,
        code: int | None = 0,
        *,
        end: float = -1,
    ) -> Written:
        """Add an acknowledgement of a millisecond, or until *end*; without a code it has no answer."""
        ranges = (AcknowledgedRange(first, last, type_),)
        end_ms = None if code is None else at + 1 if end == -1 else end
        partitions = (AcknowledgedRanges("t", 0, ranges, code),)
        asked = AcknowledgeOperation(begin_ms=at, end_ms=end_ms, group="g", partitions=partitions)
        return self.write(client, asked)

    def close(self, client: str, at: float) -> Written:
        """Add the end of a session."""
        return self.write(client, CloseOperation(begin_ms=at, end_ms=at + 1, group="g"))

    def crash(self, client: str, at: float) -> Written:
        """Add a crash."""
        return self.write(client, CrashOperation(at_ms=at, group="g"))

    def fault(self, at: float, end: float, what: str = "failover", *, partition: int | None = None) -> Written:
        """Add a fault."""
        topic = None if partition is None else "t"
        return self.write("f", FaultOperation(begin_ms=at, end_ms=end, what=what, topic=topic, partition=partition))

    def delete(self, at: float, before_offset: int) -> Written:
        """Add a deletion of records."""
        return self.write(
            "a", DeleteRecordsOperation(begin_ms=at, end_ms=at + 1, topic="t", partition=0, before_offset=before_offset)
        )

    def alter(self, at: float, start_offset: int) -> Written:
        """Add an altered start offset."""
        altered = AlterOffsetsOperation(
            begin_ms=at, end_ms=at + 1, group="g", topic="t", partition=0, start_offset=start_offset
        )
        return self.write("a", altered)

    def settings(self, at: float, **values: Any) -> Written:  # noqa: ANN401 - of any setting
        """Add settings of the group."""
        return self.write("a", SettingsOperation(at_ms=at, group="g", **values))

    def log(self) -> OperationLog:
        """Return the log that the files of all clients make; they have one clock unless a header says otherwise."""
        log = OperationLog()
        for client, own in self._operations.items():
            header = OperationsHeader(client=client, **{"clock": "one", **self._headers.get(client, {})})
            log.add(f"{client}.jsonl", header, enumerate(own, 2))
        return log

    def audited(self, settings: AuditSettings = SETTINGS) -> Audit:
        """Return what is found out about it."""
        return audit(self.log(), settings)

    def broken(self, settings: AuditSettings = SETTINGS) -> list[str]:
        """Return the guarantees that are broken, each with the offsets, in the order of the table."""
        return [f"{each.guarantee} {each.first_offset}-{each.last_offset}" for each in self.audited(settings).findings]
