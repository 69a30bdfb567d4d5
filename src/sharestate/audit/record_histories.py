"""Records with the same life: a sweep over the offsets of a share partition, from border to border of what was done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from sharestate.audit.circumstances import Act
from sharestate.audit.operation_log import NEVER_US, OperationLog, OperationRowKind, SharePartitionName
from sharestate.error_codes import ErrorCode

_SOME_ACTS: Final = 400_000
_ACTS_OF_ROW: Final = 12
"""How many acts all histories have at the most: these in all, and so many for each row. An answer with 500 records that
were produced one by one is in 500 histories."""

NOT_CARRIED_OUT: Final = frozenset(
    int(code)
    for code in (
        ErrorCode.INVALID_RECORD_STATE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    )
)
"""The codes with which an acknowledgement was surely not carried out: it is refused before anything is stored. With any
other but 0 it may be carried out later, or never."""


class RecordHistory(NamedTuple):
    """
    Records next to each other to which the same was done.

    Attributes:
        first_offset: The first of them.
        last_offset: The last of them, included.
        produced: How they were produced; empty if nobody wrote it down.
        life: Their deliveries and acknowledgements, in no order.
    """

    first_offset: int
    last_offset: int
    produced: list[Act]
    life: list[Act]

    @property
    def records(self) -> int:
        """How many offsets they are."""
        return self.last_offset - self.first_offset + 1


class RecordHistories:
    """
    The histories of the records of a share partition, by ascending offset.

    Args:
        log: The operations.
        key: The share partition.

    Attributes:
        stopped_at: The offset from which on there are too many acts to go on; None if there are not.

    Complexity:
        Rows sorted once, then as many steps as the histories have acts.
    """

    def __init__(self, log: OperationLog, key: SharePartitionName) -> None:
        """Sort the rows."""
        self._log, self._key = log, key
        produced = log.produced.get((key.topic, key.partition), ())
        self._rows = sorted((*produced, *log.shared.get(key, ())), key=log.first.__getitem__)
        self.stopped_at: int | None = None

    def __iter__(self) -> Iterator[RecordHistory]:
        """Yield the histories of all offsets of which anything is known."""
        rows, firsts = self._rows, self._log.first
        active: list[Act] = []
        at = position = acts = 0
        most = self._log.share(self._key, _SOME_ACTS) + _ACTS_OF_ROW * len(rows)
        while at < len(rows) or active:
            if not active:
                position = firsts[rows[at]]
            while at < len(rows) and firsts[rows[at]] == position:
                active.append(self._act(rows[at]))
                at += 1
            border = min([act.last for act in active]) + 1
            if at < len(rows):
                border = min(border, firsts[rows[at]])
            acts += len(active)
            if acts > most:
                self.stopped_at = position
                return
            yield _history(position, border - 1, active)
            position = border
            active = [act for act in active if act.last >= position]

    def _act(self, row: int) -> Act:
        log = self._log
        operation, code = log.operation[row], log.code[row]
        client = log.client[operation]
        end = log.end_us[operation] if code == 0 or code in NOT_CARRIED_OUT else NEVER_US
        return Act(
            row=row,
            operation=operation,
            kind=log.kind[row],
            client=client,
            clock=log.clients[client].clock,
            begin_us=log.begin_us[operation],
            end_us=end,
            what=log.what[row],
            code=code,
            first=log.first[row],
            last=log.last[row],
        )


def _history(first: int, last: int, active: list[Act]) -> RecordHistory:
    """Return a history; of the ranges of one answer that overlap only the first counts, the rest is another matter."""
    produced, life = [], []
    delivered = set()
    for act in active:
        if act.kind == OperationRowKind.PRODUCED:
            produced.append(act)
        elif act.kind == OperationRowKind.ACKNOWLEDGED:
            life.append(act)
        elif act.operation not in delivered:
            delivered.add(act.operation)
            life.append(act)
    return RecordHistory(first, last, produced, life)
