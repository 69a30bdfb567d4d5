"""The log that share partitions are tested with, and the ways in which a fetch may find it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from typing import Any, Final, NamedTuple, TypeAlias

from attrs import Factory, define

from sharestate.values.records import ControlType, RecordBatch

LogBatch: TypeAlias = tuple[Any, ...]
"""
A batch of the log, as it is printed: (first offset, last offset), with the producer's id if it belongs to a
transaction, and with ABORT or COMMIT if it is the marker that ends it.
"""

ABORT: Final = "ABORT"

COMMIT: Final = "COMMIT"


class Piece(NamedTuple):
    """
    Some offsets of a log.

    Attributes:
        size: How many. [offsets]
        attributes: The producer's id, and the kind of marker, if there are such.
        is_hole: Whether the log has no batch there.
    """

    size: int
    attributes: tuple[Any, ...] = ()
    is_hole: bool = False


LOGS: Final[Mapping[str, Sequence[Piece]]] = {
    "single records": (Piece(1),),
    "sparse records": (Piece(1), Piece(1), Piece(2, is_hole=True), Piece(1), Piece(1, is_hole=True)),
    "batches": (Piece(3), Piece(1), Piece(2)),
    "holes": (Piece(2), Piece(1, is_hole=True), Piece(3), Piece(2, is_hole=True)),
    "compacted": (Piece(6, is_hole=True), Piece(2), Piece(1, is_hole=True), Piece(3)),
    "transactions": (Piece(2, (1,)), Piece(1), Piece(1, (1, ABORT)), Piece(2, (1,)), Piece(1, (1, COMMIT))),
    "overlapping": (
        Piece(1, (1,)),
        Piece(2, (2,)),
        Piece(2, (1,)),
        Piece(1, (1, ABORT)),
        Piece(1, (2, COMMIT)),
    ),
}
"""Logs, each of which goes on for ever by beginning again."""

VIEWS: Final = ("as it is", "record by record", "in larger batches")
"""How a fetch may find the same records: batches are other ones after a compaction, or when they are converted."""


@define
class PartitionLog:
    """
    A log without an end, of which compaction may remove batches.

    >>> PartitionLog("holes").batches(1, 3)
    [(0, 1), (3, 5), (8, 9)]
    """

    name: str = "single records"
    removed: set[int] = Factory(set)
    """The first offsets of the batches that are gone."""

    @property
    def has_batches(self) -> bool:
        """Whether a batch of it may have more than one record."""
        return any(piece.size > 1 and not piece.is_hole for piece in LOGS[self.name])

    def batches(self, offset: int, count: int) -> list[LogBatch]:
        """Return *count* batches from the one on that holds *offset*, or the first one after it."""
        return list(islice((batch for batch in self._all() if batch[1] >= offset), count))

    def aborted(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the aborted transactions that reach into a range: the producer's id, and the first offset."""
        found, begins = [], dict[int, int]()
        for batch in self._all(with_removed=True):
            if len(batch) == 3:  # noqa: PLR2004 - with a producer
                begins.setdefault(batch[2], batch[0])
            elif batch[3:]:
                begin = begins.pop(batch[2])
                if batch[3] == ABORT and begin <= last and batch[1] >= first:
                    found.append((batch[2], begin))
            if batch[0] > last and not begins:
                return found
        return found

    def _all(self, *, with_removed: bool = False) -> Iterator[LogBatch]:
        offset = 0
        for piece in cycle(LOGS[self.name]):
            batch = (offset, offset + piece.size - 1, *piece.attributes)
            offset += piece.size
            if not piece.is_hole and (with_removed or batch[0] not in self.removed):
                yield batch


def seen(batches: Iterable[LogBatch], view: str) -> list[LogBatch]:
    """
    Return *batches* as a fetch may find them.

    >>> seen([(0, 1), (3, 4), (5, 5, 1)], "record by record")
    [(0, 0), (1, 1), (3, 3), (4, 4), (5, 5, 1)]
    >>> seen([(0, 1), (3, 4), (5, 5, 1)], "in larger batches")
    [(0, 4), (5, 5, 1)]
    """
    if view == "record by record":
        return [(o, o, *attributes) for first, last, *attributes in batches for o in range(first, last + 1)]
    larger: list[LogBatch] = []
    for first, last, *attributes in batches:
        is_data = len(attributes) <= 1
        if view == "in larger batches" and larger and is_data and [*larger[-1][2:]] == attributes:
            larger[-1] = (larger[-1][0], last, *attributes)
        else:
            larger.append((first, last, *attributes))
    return larger


def in_json(batch: LogBatch) -> list[Any]:
    """Return a batch of the log as the line protocol has it."""
    first, last, *attributes = batch
    if not attributes:
        return [first, last]
    producer, control = (*attributes, None)[:2]
    return [first, last, {"producer_id": producer, "transactional": True, "control": control}]


def record_batch(first: int, last: int, producer_id: int | None = None, control: str | None = None) -> RecordBatch:
    """Return a batch of the log, as it is printed, as one of the library's."""
    if producer_id is None:
        return RecordBatch(first, last)
    return RecordBatch(
        first, last, producer_id, is_transactional=True, control=ControlType(control) if control else None
    )
