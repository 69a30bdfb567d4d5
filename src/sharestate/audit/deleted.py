"""Whether records were delivered after they had been deleted from the log."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from sharestate.audit.circumstances import Act, Circumstances
from sharestate.audit.operation_log import NEVER_US, OperationRowKind, SharePartitionName
from sharestate.audit.produced import produced_act
from sharestate.audit.record_histories import RecordHistory

_MOST_DELETIONS: Final = 256
"""How many deletions of a topic partition are compared with each record: of more, those that deleted most."""

_SAME_BATCH: Final = "what was deleted may share a batch of the log with the first record that is left"
_LEADER: Final = "the leader may have changed since it was deleted"


class Deletion(NamedTuple):
    """
    A deletion that was confirmed.

    Attributes:
        act: What stands for it in comparisons of time.
        before: The first offset that is left.
        left: How the record there was produced; None if nobody wrote that down.
    """

    act: Act
    before: int
    left: Act | None


class DeletionJudge:
    """
    Judges whether records of a share partition were delivered after they had been deleted.

    Args:
        circumstances: What lies around them.
        key: The share partition.

    Complexity:
        A sort of what was produced if anything was deleted; then for each history its deliveries by the deletions.
    """

    def __init__(self, circumstances: Circumstances, key: SharePartitionName) -> None:
        """Look at the deletions whose answers say that they were carried out."""
        self._around, self._key = circumstances, key
        log = circumstances.log
        self._unsaid = {log.client[each] for each in log.produced_unsaid.get((key.topic, key.partition), ())}
        self._deletions = sorted(self._confirmed(), key=lambda each: -each.before)[:_MOST_DELETIONS]

    def _confirmed(self) -> Iterable[Deletion]:
        log, place = self._around.log, (self._key.topic, self._key.partition)
        deletions = [each for each in log.deletions.get(place, ()) if log.end_us[each[0]] < NEVER_US]
        if not deletions:
            return
        rows = sorted(log.produced.get(place, ()), key=log.first.__getitem__)
        firsts = [log.first[row] for row in rows]
        for operation, before in deletions:
            at = bisect_right(firsts, before) - 1
            is_there = at >= 0 and log.last[rows[at]] >= before
            yield Deletion(self._act(operation), before, produced_act(log, rows[at]) if is_there else None)

    def _act(self, operation: int) -> Act:
        log, client = self._around.log, self._around.log.client[operation]
        times = log.begin_us[operation], log.end_us[operation]
        return Act(-1, operation, OperationRowKind.DELIVERED, client, log.clients[client].clock, *times, 0, 0, 0, 0)

    def __bool__(self) -> bool:
        """Whether anything was deleted for certain."""
        return bool(self._deletions)

    def hindrance(self, history: RecordHistory, acts: Iterable[Act]) -> tuple[str | None, str]:
        """
        Return why it cannot be known whether records were delivered too late; empty if they were; and what is wrong.

        The log keeps the batch in which it starts as a whole, so what shares that with the first offset left may come.

        Args:
            history: The records.
            acts: Their life, as ``LifeSearch.as_seen`` returns it.

        Returns:
            None for the first if they were not.
        """
        found: str | None = None
        for act in acts:
            for deletion in self._deletions if act.kind == OperationRowKind.DELIVERED else ():
                if deletion.before <= history.first_offset:
                    break
                if self._around.is_before(deletion.act, act):
                    found = self._why_not(deletion, history.produced, act)
                    if not found:
                        return "", self._what(deletion, act)
        return found, ""

    def _why_not(self, deletion: Deletion, produced: Sequence[Act], act: Act) -> str:
        """Return why a delivery after a deletion may be right; empty if it is not."""
        if not produced or any(self._may_share_batch(each, deletion.left) for each in produced):
            return _SAME_BATCH
        return _LEADER if self._around.fault(self._key, deletion.act, act) is not None else ""

    def _may_share_batch(self, produced: Act, left: Act | None) -> bool:
        """Return whether two records may be in one batch: that has one producer's records, of one transaction."""
        if left is None:
            return not self._around.log.clients[produced.client].complete or produced.client in self._unsaid
        is_same = (produced.client, produced.what) == (left.client, left.what)
        return is_same and not self._around.is_before(produced, left)

    def _what(self, deletion: Deletion, act: Act) -> str:
        log = self._around.log
        place = log.place(deletion.act.operation)
        return f"{log.clients[act.client].name} gets it after what is below {deletion.before} was deleted ({place})"
