"""
The fetch of records for a member: of which partitions, how many bytes, and when there is enough of them.

A fetch is tried when it comes, and each time when it is woken; at its deadline it takes what there is.

Source:
    DelayedShareFetch, ShareFetchUtils, PartitionMaxBytesStrategy (Kafka 4.4).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from attrs import define, evolve, field

from sharestate.broker.node.fetch_queue import WaitingFetches, WatchKey
from sharestate.broker.node.log_batches import LogBatch, LogRead, OffsetOutOfRange
from sharestate.broker.node.partition_log import PartitionLog
from sharestate.broker.node.profiles import NodeProfile, NodeQuirk
from sharestate.broker.node.share_partitions import LedPartition, SharePartitions
from sharestate.broker.node.share_requests import NO_ERROR, PartitionError, ShareFetchPartition, error_of
from sharestate.broker.sessions import TopicIdPartition
from sharestate.errors import ErrorCode, ShareStateError
from sharestate.history.kafka_defects import does_acquire_throw
from sharestate.partition.share_partition import SharePartition
from sharestate.values.checks import MAX_INT64
from sharestate.values.fetched_records import IsolationLevel
from sharestate.values.records import AcquiredRecords, AcquireMode, SharePartitionKey

Found: TypeAlias = dict[TopicIdPartition, ShareFetchPartition]
"""What a fetch has found of its partitions, in the order in which it has acquired from them."""

_Reads: TypeAlias = Mapping[TopicIdPartition, LogRead | OffsetOutOfRange]

NO_BYTES: Final = PartitionError(ErrorCode.UNKNOWN_SERVER_ERROR, "Request max bytes must be greater than 0")
"""The error of a fetch that may have no bytes (PartitionMaxBytesStrategy.checkValidArguments, Kafka 4.4)."""


class FetchParameters(NamedTuple):
    """
    What a member asks of a fetch.

    Attributes:
        group_id: The share group.
        member_id: The member.
        deadline_ms: When it has to be answered. [ms]
        min_bytes: The bytes that are enough to answer before that. [bytes]
        max_bytes: The most bytes to return. [bytes]
        max_records: The most records to acquire, of all partitions together. [records]
        batch_size: The size of new batches. [records]
        mode: Whether *max_records* may be exceeded up to the end of a batch of the log.
        isolation: Whether what is not committed is read.
    """

    group_id: str
    member_id: str
    deadline_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    mode: AcquireMode
    isolation: IsolationLevel


@define(eq=False)
class ShareFetch:
    """
    A fetch on its way.

    Attributes:
        number: Its number.
        asked: What the member asks for.
        partitions: The share partitions to acquire from, in their order.
        errors: The errors of partitions so far.
    """

    number: int
    asked: FetchParameters
    partitions: dict[TopicIdPartition, LedPartition] = field(factory=dict)
    errors: dict[TopicIdPartition, PartitionError] = field(factory=dict)


class _Acquirable(NamedTuple):
    """A share partition that something may be acquired from, and the offset at which to fetch."""

    led: LedPartition
    log: PartitionLog
    fetch_offset: int


_MOST_TRIES: Final = 2
"""How often a fetch is tried if nothing changes: the first time may read what was not read yet, and no later one."""

_Taken: TypeAlias = dict[TopicIdPartition, _Acquirable]


class ShareFetches:
    """
    The fetches of a node.

    Args:
        profile: Whose rules to follow.
        share_partitions: The share partitions that the node leads.

    Attributes:
        waiting: The fetches that wait.
        completed: The fetches that have an answer, with what they have found; ``ShareService`` takes them out.
    """

    def __init__(self, profile: NodeProfile, share_partitions: SharePartitions) -> None:
        """Begin without fetches."""
        self._keeps_failures = profile.has(NodeQuirk.KEEPS_FAILURES)
        self._throws_at_aborted = profile.has(NodeQuirk.THROWS_AT_ABORTED)
        self._share_partitions = share_partitions
        self.waiting: WaitingFetches[ShareFetch] = WaitingFetches()
        self.completed: deque[tuple[ShareFetch, Found]] = deque()

    def begin(self, number: int, asked: FetchParameters, order: Sequence[TopicIdPartition], now_ms: int) -> None:
        """
        Fetch from partitions in *order*, or let the fetch wait.

        Source:
            SharePartitionManager.processShareFetch (Kafka 4.4).
        """
        fetch = ShareFetch(number, asked)
        for partition in order:
            self._open(fetch, partition, now_ms)
        if len(fetch.errors) == len(order):
            self._complete(fetch, {})
        elif not self._try(fetch, now_ms):
            keys: list[WatchKey] = []
            for led in fetch.partitions.values():
                keys += (led.key, led.log_key)
            self.waiting.add(number, fetch, deadline_ms=asked.deadline_ms, keys=keys)

    def wake(self, woken: dict[WatchKey, None], now_ms: int) -> None:
        """
        Try the fetches that wait for any of *woken* again, in its order, until nothing is left in it (node 7).

        Complexity:
            Linear in the fetches that wait for each, and in the partitions of those that are tried: twice, and twice
            more after each that is answered.
        """
        if not self.waiting:
            woken.clear()
        tries: defaultdict[int, int] = defaultdict(int)
        while woken:
            key = next(iter(woken))
            del woken[key]
            for number in self.waiting.watching(key):
                if tries[number] == _MOST_TRIES:
                    continue
                tries[number] += 1
                if self._try(self.waiting[number], now_ms):
                    self.waiting.remove(number)
                    tries.clear()

    def expire_next(self, now_ms: int) -> bool:
        """
        Answer the fetch that has to be answered first, with what there is; return False if none has by *now_ms*.

        Source:
            DelayedShareFetch.onComplete (Kafka 4.4).
        """
        number = self.waiting.due(now_ms)
        if number is None:
            return False
        fetch = self.waiting.remove(number)
        self._acquire(fetch, self._acquirable(fetch, now_ms), {}, now_ms)
        return True

    # ---- inside

    def _open(self, fetch: ShareFetch, partition: TopicIdPartition, now_ms: int) -> None:
        group_id, topic_id, index = fetch.asked.group_id, partition.topic_id, partition.partition
        led = known = self._share_partitions.find(group_id, topic_id, index)
        if led is None:
            key = SharePartitionKey(group_id=group_id, topic_id=topic_id, partition=index)
            led = self._share_partitions.open(key, now_ms)
        if known is None or not self._keeps_failures:
            # In Kafka only the request that opens it learns why that fails; those that come meanwhile wait (rule 16).
            led.initialization.add_done_callback(partial(_take_initialization, fetch, partition))
        if partition not in fetch.errors:
            fetch.partitions[partition] = led

    def _try(self, fetch: ShareFetch, now_ms: int) -> bool:
        """
        Answer *fetch* if there is enough, and return whether it was.

        Source:
            DelayedShareFetch.tryComplete (Kafka 4.4).
        """
        if not self._keeps_failures and fetch.errors.keys() >= fetch.partitions.keys():
            self._complete(fetch, {})
            return True
        taken = self._acquirable(fetch, now_ms)
        if not taken:
            return False
        if fetch.asked.max_bytes <= 0:
            fetch.errors.update(dict.fromkeys(taken, NO_BYTES))
            self._complete(fetch, {})
            return True
        fresh = {partition: at for partition, at in taken.items() if at.led.known_offset != at.fetch_offset}
        reads = _read(fetch.asked, fresh, len(taken))
        for partition, read in reads.items():
            if isinstance(read, LogRead):
                taken[partition].led.known_offset = taken[partition].fetch_offset
        if not _is_enough(fetch.asked, taken, reads):
            return False
        self._acquire(fetch, taken, reads, now_ms)
        return True

    def _acquirable(self, fetch: ShareFetch, now_ms: int) -> _Taken:
        """
        Return the partitions of *fetch* that have room, in their order.

        Nothing takes time here between taking a fetch lock and giving it back, so no fetch finds one taken.

        Source:
            DelayedShareFetch.acquirablePartitions (Kafka 4.4).
        """
        return {
            partition: _Acquirable(led, log, led.leader.next_fetch_offset(now_ms=now_ms))
            for partition, led in fetch.partitions.items()
            if led.is_active
            and led.leader.can_acquire(now_ms=now_ms)
            and (log := self._share_partitions.log_of(led.log_key)) is not None
        }

    def _acquire(self, fetch: ShareFetch, taken: _Taken, reads: _Reads, now_ms: int) -> None:
        """
        Acquire for *fetch* from what is still to be read, then from what was read; and answer it (node 6).

        Source:
            DelayedShareFetch.combineLogReadResponse, ShareFetchUtils.processFetchResponse (Kafka 4.4).
        """
        asked = fetch.asked
        missing = {partition: at for partition, at in taken.items() if partition not in reads}
        if missing and asked.max_bytes <= 0:
            fetch.errors.update(dict.fromkeys(missing, NO_BYTES))
            missing = {}
        found: Found = {}
        left = asked.max_records
        throws = self._throws_at_aborted
        for partition, read in {**_read(asked, missing, len(taken)), **reads}.items():
            led = taken[partition].led
            if throws and isinstance(read, LogRead) and _acquire_throws(asked, led, read, left, now_ms):
                self._share_partitions.take_effects(led, now_ms)
                self._share_partitions.woken.update(dict.fromkeys(at.led.key for at in taken.values()))
                fetch.errors.update(dict.fromkeys(taken, PartitionError(ErrorCode.UNKNOWN_SERVER_ERROR, None)))
                found = {}
                break
            found[partition] = _acquired(asked, partition, led, read, left, now_ms)
            left -= sum(last - first + 1 for first, last, _ in found[partition].acquired_records)
            self._share_partitions.take_effects(led, now_ms)
            self._share_partitions.woken[led.key] = None  # the fetch lock is free
        self._complete(fetch, found)

    def _complete(self, fetch: ShareFetch, found: Found) -> None:
        for partition, error in fetch.errors.items():
            found[partition] = ShareFetchPartition(partition.topic_id, partition.partition, error)
        self.completed.append((fetch, found))


def _take_initialization(fetch: ShareFetch, partition: TopicIdPartition, future: Future[None]) -> None:
    """Note why the state of a share partition could not be loaded, for the fetch that has opened it."""
    error = future.exception()
    if error is not None:
        fetch.errors[partition] = error_of(error)


def _read(
    asked: FetchParameters, places: _Taken, acquired_count: int
) -> dict[TopicIdPartition, LogRead | OffsetOutOfRange]:
    """
    Return what the logs have from *places* on, of *acquired_count* partitions that share the bytes (node 4).

    Source:
        DelayedShareFetch.readFromLog, ReplicaManager.readFromLog (Kafka 4.4).
    """
    reads: dict[TopicIdPartition, LogRead | OffsetOutOfRange] = {}
    if not places:
        return reads
    left, at_least_one = asked.max_bytes, True
    limits = uniform_max_bytes(asked.max_bytes, len(places), acquired_count)
    for (partition, at), limit in zip(places.items(), limits, strict=True):
        read = at.log.read(
            at.fetch_offset, isolation=asked.isolation, max_bytes=min(limit, left), at_least_one=at_least_one
        )
        reads[partition] = read
        if isinstance(read, LogRead) and read.batches:
            at_least_one = False
            left = max(0, left - read.size_in_bytes)
    return reads


def uniform_max_bytes(max_bytes: int, count: int, acquired_count: int) -> tuple[int, ...]:
    """
    Return how many bytes each of *count* partitions may have, if *acquired_count* share *max_bytes*. [bytes]

    What is left over goes to the first one; Kafka draws who gets it.

    >>> uniform_max_bytes(10, 3, 3), uniform_max_bytes(10, 1, 3), uniform_max_bytes(2, 2, 3), uniform_max_bytes(2, 3, 3)
    ((4, 3, 3), (4,), (1, 1), (1, 1, 0))

    Args:
        max_bytes: The bytes of the request; at least 1. [bytes]
        count: The partitions to read; at least 1. [partitions]
        acquired_count: The partitions that share the bytes, those included. [partitions]

    Source:
        PartitionMaxBytesStrategy.uniformPartitionMaxBytes (Kafka 4.4).
    """
    if max_bytes < count:
        return (1,) * max_bytes + (0,) * (count - max_bytes)
    each, rest = divmod(max_bytes, acquired_count if max_bytes >= acquired_count else count)
    return (each + rest, *(each,) * (count - 1))


def _is_enough(asked: FetchParameters, taken: _Taken, reads: _Reads) -> bool:
    """
    Return whether there are as many bytes as the member wants, or has to get an answer at once (node 5).

    Source:
        DelayedShareFetch.isMinBytesSatisfied, anyPartitionHasLogReadError (Kafka 4.4).
    """
    limits = uniform_max_bytes(asked.max_bytes, len(taken), len(taken))
    available = 0
    for (partition, at), limit in zip(taken.items(), limits, strict=True):
        read = reads.get(partition)
        if read is None:
            read = at.log.read(at.fetch_offset, isolation=asked.isolation, max_bytes=limit)
        if isinstance(read, OffsetOutOfRange):
            return True
        is_committed = asked.isolation is IsolationLevel.READ_COMMITTED
        end_offset = read.last_stable_offset if is_committed else read.high_watermark
        if at.fetch_offset > end_offset:
            return True
        is_cut = (read.batches[-1].batch.last_offset + 1 if read.batches else at.fetch_offset) < end_offset
        available += limit if is_cut else min(read.size_in_bytes, limit)
    return available >= asked.min_bytes


def _acquired(  # noqa: PLR0913 - what one partition is acquired with
    asked: FetchParameters,
    partition: TopicIdPartition,
    led: LedPartition,
    read: LogRead | OffsetOutOfRange,
    max_records: int,
    now_ms: int,
) -> ShareFetchPartition:
    """Acquire from what was *read* of a partition; of one that begins later by now, only learn that."""
    error = NO_ERROR
    acquired: tuple[AcquiredRecords, ...] = ()
    batches: Sequence[LogBatch] = ()
    try:
        if isinstance(read, OffsetOutOfRange):
            led.leader.advance_log_start(read.log_start_offset, now_ms=now_ms)
        else:
            acquired = led.leader.acquire(
                asked.member_id,
                read.fetched,
                now_ms=now_ms,
                max_records=max_records,
                batch_size=max(1, asked.batch_size),
                mode=asked.mode,
            )
            batches = read.batches
    except ShareStateError as refusal:
        error = error_of(refusal)
    return ShareFetchPartition(
        partition.topic_id,
        partition.partition,
        error,
        records=sliced(batches, acquired) if acquired else (),
        acquired_records=acquired,
    )


def _acquire_throws(asked: FetchParameters, led: LedPartition, read: LogRead, max_records: int, now_ms: int) -> bool:
    """
    Return whether Kafka's leader throws when it has acquired (node 9, N6); then what it has acquired is locked.

    Complexity:
        Linear in what is in flight, where a transaction that was aborted has records in what was read.

    Source:
        DelayedShareFetch.completeLocalLogShareFetchRequest, whose error is that of all partitions (Kafka 4.4).
    """
    if not read.fetched.aborted_transactions or not does_acquire_throw(read.fetched, MAX_INT64):
        return False
    unfiltered = evolve(read.fetched, isolation=IsolationLevel.READ_UNCOMMITTED)
    size, mode = max(1, asked.batch_size), asked.mode
    trial = SharePartition.restore(led.leader.partition.snapshot())
    try:
        trial.acquire(asked.member_id, unfiltered, now_ms=now_ms, max_records=max_records, batch_size=size, mode=mode)
    except ShareStateError:
        return False
    batches = trial.batches()
    if not batches or not does_acquire_throw(read.fetched, batches[0].first_offset):
        return False
    led.leader.acquire(
        asked.member_id,
        unfiltered,
        now_ms=now_ms,
        max_records=max_records,
        batch_size=size,
        mode=mode,
        is_untold=True,
    )
    return True


def sliced(batches: Sequence[LogBatch], acquired: Sequence[AcquiredRecords]) -> tuple[LogBatch, ...]:
    """
    Return those of *batches* that have what was *acquired*, from its first offset to its last.

    Complexity:
        O(log n) in the batches, and linear in those that are returned.

    Source:
        ShareFetchUtils.maybeSliceFetchRecords (Kafka 4.4).
    """
    start = max(1, bisect_right(batches, acquired[0].first_offset, key=_first_offset)) - 1
    stop = bisect_right(batches, acquired[-1].last_offset, start, key=_first_offset)
    return tuple(batches[start : max(stop, start + 1)])


def _first_offset(batch: LogBatch) -> int:
    return batch.batch.first_offset
