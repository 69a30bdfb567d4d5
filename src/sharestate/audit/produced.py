"""What was produced, and in which transactions: whether records may be delivered at all."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from enum import Enum
from typing import Final, NamedTuple

from sharestate.audit.circumstances import Act, Circumstances
from sharestate.audit.operation_log import NEVER_US, NO_TRANSACTION, OperationLog, OperationRowKind, SharePartitionName
from sharestate.audit.operations import View
from sharestate.audit.record_histories import RecordHistory

READ_COMMITTED: Final = "read_committed"


class Fate(Enum):
    """What has become of a transaction."""

    COMMITTED = "committed"
    """It was committed."""

    ABORTED = "aborted"
    """It was aborted."""

    OPEN = "never ended"
    """Its producer has written down all that it did, and no end."""

    UNKNOWN = "unknown"
    """Its end was not answered, or not written down."""


class TransactionEnd(NamedTuple):
    """
    The end of a transaction.

    Attributes:
        fate: What has become of it.
        operation: The number of the operation that has ended it; -1 if there is none.
    """

    fate: Fate
    operation: int


class TransactionEnds:
    """
    The ends of transactions, by the rows that were produced in them.

    Args:
        log: The operations.
    """

    def __init__(self, log: OperationLog) -> None:
        """Sort the ends of each transaction's name by when they began."""
        self._log = log
        ends: defaultdict[int, list[tuple[int, int, bool, int]]] = defaultdict(list)
        for operation, transaction, committed, code in log.ends:
            ends[transaction].append((log.begin_us[operation], operation, committed, code))
        self._ends = {transaction: sorted(own) for transaction, own in ends.items()}

    def most(self, transaction: int) -> int:
        """Return how many transactions of that name there may have been."""
        return len(self._ends.get(transaction, ())) + 1

    def of(self, produced: Act) -> TransactionEnd:
        """Return what has become of the transaction in which something was produced."""
        ends = self._ends.get(produced.what, [])
        position = bisect_left(ends, (produced.begin_us, -1, False, 0))
        if position == len(ends):
            complete = self._log.clients[produced.client].complete
            return TransactionEnd(Fate.OPEN if complete else Fate.UNKNOWN, -1)
        _, operation, committed, code = ends[position]
        if code:
            return TransactionEnd(Fate.UNKNOWN, operation)
        return TransactionEnd(Fate.COMMITTED if committed else Fate.ABORTED, operation)


class ProducedRecords:
    """
    Judges whether records of a topic partition were produced, one history after the other, by ascending offset.

    Args:
        circumstances: What lies around them.
        key: The share partition.
        ends: The ends of transactions, each of which has a marker in the log.
    """

    def __init__(self, circumstances: Circumstances, key: SharePartitionName, ends: TransactionEnds) -> None:
        """Look at what is not known of the topic partition."""
        log = circumstances.log
        self._around = circumstances
        self._clients = log.clients
        log_key = key.topic, key.partition
        rows = log.produced.get(log_key, ())
        producers = {log.client[log.operation[row]] for row in rows}
        self._first = min((log.first[row] for row in rows), default=NEVER_US)
        self._end = self._first
        self._markers = sum(
            ends.most(transaction) for transaction in {log.what[row] for row in rows} - {NO_TRANSACTION}
        )
        self._hindrance = ""
        if not rows:
            self._hindrance = f"nobody wrote down what was produced to {key.topic}-{key.partition}"
        elif log.produced_unsaid.get(log_key):
            self._hindrance = "offsets of produce requests without an answer are not known"
        elif not all(log.clients[client].complete for client in producers):
            self._hindrance = "the log of a producer is not complete"

    def is_new(self, history: RecordHistory) -> bool:
        """Return whether records were produced after the log began, which has all that was done to them."""
        return history.first_offset >= self._first

    def hindrance(self, history: RecordHistory, deliveries: list[Act]) -> str | None:
        """
        Return why it cannot be known whether records were produced that were delivered; empty if not, or later.

        Returns:
            None if they were, or may be markers of transactions, which are in ranges that brokers answer.
        """
        if history.produced and any(self._is_early(act, history.produced) for act in deliveries):
            return ""
        hole, self._end = history.last_offset + 1 - self._end, max(self._end, history.last_offset + 1)
        if history.produced or not deliveries:
            return None
        if self._hindrance:
            return self._hindrance
        if history.first_offset < self._first:
            return "what was produced before is not in the log"
        is_wire = all(self._clients[act.client].view is View.WIRE for act in deliveries)
        if is_wire and hole <= self._markers:
            self._markers -= hole
            return None
        return ""

    def _is_early(self, delivery: Act, produced: list[Act]) -> bool:
        """Return whether a delivery was surely there before any of the requests began that may have produced it."""
        around = self._around
        return all(around.least_us(delivery, act) > around.tolerance_us for act in produced)


def deliveries_of(history: RecordHistory) -> list[Act]:
    """Return the deliveries of a history."""
    return [act for act in history.life if act.kind == OperationRowKind.DELIVERED]


def produced_act(log: OperationLog, row: int) -> Act:
    """Return the act of a row of what was produced."""
    operation = log.operation[row]
    client = log.client[operation]
    return Act(
        row,
        operation,
        OperationRowKind.PRODUCED,
        client,
        log.clients[client].clock,
        log.begin_us[operation],
        log.end_us[operation],
        log.what[row],
        0,
        log.first[row],
        log.last[row],
    )
