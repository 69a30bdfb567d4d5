"""Ways to falsify what clients wrote down, each of which breaks one guarantee."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple, TypeVar

from attrs import evolve

from sharestate.audit import (
    AcknowledgedAs,
    AcknowledgedRange,
    AcknowledgedRanges,
    AcknowledgeOperation,
    CloseOperation,
    CrashOperation,
    DeliveredRange,
    EndTransactionOperation,
    FaultOperation,
    FetchedRanges,
    FetchOperation,
    Guarantee,
    LoggedOperation,
    ProduceOperation,
    SettingsOperation,
)
from tests.support.audited_clients import GROUP, TOPIC, Lines

NEVER_MS: Final = 1e9

Falsify = Callable[[Lines, Random], Lines | None]
"""Returns falsified lines, or None if the log has nothing that can be falsified so."""


class Delivered(NamedTuple):
    """A range that a client got."""

    number: int
    name: str
    begin_ms: float
    end_ms: float
    partition: int
    first: int
    last: int
    delivery_count: int


def settings_of(lines: Lines) -> SettingsOperation:
    """Return the settings of the group."""
    return next(operation for _, operation in lines if isinstance(operation, SettingsOperation))


def deliveries(lines: Lines) -> list[Delivered]:
    """Return the ranges that clients got."""
    return [
        Delivered(number, name, operation.begin_ms, operation.end_ms, partition, first, last, count or 0)
        for number, (name, operation) in enumerate(lines)
        if isinstance(operation, FetchOperation) and operation.end_ms is not None
        for _, partition, ranges, _ in operation.partitions
        for first, last, count in ranges
    ]


def held(lines: Lines, ms: float) -> list[Delivered]:
    """Return the ranges whose first record is surely held for more than *ms* after the answer."""
    lock_ms = settings_of(lines).record_lock_duration_ms or 0
    by_begin = sorted((begin_ms(operation), ends_ms(operation), at) for at, (_, operation) in enumerate(lines))
    found = []
    for each in deliveries(lines):
        later = (
            begin
            for begin, end, at in by_begin
            if end >= each.begin_ms
            and at != each.number
            and ends_lock(lines[at][1], each.partition, each.first, lines[at][0] == each.name)
        )
        if next(later, each.begin_ms + lock_ms) > each.end_ms + ms:
            found.append(each)
    return found


def ends_lock(operation: LoggedOperation, partition: int, offset: int, is_own: bool) -> bool:  # noqa: FBT001 - a column
    """Return whether an operation may end the lock of a record."""
    if isinstance(operation, (FetchOperation, AcknowledgeOperation)):
        lost = is_own and operation.end_ms is None
        return lost or any(
            number == partition and any(low <= offset <= high for low, high, _ in ranges)
            for _, number, ranges, _ in operation.partitions
        )
    return isinstance(operation, FaultOperation) or (is_own and isinstance(operation, (CloseOperation, CrashOperation)))


def begin_ms(operation: LoggedOperation) -> float:
    """Return when an operation began. [ms]"""
    return operation.at_ms if isinstance(operation, (SettingsOperation, CrashOperation)) else operation.begin_ms


def ends_ms(operation: LoggedOperation) -> float:
    """Return when an operation had ended at the latest. [ms]"""
    if isinstance(operation, (SettingsOperation, CrashOperation)):
        return NEVER_MS
    return NEVER_MS if operation.end_ms is None else operation.end_ms


def got(begin: float, partition: int, *ranges: DeliveredRange) -> FetchOperation:
    """Return a fetch that brings *ranges* in a millisecond."""
    return FetchOperation(
        begin_ms=begin, end_ms=begin + 1, group=GROUP, partitions=(FetchedRanges(TOPIC, partition, ranges),)
    )


def answered(  # noqa: PLR0913 - what an acknowledgement has
    begin: float, partition: int, first: int, last: int, type_: AcknowledgedAs, code: int
) -> LoggedOperation:
    """Return an acknowledgement that is answered in a millisecond."""
    ranges = AcknowledgedRanges(TOPIC, partition, (AcknowledgedRange(first, last, type_),), code)
    return AcknowledgeOperation(begin_ms=begin, end_ms=begin + 1, group=GROUP, partitions=(ranges,))


def with_more(lines: Lines, *more: tuple[str, LoggedOperation]) -> Lines:
    """Return *lines* with more of them, in order."""
    return sorted([*lines, *more], key=lambda each: begin_ms(each[1]))


def other_than(name: str) -> str:
    """Return a member that is not *name*."""
    return "m1" if name == "m0" else "m0"


def second_owner(lines: Lines, random: Random) -> Lines | None:
    """Another member gets a record right after it was delivered."""
    return _another(lines, random, 2)


def early_lock(lines: Lines, random: Random) -> Lines | None:
    """Another member gets a record after half of the lock duration."""
    return _another(lines, random, (settings_of(lines).record_lock_duration_ms or 0) * 0.5)


def _another(lines: Lines, random: Random, after_ms: float) -> Lines | None:
    limit = settings_of(lines).delivery_count_limit or 0
    found = [each for each in held(lines, after_ms + 5) if each.delivery_count < limit]
    if not found:
        return None
    chosen = random.choice(found)
    delivered = DeliveredRange(chosen.first, chosen.first, chosen.delivery_count + 1)
    return with_more(lines, (other_than(chosen.name), got(chosen.end_ms + after_ms, chosen.partition, delivered)))


def accept_undone(lines: Lines, random: Random) -> Lines | None:
    """A record comes again that was accepted."""
    return _undone(lines, random, AcknowledgedAs.ACCEPT)


def reject_undone(lines: Lines, random: Random) -> Lines | None:
    """A record comes again that was rejected."""
    return _undone(lines, random, AcknowledgedAs.REJECT)


def _undone(lines: Lines, random: Random, type_: AcknowledgedAs) -> Lines | None:
    limit = settings_of(lines).delivery_count_limit or 0
    counts = {
        (each.partition, offset): each.delivery_count
        for each in deliveries(lines)
        for offset in range(each.first, each.last + 1)
    }
    ends = Counter(
        (partition, first)
        for _, operation in lines
        if isinstance(operation, AcknowledgeOperation)
        for _, partition, ranges, code in operation.partitions
        for low, high, as_ in ranges
        for first in range(low, high + 1)
        if code == 0 and as_ in {AcknowledgedAs.ACCEPT, AcknowledgedAs.REJECT}
    )
    found = [
        (name, operation.end_ms, partition, first)
        for name, operation in lines
        if isinstance(operation, AcknowledgeOperation) and operation.end_ms is not None
        for _, partition, ranges, code in operation.partitions
        for first, _, as_ in ranges
        if code == 0 and as_ is type_ and ends[partition, first] == 1 and counts[partition, first] < limit
    ]
    if not found:
        return None
    name, end_ms, partition, first = random.choice(found)
    delivered = DeliveredRange(first, first, counts[partition, first] + 1)
    return with_more(lines, (other_than(name), got(end_ms + 2, partition, delivered)))


def count_falls(lines: Lines, random: Random) -> Lines | None:
    """A record that was delivered before is delivered for the first time."""
    return _counted(lines, random, lambda count: count if count == 1 else 1, least=2)


def count_jumps(lines: Lines, random: Random) -> Lines | None:
    """A record is delivered for the second time, and nobody got it before."""
    return _counted(lines, random, lambda _: 2, most=1)


def over_limit(lines: Lines, random: Random) -> Lines | None:
    """A record is delivered once more than the limit allows."""
    limit = settings_of(lines).delivery_count_limit or 0
    return _counted(lines, random, lambda _: limit + 1, least=limit)


def _counted(
    lines: Lines, random: Random, count_of: Callable[[int], int], *, least: int = 1, most: int = 10
) -> Lines | None:
    delivered = deliveries(lines)
    counts = {
        (each.partition, offset): each.delivery_count
        for each in delivered
        for offset in range(each.first, each.last + 1)
    }
    found = [
        each
        for each in delivered
        if least <= each.delivery_count <= most
        and each.delivery_count == counts[each.partition, each.first]
        and each.first == each.last
    ]
    if not found:
        return None
    chosen = random.choice(found)
    before = DeliveredRange(chosen.first, chosen.last, chosen.delivery_count)
    return _replaced(lines, chosen, (before._replace(delivery_count=count_of(chosen.delivery_count)),))


def _replaced(lines: Lines, chosen: Delivered, ranges: tuple[DeliveredRange, ...]) -> Lines:
    """Return *lines* with other ranges in the place of one."""
    name, operation = lines[chosen.number]
    assert isinstance(operation, FetchOperation)
    partitions = []
    for each in operation.partitions:
        before = each.ranges
        if each.partition == chosen.partition:
            at = next(at for at, (first, _, _) in enumerate(before) if first == chosen.first)
            before = (*before[:at], *ranges, *before[at + 1 :])
        partitions.append(each._replace(ranges=before))
    changed = evolve(operation, partitions=tuple(partitions))
    return [*lines[: chosen.number], (name, changed), *lines[chosen.number + 1 :]]


def repeated(lines: Lines, random: Random) -> Lines | None:
    """An answer has an offset twice."""
    chosen = random.choice(deliveries(lines))
    twice = DeliveredRange(chosen.first, chosen.last, chosen.delivery_count)
    return _replaced(lines, chosen, (twice, twice._replace(first_offset=chosen.last)))


def swapped(lines: Lines, random: Random) -> Lines | None:
    """An answer has two ranges in the wrong order."""
    found = [each for each in deliveries(lines) if each.last > each.first]
    chosen = random.choice(found)
    second = DeliveredRange(chosen.first + 1, chosen.last, chosen.delivery_count)
    return _replaced(lines, chosen, (second, DeliveredRange(chosen.first, chosen.first, chosen.delivery_count)))


def never_produced(lines: Lines, random: Random) -> Lines | None:
    """A record is delivered far behind the end of the log, and accepted."""
    begin, partition = random.randrange(5_000, 15_000), random.choice((0, 1))
    accepted = answered(begin + 3, partition, 10_000, 10_000, AcknowledgedAs.ACCEPT, 0)
    return with_more(lines, ("m0", got(begin, partition, DeliveredRange(10_000, 10_000, 1))), ("m0", accepted))


def aborted_delivered(lines: Lines, random: Random) -> Lines | None:
    """A record of an aborted transaction is delivered, and accepted."""
    aborted = {
        operation.transaction: operation.end_ms or 0
        for _, operation in lines
        if isinstance(operation, EndTransactionOperation) and not operation.committed
    }
    found = [
        operation
        for _, operation in lines
        if isinstance(operation, ProduceOperation) and operation.transaction in aborted
    ]
    if not found or settings_of(lines).isolation_level != "read_committed":
        return None
    chosen = random.choice(found)
    begin, offset = aborted[chosen.transaction or ""] + 100, chosen.first_offset or 0
    accepted = answered(begin + 3, chosen.partition, offset, offset, AcknowledgedAs.ACCEPT, 0)
    return with_more(lines, ("m0", got(begin, chosen.partition, DeliveredRange(offset, offset, 1))), ("m0", accepted))


def late_commit(lines: Lines, random: Random) -> Lines | None:
    """A transaction is committed after its records were delivered."""
    if settings_of(lines).isolation_level != "read_committed":
        return None
    found, delivered = [], deliveries(lines)
    for number, (_, operation) in enumerate(lines):
        if isinstance(operation, EndTransactionOperation) and operation.committed:
            produced = next(
                each
                for _, each in lines
                if isinstance(each, ProduceOperation) and each.transaction == operation.transaction
            )
            times = [
                each.end_ms
                for each in delivered
                if each.partition == produced.partition and each.first <= (produced.first_offset or 0) <= each.last
            ]
            found += [(number, min(times))] if times else []
    if not found:
        return None
    number, time_ms = random.choice(found)
    name, operation = lines[number]
    assert isinstance(operation, EndTransactionOperation)
    late = evolve(operation, begin_ms=time_ms + 5, end_ms=time_ms + 9)
    return with_more([*lines[:number], *lines[number + 1 :]], (name, late))


def lost(lines: Lines, random: Random) -> Lines | None:
    """A record was never delivered."""
    produced = {
        (operation.partition, offset)
        for _, operation in lines
        if isinstance(operation, ProduceOperation)
        for offset in range(operation.first_offset or 0, (operation.last_offset or 0) + 1)
    }
    chosen = random.choice([each for each in deliveries(lines) if (each.partition, each.first) in produced])
    return [(name, _without(operation, chosen.partition, chosen.first)) for name, operation in lines]


def _without(operation: LoggedOperation, partition: int, offset: int) -> LoggedOperation:
    """Return an operation without anything about a record."""
    if isinstance(operation, FetchOperation):
        fetched = (
            each._replace(ranges=_cut(each.ranges, each.partition == partition, offset))
            for each in operation.partitions
        )
        return evolve(operation, partitions=tuple(fetched))
    if isinstance(operation, AcknowledgeOperation):
        asked = (
            each._replace(ranges=_cut(each.ranges, each.partition == partition, offset))
            for each in operation.partitions
        )
        return evolve(operation, partitions=tuple(asked))
    return operation


Range = TypeVar("Range", DeliveredRange, AcknowledgedRange)


def _cut(ranges: tuple[Range, ...], is_its: bool, offset: int) -> tuple[Range, ...]:  # noqa: FBT001 - of each partition
    cut: list[Range] = []
    for each in ranges:
        if not is_its or not each.first_offset <= offset <= each.last_offset:
            cut.append(each)
            continue
        if each.first_offset < offset:
            cut.append(each._replace(last_offset=offset - 1))
        if offset < each.last_offset:
            cut.append(each._replace(first_offset=offset + 1))
    return tuple(cut)


def not_owner(lines: Lines, random: Random) -> Lines | None:
    """Another member acknowledges what somebody has acquired, and is not refused."""
    limit = settings_of(lines).delivery_count_limit or 0
    found = [each for each in held(lines, 9) if each.delivery_count < limit]
    chosen = random.choice(found)
    more = answered(chosen.end_ms + 2, chosen.partition, chosen.first, chosen.first, AcknowledgedAs.RELEASE, 0)
    return with_more(lines, (other_than(chosen.name), more))


def owner_refused(lines: Lines, random: Random) -> Lines | None:
    """A member acknowledges what it has acquired, and is refused."""
    chosen = random.choice(held(lines, 9))
    more = answered(chosen.end_ms + 2, chosen.partition, chosen.first, chosen.first, AcknowledgedAs.ACCEPT, 121)
    return with_more(lines, (chosen.name, more))


def too_many_locks(lines: Lines, _random: Random) -> Lines | None:
    """Many more records are acquired at once than may be, and accepted."""
    most = settings_of(lines).max_record_locks or 0
    first, size = 20_000, 500
    count = most // size + 3
    produced = ProduceOperation(
        begin_ms=15_000,
        end_ms=15_001,
        topic=TOPIC,
        partition=0,
        first_offset=first,
        last_offset=first + count * size - 1,
    )
    more: list[tuple[str, LoggedOperation]] = [("p", produced)]
    for number in range(count):
        low = first + number * size
        more.append(("m9", got(15_010 + 2 * number, 0, DeliveredRange(low, low + size - 1, 1))))
        more.append(("m9", answered(15_200 + 2 * number, 0, low, low + size - 1, AcknowledgedAs.ACCEPT, 0)))
    return with_more(lines, *more)


FALSIFICATIONS: Final[dict[Falsify, Guarantee]] = {
    second_owner: Guarantee.ONE_OWNER,
    early_lock: Guarantee.ONE_OWNER,
    accept_undone: Guarantee.ACCEPTED_IS_FINAL,
    reject_undone: Guarantee.REJECTED_IS_FINAL,
    count_falls: Guarantee.DELIVERY_COUNT,
    count_jumps: Guarantee.DELIVERY_COUNT,
    over_limit: Guarantee.DELIVERY_LIMIT,
    repeated: Guarantee.NO_REPEATS,
    swapped: Guarantee.RECORD_ORDER,
    never_produced: Guarantee.ONLY_PRODUCED,
    aborted_delivered: Guarantee.ONLY_COMMITTED,
    late_commit: Guarantee.ONLY_COMMITTED,
    lost: Guarantee.NOTHING_LOST,
    not_owner: Guarantee.ONLY_OWNER_MAY_ACKNOWLEDGE,
    owner_refused: Guarantee.OWNER_MAY_ACKNOWLEDGE,
    too_many_locks: Guarantee.RECORD_LOCKS,
}
"""The falsifications, and what each of them breaks."""
