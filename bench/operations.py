"""
Single operations, each on share partitions of several sizes.

Every function prepares share partitions outside the clock and returns what is timed: operations that leave them nearly
as large as they were.
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from bench.partitions import (
    ACCEPT,
    CONFIG,
    EXPIRED_MS,
    KEY,
    RELEASE,
    acknowledge,
    acquire,
    fetched,
    filled,
    split,
)
from sharestate import KAFKA_4_3, KIP_932, AcknowledgementBatch, InMemoryPersister, Leader, SharePartition
from sharestate.conversation import Conversation
from sharestate.json_lines import write_json
from sharestate.persister import InitializeStateParameters, PartitionStateData

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Operation = Callable[[], object]
    Operations = Iterator[Operation]

_RECORDS: Final = 10
"""How many records each batch has. [records]"""

_NEXT: Final = 20
"""How many writes are added to those that are pending, at most. [writes]"""

_BATCHES: Final = (10, 2_000, 10_000)

_KIP_WRITES: Final = "under KIP_932, with so many pending writes"

SERVED: Final = "requests a second through the line protocol, with so many batches in flight"
"""The table that is told in requests a second."""


def _settings(batches: int) -> Iterator[tuple[SharePartition, range]]:
    """Yield share partitions, and the batches in the middle of each on which to operate: one in a hundred, or one."""
    for _ in range(max(1, 1_000 // batches)):
        count = max(1, batches // 100)
        yield filled(batches, size=_RECORDS), range(batches // 2, batches // 2 + count)


def _request(index: int, types: tuple[int, ...] = ACCEPT) -> AcknowledgementBatch:
    return AcknowledgementBatch(index * _RECORDS, index * _RECORDS + _RECORDS - 1, types)


def _acquire(batches: int) -> Operations:
    for partition, chosen in _settings(batches):
        for index in range(len(chosen)):
            yield partial(acquire, partition, (batches + index) * _RECORDS, _RECORDS, "m0")


def _acknowledge(batches: int) -> Operations:
    for partition, chosen in _settings(batches):
        for index in chosen:
            yield partial(partition.acknowledge, f"m{index}", [_request(index)], now_ms=0)


def _write_succeeded(batches: int) -> Operations:
    """Every second one lets the SPSO advance."""
    for partition, chosen in _settings(batches):
        for pair in zip(range(len(chosen)), chosen, strict=True):
            for index in pair:
                (write,) = partition.acknowledge(f"m{index}", [_request(index)], now_ms=0).writes
                yield partial(partition.write_succeeded, write.number)


def _release(batches: int) -> Operations:
    for partition, chosen in _settings(batches):
        for index in chosen[:10]:
            yield partial(partition.release, f"m{index}", now_ms=0)


def _expire_next(batches: int) -> Operations:
    for partition, chosen in _settings(batches):
        for _ in chosen:
            yield partial(partition.expire_next, now_ms=EXPIRED_MS)


def _next_fetch_offset(batches: int) -> Operations:
    for partition, chosen in _settings(batches):
        for _ in chosen:
            yield partition.next_fetch_offset


def _searched_fetch_offset(batches: int) -> Operations:
    for partition, chosen in _settings(batches):
        last = batches - 1
        acknowledge(partition, last * _RECORDS, batches * _RECORDS - 1, RELEASE, f"m{last}")
        for _ in chosen[:10]:
            yield partition.next_fetch_offset


def _advance_log_start(batches: int) -> Operations:
    for partition, chosen in _settings(batches):
        for index in range(len(chosen)):
            yield partial(partition.advance_log_start, (index + 1) * _RECORDS)


def _snapshot(batches: int) -> Operations:
    partition = filled(batches, size=_RECORDS)
    for _ in range(max(1, 500 // batches)):
        yield partition.snapshot


def _restore(batches: int) -> Operations:
    snapshot = filled(batches, size=_RECORDS).snapshot()
    for _ in range(max(1, 500 // batches)):
        yield partial(SharePartition.restore, snapshot)


def _lead(batches: int) -> Operations:
    leader = _leading(batches)
    for index in range(batches, batches + 100):
        yield partial(_deliver, leader, index * _RECORDS)


def _leading(batches: int) -> Leader:
    """Return a leader whose share partition has as many batches in flight."""
    persister = InMemoryPersister()
    state = PartitionStateData(partition=KEY.partition)
    persister.initialize_state(InitializeStateParameters.of(KEY.group_id, KEY.topic_id, state))
    leader = Leader(SharePartition(KEY, config=CONFIG), persister, reset_offset=lambda _: 0)
    leader.start(now_ms=0)
    for index in range(batches):
        leader.acquire(f"m{index}", fetched(index * _RECORDS, _RECORDS), now_ms=0)
    return leader


def _deliver(leader: Leader, first: int) -> None:
    leader.acquire("m0", fetched(first, _RECORDS), now_ms=0)
    leader.acknowledge("m0", [AcknowledgementBatch(first, first + _RECORDS - 1, ACCEPT)], now_ms=0).result()


def _kip_acknowledge(writes: int) -> Operations:
    partition = _pending(writes)
    for index in range(writes, writes + _NEXT):
        yield partial(partition.acknowledge, f"m{index}", [_request(index)], now_ms=0)


def _kip_write_succeeded(writes: int) -> Operations:
    partition = _pending(writes)
    for index in range(writes, writes + _NEXT):
        for write in partition.acknowledge(f"m{index}", [_request(index)], now_ms=0).writes:
            yield partial(partition.write_succeeded, write.number)


def _pending(writes: int) -> SharePartition:
    """Return a share partition with as many pending writes, and a few batches behind them that are in flight."""
    partition = filled(writes + _NEXT, size=_RECORDS, profile=KIP_932)
    for index in range(writes):
        partition.acknowledge(f"m{index}", [_request(index)], now_ms=0)
    return partition


def _serve(batches: int, *, quiet: bool) -> Operations:
    """Yield pairs of requests, as lines: the next batch is acquired and acknowledged."""
    conversation = Conversation(KAFKA_4_3)
    limits = {"max_record_locks": CONFIG.max_record_locks}
    _answer(conversation, write_json({"op": "open", "lifecycle": "ACTIVE", "config": limits, "quiet": True}))
    for index in range(batches):
        _answer(conversation, write_json(_acquire_json(index, quiet=True)))
    for index in range(batches, batches + 10):
        first = index * _RECORDS
        ranges = [[first, first + _RECORDS - 1, [1]]]
        yield partial(_answer, conversation, write_json(_acquire_json(index, quiet=quiet)))
        acknowledge = {"op": "acknowledge", "member": f"m{index}", "batches": ranges, "quiet": quiet}
        yield partial(_answer, conversation, write_json(acknowledge))


def _acquire_json(index: int, *, quiet: bool) -> dict[str, object]:
    first = index * _RECORDS
    return {
        "op": "acquire",
        "member": f"m{index}",
        "batch_size": _RECORDS,
        "max_records": _RECORDS,
        "fetch_offset": first,
        "batches": [[first, first + _RECORDS - 1]],
        "quiet": quiet,
    }


def _answer(conversation: Conversation, line: str) -> str:
    return write_json(conversation.answer_line(line, 1))


def _acknowledge_one(records: int) -> Operations:
    """Of a split batch whose first half is done."""
    partition = split(records)
    half = records // 2
    acknowledge(partition, 0, half - 1)
    for offset in range(half, half + 100):
        yield partial(acknowledge, partition, offset, offset)


def _redeliver_one(records: int) -> Operations:
    for _ in range(5):
        partition = split(records)
        offset = records // 2
        acknowledge(partition, offset, offset, RELEASE)
        yield partial(acquire, partition, 0, records)


def _redeliver_all(records: int) -> Operations:
    for _ in range(5):
        partition = split(records)
        acknowledge(partition, 0, records - 1, RELEASE)
        yield partial(acquire, partition, 0, records)


OPERATIONS: Final[Mapping[str, Mapping[str, Callable[[int], Operations]]]] = MappingProxyType(
    {
        "with so many batches in flight": MappingProxyType(
            {
                "acquire a new batch": _acquire,
                "acknowledge a batch": _acknowledge,
                "a write succeeds": _write_succeeded,
                "expire_next": _expire_next,
                "advance_log_start by a batch": _advance_log_start,
                "next_fetch_offset, nothing to look for": _next_fetch_offset,
                "next_fetch_offset, found in the last batch": _searched_fetch_offset,
                "release of a member with one batch": _release,
                "snapshot": _snapshot,
                "restore": _restore,
                "Leader: acquire and acknowledge a batch": _lead,
            }
        ),
        "with so many records in a split batch": MappingProxyType(
            {
                "acknowledge a record, and its write succeeds": _acknowledge_one,
                "deliver one record again": _redeliver_one,
                "deliver all records again": _redeliver_all,
            }
        ),
        _KIP_WRITES: MappingProxyType(
            {
                "KIP_932: acknowledge a batch": _kip_acknowledge,
                "KIP_932: a write succeeds": _kip_write_succeeded,
            }
        ),
        SERVED: MappingProxyType(
            {
                "a quiet request": partial(_serve, quiet=True),
                "a request with the state": partial(_serve, quiet=False),
            }
        ),
    }
)
"""What is timed, by what grows."""

SIZES: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    dict(zip(OPERATIONS, (_BATCHES, (500, 2_000, 10_000), (10, 100, 1_000), (10, 100, 2_000)), strict=True))
)
"""How large it is, from small to large."""


_MOST_COMPARED: Final = MappingProxyType({_KIP_WRITES: 100})  # where each write once went through all the others


def compared_sizes(what: str) -> tuple[int, int]:
    """Return how small and how large it is where trees are compared, older ones among them."""
    return min(SIZES[what]), _MOST_COMPARED.get(what, max(SIZES[what]))


def operation_name(name: str, size: int) -> str:
    """Return how the timing of an operation on a share partition of one size is called."""
    return f"{name} ({size})"
