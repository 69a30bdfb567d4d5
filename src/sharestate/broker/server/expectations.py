"""What tests expect of the records of a group: each delivered once, none lost, all done; with their lives if not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from sharestate.broker.node import PartitionLog, ShareBroker
from sharestate.broker.server.recording import Key, Recording
from sharestate.explain import Lived, Overview
from sharestate.explain.totals import ListedRecords, without
from sharestate.explain.words import counted
from sharestate.values.checks import refuse
from sharestate.values.effects import Cause

MOST_LINES: Final = 10
"""The most ranges of a share partition that a failure lists. [ranges]"""

MOST_LIVES: Final = 2
"""The most records whose lives are in a failure. [records]"""

_LOSSES: Final = frozenset({Cause.ARCHIVED_AT_LIMIT, Cause.GAP, Cause.BELOW_LOG_START})
"""
What has become of a record that was lost. One that a member rejects was given up on purpose, one of an aborted
transaction was never there, and the cleaner leaves a later one with the same key.
"""


class GroupRecords(NamedTuple):
    """
    What is known of the records of a share partition.

    Attributes:
        key: The share partition.
        name: It as a reader knows it, such as ``orders-0``.
        overview: What happened to them; None if no member has fetched.
        undelivered: The ranges that were never delivered, in order.
        deleted: The ranges that were deleted from the log before they were delivered.
        markers: The offsets of markers of transactions, in order: members get these too, and they are no records.
    """

    key: Key
    name: str
    overview: Overview | None
    undelivered: tuple[tuple[int, int], ...]
    deleted: tuple[tuple[int, int], ...]
    markers: tuple[tuple[int, int], ...]

    def listed(self, name: str) -> list[ListedRecords]:
        """Return one of the lists of ``WhatHappened``, in order of offsets."""
        listed = [] if self.overview is None else self.overview.happened.lists()[name]
        ranges = ((each, without(each.first_offset, each.last_offset, self.markers)) for each in listed)
        found = (ListedRecords(first, last, each.lived) for each, left in ranges for first, last in left)
        return sorted(found, key=lambda each: each.first_offset)

    def never_delivered(self) -> list[ListedRecords]:
        """Return what was never delivered."""
        return [ListedRecords(first, last, _NEVER) for first, last in self.undelivered]

    def never_had(self) -> list[ListedRecords]:
        """Return what was deleted before it was delivered."""
        return [ListedRecords(first, last, _DELETED) for first, last in self.deleted]


_NEVER: Final = Lived()
_DELETED: Final = Lived(outcome=Cause.BELOW_LOG_START)


def group_records(node: ShareBroker, recording: Recording, group_id: str, topic: str | None) -> list[GroupRecords]:
    """
    Return what is known of the records of a group: of a topic, or of all from which it has fetched.

    Raises:
        MalformedInputError: There is no such topic, or the group has fetched nothing.
        HistoryError: More has happened than is kept.
    """
    known = None if topic is None else node.topics.by_name(topic)
    if topic is not None and known is None:
        refuse(f"expected a topic that there is, got {topic!r}", "topic")
    keys = recording.keys(group_id, topic)
    if known is not None:
        keys = [(group_id, known.topic_id, partition) for partition in range(known.partition_count)]
    if not keys:
        refuse(f"expected a group that has fetched, got {group_id!r}", "group_id")
    found = []
    for key in keys:
        records = recording.replayed_records(key)
        overview = records.life.overview()
        name = topic or node.topics.name_of(key[1])
        if name is not None:
            log = node.log(name, key[2])
            found.append(
                GroupRecords(
                    key,
                    f"{name}-{key[2]}",
                    overview if overview.events else None,
                    undelivered=tuple(_undelivered(log, records.next_offset or 0)),
                    deleted=tuple(records.deleted),
                    markers=tuple(_markers(log)),
                )
            )
    return found


def _markers(log: PartitionLog) -> Iterator[tuple[int, int]]:
    for batch in log.batches:
        if batch.batch.control is not None:
            yield batch.batch.first_offset, batch.batch.last_offset


def _undelivered(log: PartitionLog, next_offset: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of records of a log from *next_offset* on; markers of transactions are none."""
    open_: tuple[int, int] | None = None
    for batch in log.batches:
        place = batch.batch
        if place.control is not None or place.last_offset < next_offset:
            continue
        first = max(next_offset, place.first_offset)
        if open_ is not None and open_[1] + 1 < first:
            yield open_
            open_ = None
        open_ = first if open_ is None else open_[0], place.last_offset
    if open_ is not None:
        yield open_


