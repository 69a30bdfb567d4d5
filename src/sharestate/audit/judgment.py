"""The judgment of what clients of share groups wrote down: each share partition, then what all of them say together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from sharestate.audit.audit_parts import AuditPart, sum_of_parts
from sharestate.audit.circumstances import Act, AuditSettings, Circumstances
from sharestate.audit.clocks import ClockBounds, ClockOrders, unbounded
from sharestate.audit.deleted import DeletionJudge
from sharestate.audit.duplicates import DuplicateCounts
from sharestate.audit.guarantees import Guarantee
from sharestate.audit.lives import known_bugs, life_in_words
from sharestate.audit.locks_held import LocksHeld
from sharestate.audit.lost import LostRecords, Quiet
from sharestate.audit.operation_log import (
    ACKNOWLEDGED_AS,
    NEVER_US,
    NO_TRANSACTION,
    Disorder,
    OperationLog,
    OperationRowKind,
    SharePartitionName,
    read_operations,
)
from sharestate.audit.operations import AcknowledgedAs
from sharestate.audit.produced import (
    READ_COMMITTED,
    Fate,
    ProducedRecords,
    TransactionEnds,
    deliveries_of,
)
from sharestate.audit.record_histories import RecordHistories, RecordHistory
from sharestate.audit.redelivery import RedeliveryCheck
from sharestate.audit.search import NO_DURATION, REFUSED, FoundLife, LifeSearch
from sharestate.audit.verdicts import Audit, AuditFinding

_ACCEPT: Final = ACKNOWLEDGED_AS.index(AcknowledgedAs.ACCEPT)
_REJECTS: Final = {ACKNOWLEDGED_AS.index(each) for each in (AcknowledgedAs.REJECT, AcknowledgedAs.GAP)}

_US_OF_MS: Final = 1000

_NO_CLOCKS: Final = "nothing bounds the difference of clocks"
_CONTRADICTION: Final = "what happened contradicts itself whatever the clocks show: they order nothing"

_NOT_PRODUCED: Final = "it is delivered, and nobody has produced it"

_BOUND: Final = "too many operations overlap for all orders to be tried"


def audit(
    source: OperationLog | Iterable[Path | str],
    settings: AuditSettings | None = None,
    *,
    group: str | None = None,
    log_format: str | None = None,
) -> Audit:
    """
    Judge what clients of share groups wrote down.

    Args:
        source: Files of operations or events, or what ``read_operations`` returns.
        settings: What is taken for granted; the defaults if None.
        group: The only share group to judge, and that of events that name none; all if None.
        log_format: The format of all files, as ``read_operations`` takes it.

    Raises:
        OperationsError: A file cannot be read.

    Complexity:
        A sort of the operations, then linear in them where few overlap; 40 µs for each.
    """
    if not isinstance(source, OperationLog):
        source = read_operations(source, group=group, log_format=log_format)
    return _judged(source, AuditSettings() if settings is None else settings, group)


def _judged(log: OperationLog, settings: AuditSettings, group: str | None) -> Audit:
    bounds, notes = bounds_of(log.clocks, clock_orders(log, settings, log.keys()), settings)
    judgment = Judgment(log, settings, bounds)
    return sum_of_parts(
        map(judgment.part, log.keys(group)),
        judgment.no_duplicates(),
        operations=len(log),
        clients=len(log.clients),
        clocks=tuple(bounds.lines()),
        notes=notes,
    )


def clock_orders(log: OperationLog, settings: AuditSettings, keys: Iterable[SharePartitionName]) -> ClockOrders:
    """Return which operations on the records of *keys* are in order whatever the clocks show."""
    orders = ClockOrders(log.clocks)
    if len(log.clocks) > 1:
        around = Circumstances(log, unbounded(log.clocks, _max_skew_us(settings)), settings)
        for key in keys:
            for history in RecordHistories(log, key):
                _bound_clocks(orders, key, history, around)
    return orders


def bounds_of(
    clocks: Sequence[str], orders: ClockOrders, settings: AuditSettings
) -> tuple[ClockBounds, tuple[str, ...]]:
    """Return by how much *clocks* may differ, and what is to be noted about that."""
    if len(clocks) <= 1:
        return unbounded(clocks), ()
    max_skew_us = _max_skew_us(settings)
    bounds = orders.bounds(max_skew_us)
    if bounds is None:
        return unbounded(clocks, max_skew_us), (_CONTRADICTION,)
    return bounds, ()


def _max_skew_us(settings: AuditSettings) -> int | None:
    return None if settings.max_skew_ms is None else round(settings.max_skew_ms * _US_OF_MS)


class Judgment:
    """
    Judges share partitions of an operation log.

    Args:
        log: The operations.
        settings: What is taken for granted.
        clocks: By how much clocks may differ.
    """

    def __init__(self, log: OperationLog, settings: AuditSettings, clocks: ClockBounds) -> None:
        """Look at what all share partitions have in common."""
        self._log = log
        self._around = Circumstances(log, clocks, settings)
        self._ends = TransactionEnds(log)
        self._quiet = Quiet(self._around)
        begins = [self._around.shifted_us(time, self._clock(number)) for number, time in enumerate(log.begin_us)]
        self._begin_us, self._end_us = min(begins, default=0), max(begins, default=0)
        self._disorders: defaultdict[SharePartitionName, list[Disorder]] = defaultdict(list)
        for disorder in log.disorders:
            self._disorders[disorder.key].append(disorder)

    def _clock(self, operation: int) -> int:
        return self._log.clients[self._log.client[operation]].clock

    def no_duplicates(self) -> DuplicateCounts:
        """Return no counts of records that were delivered again, within the times of the log."""
        return DuplicateCounts(self._begin_us, self._end_us)

    def part(self, key: SharePartitionName) -> AuditPart:
        """Return what is found out about a share partition."""
        self._part = AuditPart(key, self.no_duplicates())
        for guarantee in (Guarantee.NO_REPEATS, Guarantee.RECORD_ORDER):
            self._part.tallies[guarantee].checked = self._log.answers[key]
        for disorder in self._disorders[key]:
            self._find_disorder(disorder)
        self._judge(key)
        if self._around.settings.kafka is not None:
            self._compare(key)
        return self._part

    # ---- a share partition

    def _judge(self, key: SharePartitionName) -> None:
        around = self._around
        search = LifeSearch(around, key)
        produced = ProducedRecords(around, key, self._ends)
        lost = LostRecords(around, key, self._ends, self._quiet)
        locks = LocksHeld(around, key)
        deleted = DeletionJudge(around, key)
        refused: Counter[int] = Counter()
        histories = RecordHistories(self._log, key)
        for history in histories:
            deliveries = deliveries_of(history)
            if history.life:
                acts = search.as_seen(history)
                born = history.produced[0] if history.produced else None
                found = search.found(acts, born, is_new=produced.is_new(history))
                self._count(key, history, found)
                self._note(key, history, acts, found, refused)
                locks.count(acts, history.records)
                if deliveries and deleted:
                    found_deleted = deleted.hindrance(history, acts)
                    self._check(Guarantee.NOTHING_DELETED, key, history, *found_deleted, is_checked=True)
            why_not_produced = produced.hindrance(history, deliveries)
            self._check(
                Guarantee.ONLY_PRODUCED,
                key,
                history,
                why_not_produced,
                "it is delivered before it is produced" if history.produced else _NOT_PRODUCED,
                is_checked=bool(deliveries),
            )
            self._check_committed(key, history, deliveries)
            self._check(
                Guarantee.NOTHING_LOST,
                key,
                history,
                lost.hindrance(history),
                "it was produced, and is neither finished nor delivered again",
                is_checked=bool(history.produced),
            )
        if histories.stopped_at is not None:
            self._part.notes.append(
                f"{key}: from offset {histories.stopped_at} on too much was done to the same records"
            )
            self._part.tallies[Guarantee.ONE_OWNER].undecided(_BOUND, 1)
        self._check_refused(key, refused)
        self._check_locks(key, locks)

    def _check(  # noqa: PLR0913 - what a finding is made of
        self,
        guarantee: Guarantee,
        key: SharePartitionName,
        history: RecordHistory,
        hindrance: str | None,
        what: str,
        *,
        is_checked: bool,
    ) -> None:
        """Count records for which a check has no *hindrance*, find what an empty one says, and note any other."""
        tally = self._part.tallies[guarantee]
        if hindrance:
            tally.undecided(hindrance, history.records)
            return
        if is_checked:
            tally.checked += history.records
        if hindrance is not None:
            tally.find(partial(self._finding, guarantee, key, history, what))

    def _check_committed(self, key: SharePartitionName, history: RecordHistory, deliveries: list[Act]) -> None:
        """Check whether records of transactions were delivered before these were committed."""
        if not (deliveries and history.produced and history.produced[0].what != NO_TRANSACTION):
            return
        isolation = self._around.words_in_force(key.group, "isolation_level")
        hindrance, what = None, ""
        if len(isolation) != 1:
            hindrance = "the isolation level is not known" if not isolation else "the isolation level was changed"
        elif isolation == {READ_COMMITTED}:
            hindrance, what = self._uncommitted(history.produced[0], deliveries)
        else:
            return
        self._check(Guarantee.ONLY_COMMITTED, key, history, hindrance, what, is_checked=True)

    def _uncommitted(self, produced: Act, deliveries: list[Act]) -> tuple[str | None, str]:
        """Return why it is not known whether a delivery was early, empty if it was, None if not; and what was wrong."""
        fate, operation = self._ends.of(produced)
        name = self._log.transactions[produced.what][1]
        if fate is Fate.UNKNOWN:
            return "the end of a transaction is not known", ""
        if fate is not Fate.COMMITTED:
            return "", f"it is delivered, and its transaction {name} {'was ' * (fate is Fate.ABORTED)}{fate.value}"
        begin = produced._replace(
            operation=operation, begin_us=self._log.begin_us[operation], end_us=self._log.end_us[operation]
        )
        if any(self._around.is_before(act, begin) for act in deliveries):
            return "", f"it is delivered before its transaction {name} is committed"
        comparable = all(self._around.clocks.are_comparable(act.clock, begin.clock) for act in deliveries)
        return (None if comparable else _NO_CLOCKS), ""

    def _compare(self, key: SharePartitionName) -> None:
        """Compare how records come again with what Kafka does."""
        log, redelivery = self._log, RedeliveryCheck(self._around, key)
        for guarantee, checked in redelivery.checked().items():
            self._part.tallies[guarantee].checked += checked
        for each in redelivery.different():
            self._part.tallies[each.guarantee].find(
                partial(
                    AuditFinding,
                    guarantee=each.guarantee,
                    key=key,
                    first_offset=log.first[each.row],
                    last_offset=each.last_offset,
                    what=each.what,
                    places=(log.place(log.operation[each.row]),),
                )
            )

    # ---- lives

    def _count(self, key: SharePartitionName, history: RecordHistory, found: FoundLife) -> None:
        """Count what the life of records was checked for."""
        records, tallies = history.records, self._part.tallies
        self._part.records += records
        deliveries = deliveries_of(history)
        if found.is_bound_reached:
            tallies[Guarantee.ONE_OWNER].undecided(_BOUND, records)
            return
        if NO_DURATION in found.unsure:
            tallies[Guarantee.ONE_OWNER].undecided(NO_DURATION, records)
        elif deliveries:
            tallies[Guarantee.ONE_OWNER].checked += records
        for reason in found.unsure - {NO_DURATION}:
            tallies[Guarantee.ONLY_OWNER_MAY_ACKNOWLEDGE].undecided(reason, records)
        answered = [act for act in history.life if act.kind == OperationRowKind.ACKNOWLEDGED and act.code == 0]
        if answered and not found.unsure - {NO_DURATION}:
            tallies[Guarantee.ONLY_OWNER_MAY_ACKNOWLEDGE].checked += records
        if any(act.what == _ACCEPT for act in answered):
            tallies[Guarantee.ACCEPTED_IS_FINAL].checked += records
        if any(act.what in _REJECTS for act in answered):
            tallies[Guarantee.REJECTED_IS_FINAL].checked += records
        if deliveries:
            self._count_deliveries(key, records, is_counted=any(act.what for act in deliveries))

    def _count_deliveries(self, key: SharePartitionName, records: int, *, is_counted: bool) -> None:
        counts, limit = self._part.tallies[Guarantee.DELIVERY_COUNT], self._part.tallies[Guarantee.DELIVERY_LIMIT]
        if is_counted:
            counts.checked += records
        else:
            counts.undecided("delivery counts were not seen", records)
        if self._around.in_force(key.group, "delivery_count_limit") is None:
            limit.undecided("the delivery count limit is not known", records)
        else:
            limit.checked += records

    def _note(
        self, key: SharePartitionName, history: RecordHistory, acts: list[Act], found: FoundLife, refused: Counter[int]
    ) -> None:
        """Note what is broken, what is ambiguous, and what came again."""
        if found.broken is not None and found.act is not None:
            finding = partial(self._finding, found.broken, key, history, found.why, found.act)
            self._part.tallies[found.broken].find(finding)
        for act in found.unjustified:
            refused[act.operation] += history.records
        is_ambiguous = any(act.end_us == NEVER_US for act in acts)
        for again in found.redeliveries:
            is_ambiguous = is_ambiguous or again.is_ambiguous
            around = self._around
            at_us = around.shifted_us(again.act.end_us, again.act.clock)
            held_us = at_us - around.shifted_us(again.before.begin_us, again.before.clock)
            self._part.duplicates.count(again.cause, history.records, at_us, held_us)
        self._part.ambiguous += history.records * is_ambiguous

    # ---- findings

    def _finding(
        self, guarantee: Guarantee, key: SharePartitionName, history: RecordHistory, what: str, act: Act | None = None
    ) -> AuditFinding:
        log = self._log
        shown = [act] if act is not None else []
        shown += [each for each in (*history.life, *history.produced) if each not in shown]
        return AuditFinding(
            guarantee=guarantee,
            key=key,
            first_offset=history.first_offset,
            last_offset=history.last_offset,
            what=what,
            places=tuple(dict.fromkeys(log.place(each.operation) for each in shown)),
            life=tuple(life_in_words(self._around, history, self._begin_us)),
            known_bugs=known_bugs(log, key, guarantee),
        )

    def _find_disorder(self, disorder: Disorder) -> None:
        guarantee = Guarantee.NO_REPEATS if disorder.is_repeat else Guarantee.RECORD_ORDER
        name = self._log.client_of(disorder.operation).name
        what = f"{name} gets it twice in one answer" if disorder.is_repeat else f"{name} gets it after later offsets"
        self._part.tallies[guarantee].find(
            lambda: AuditFinding(
                guarantee=guarantee,
                key=disorder.key,
                first_offset=disorder.first_offset,
                last_offset=disorder.last_offset,
                what=what,
                places=(self._log.place(disorder.operation),),
            )
        )

    def _check_refused(self, key: SharePartitionName, refused: Counter[int]) -> None:
        """Check whether acknowledgements were refused though their client owned all of their records."""
        log = self._log
        asked: defaultdict[int, list[int]] = defaultdict(list)
        for row in log.shared.get(key, ()):
            if log.kind[row] == OperationRowKind.ACKNOWLEDGED and log.code[row] == REFUSED:
                asked[log.operation[row]].append(row)
        tally = self._part.tallies[Guarantee.OWNER_MAY_ACKNOWLEDGE]
        tally.checked += len(asked)
        for operation, rows in asked.items():
            if refused[operation] != sum(log.last[row] - log.first[row] + 1 for row in rows):
                continue
            tally.find(
                partial(
                    AuditFinding,
                    guarantee=Guarantee.OWNER_MAY_ACKNOWLEDGE,
                    key=key,
                    first_offset=min(log.first[row] for row in rows),
                    last_offset=max(log.last[row] for row in rows),
                    what=f"{log.client_of(operation).name} owns all that it acknowledges, and is refused",
                    places=(log.place(operation),),
                )
            )

    def _check_locks(self, key: SharePartitionName, locks: LocksHeld) -> None:
        """Check whether more records were acquired at once than may be."""
        log, tally = self._log, self._part.tallies[Guarantee.RECORD_LOCKS]
        if key not in log.largest:
            return
        most = self._around.in_force(key.group, "max_record_locks")
        if most is None:
            tally.undecided("max_record_locks is not known", 1)
            return
        if self._around.in_force(key.group, "record_lock_duration_ms") is None:
            tally.undecided(NO_DURATION, 1)
            return
        if not self._around.is_comparable(key.group):
            tally.undecided(_NO_CLOCKS, 1)
            return
        tally.checked += 1
        peak = locks.peak()
        if peak.records > most[1] + log.largest[key] - 1:
            rows = log.shared[key]
            at = (peak.at_us - self._begin_us) / 10**6
            tally.find(
                partial(
                    AuditFinding,
                    guarantee=Guarantee.RECORD_LOCKS,
                    key=key,
                    first_offset=min(log.first[row] for row in rows),
                    last_offset=max(log.last[row] for row in rows),
                    what=(
                        f"{peak.records} records are acquired at {at:,.3f} s; max_record_locks is {most[1]}, and an "
                        f"answer has {log.largest[key]} records at the most"
                    ),
                )
            )


def _bound_clocks(orders: ClockOrders, key: SharePartitionName, history: RecordHistory, around: Circumstances) -> None:
    """Note which operations on the same records are in order whatever the clocks show."""
    deliveries = deliveries_of(history)
    for produced in history.produced:
        for act in deliveries:
            orders.ends_after(act.clock, act.end_us, produced.clock, produced.begin_us)
    if around.may_have_failed(key):  # after a fault, deliveries may count as those before
        return
    timed = (act for act in deliveries if act.what and around.log.clients[act.client].view.is_timed)
    counted = sorted(timed, key=lambda act: act.what)
    for before, act in pairwise(counted):
        if before.what < act.what:
            orders.ends_after(act.clock, act.end_us, before.clock, before.begin_us)
    for act in history.life:
        own = _owned(key, act, counted, history.life, around)
        for later in counted:
            if own is not None and later.what > own.what:
                orders.ends_after(later.clock, later.end_us, act.clock, act.begin_us)


def _owned(key: SharePartitionName, act: Act, counted: list[Act], life: list[Act], around: Circumstances) -> Act | None:
    """
    Return the delivery that an acknowledgement surely is about; None if it may be about none.

    After another one of its client it is: that may have ended the lock, and what the SPSO has passed is not refused.
    """
    if act.kind != OperationRowKind.ACKNOWLEDGED or act.code != 0:
        return None
    own = [each for each in counted if each.client == act.client and each.end_us <= act.begin_us]
    if not own:
        return None
    if any(
        each.kind == OperationRowKind.ACKNOWLEDGED and each.client == act.client and each.row != act.row
        for each in life
        if own[-1].begin_us <= each.begin_us <= act.end_us
    ):
        return None
    lock = around.lock_us(key.group, own[-1])
    in_time = lock is not None and around.most_us(own[-1], act) < lock[0] - around.tolerance_us
    return own[-1] if in_time and around.gone(key.group, act.client, own[-1], act) is None else None