# ---- expectations


class Expectation(NamedTuple):
    """
    Something that is to hold of each record.

    Attributes:
        text: What holds of those of which it does not, after their number.
        exceptions: Returns those of which it does not hold.
    """

    text: str
    exceptions: Callable[[GroupRecords], list[ListedRecords]]


def _not_once(records: GroupRecords) -> list[ListedRecords]:
    never = [each for each in records.listed("archived") if not each.lived.all_deliveries and _is_lost(each)]
    return [*records.listed("redelivered"), *never, *records.never_had(), *records.never_delivered()]


def _lost(records: GroupRecords) -> list[ListedRecords]:
    return [*(each for each in records.listed("archived") if _is_lost(each)), *records.never_had()]


def _is_lost(listed: ListedRecords) -> bool:
    return listed.lived.outcome in _LOSSES and not listed.lived.is_dead_letter


def _not_done(records: GroupRecords) -> list[ListedRecords]:
    return [*records.listed("stuck"), *records.never_delivered()]


DELIVERED_ONCE: Final = Expectation("not delivered exactly once", _not_once)
NO_RECORD_LOST: Final = Expectation("lost", _lost)
ALL_DONE: Final = Expectation("not done with", _not_done)


def failure(expectation: Expectation, found: Iterable[GroupRecords], recording: Recording) -> str | None:
    """
    Return why *expectation* does not hold: the records, and the lives of the first of them; None if it does.

    Raises:
        HistoryError: More has happened than is kept.
    """
    lines: list[str] = []
    total = 0
    lives: dict[tuple[str, int], GroupRecords] = {}
    for records in found:
        exceptions = expectation.exceptions(records)
        if exceptions:
            total += sum(each.records for each in exceptions)
            lines += [f"  {records.name}:", *_listed(records, exceptions)]
            if records.overview is not None:
                lives |= {(records.name, each.first_offset): records for each in exceptions}
    if not lines:
        return None
    message = [f"{counted(total, 'record')} {expectation.text}", *lines]
    for (_, offset), records in islice(lives.items(), MOST_LIVES):
        group_id, topic_id, partition = records.key
        explanation = recording.explain(recording.topic(topic_id), partition, offset, group_id)
        message += ["", f"Record {offset} of {records.name}:", *(f"  {line}" for line in explanation.lines())]
    return "\n".join(line.rstrip() for line in message)


def not_done(node: ShareBroker, recording: Recording) -> list[str]:
    """
    Return the records that groups are not done with, and the lives of the first of them, line by line.

    Raises:
        HistoryError: More has happened than is kept.
    """
    lines: list[str] = []
    for group_id in dict.fromkeys(key[0] for key in recording.keys(None, None)):
        reason = failure(ALL_DONE, group_records(node, recording, group_id, None), recording)
        if reason is not None:
            lines += [f"Group {group_id}: {reason}"] if not lines else ["", f"Group {group_id}: {reason}"]
    return lines


def _listed(records: GroupRecords, exceptions: list[ListedRecords]) -> Iterator[str]:
    for each in exceptions[:MOST_LINES]:
        yield f"    {_line(records.overview, each)}"
    if len(exceptions) > MOST_LINES:
        yield f"    and {len(exceptions) - MOST_LINES} ranges more"
    if records.overview is None:
        yield "    no member has fetched from it"


def _line(overview: Overview | None, listed: ListedRecords) -> str:
    if overview is None or listed.lived is _NEVER:
        return f"{listed.offsets}: never delivered"
    if listed.lived is _DELETED:
        return f"{listed.offsets}: deleted from the log before it was delivered"
    return listed.line(overview.members.name)
