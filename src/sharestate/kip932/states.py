"""The state of a share partition in the KIP's terms: read from its texts, and made of a leader's snapshot."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from attrs import frozen

from sharestate.json_checks import refuse
from sharestate.values.records import RecordState
from sharestate.values.requests import StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sharestate.values.snapshot import Snapshot


class RecordsState(NamedTuple):
    """
    The state of a range of records.

    Attributes:
        first_offset: The first offset of the range.
        last_offset: The last offset of the range, included.
        state: Their state.
        delivery_count: The delivery count; None where the KIP leaves it out. [deliveries]
    """

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int | None


R = TypeVar("R", RecordsState, StateBatch)


@frozen(kw_only=True)
class KipState:
    """
    A state, or the changes of one: None, and records in no range, are left out.

    Attributes:
        start_offset: The SPSO.
        end_offset: The KIP's SPEO, which is exclusive: the offset after the last record in flight, or the SPSO if there
            is none.
        records: The records in flight, in ascending order.
    """

    start_offset: int | None = None
    end_offset: int | None = None
    records: tuple[RecordsState, ...] = ()

    def offsets(self) -> Mapping[int, tuple[RecordState, int | None]]:
        """Return state and delivery count of each record, by offset."""
        return {
            offset: (state, count) for first, last, state, count in self.records for offset in range(first, last + 1)
        }


# ---- texts of the KIP

_OUTSIDE_BRACKETS: Final = re.compile(r", (?![^(]*\))")
_OFFSET: Final = re.compile(r"(SPSO|SPEO)=(\d+)")
_RECORDS: Final = re.compile(r"records? (\d+)(?:-(\d+))? (?:\((\w+), delivery count (\d+)\)|(\w+))")
_STATES: Final = {state.name.lower(): state for state in RecordState}


def read_state(text: str, path: str = "") -> KipState:
    """
    Return the state in a text of the column "State changes" or "Cumulative state".

    >>> read_state("SPSO=110, records 110-112 (acquired, delivery count 2), record 119 acknowledged").records[1]
    RecordsState(first_offset=119, last_offset=119, state=<RecordState.ACKNOWLEDGED: 2>, delivery_count=None)

    Raises:
        MalformedInputError: *text* is not one of these; ``field`` is *path*.
    """
    offsets: dict[str, int] = {}
    records = []
    for item in _OUTSIDE_BRACKETS.split(text):
        if match := _OFFSET.fullmatch(item):
            offsets[match[1]] = int(match[2])
        else:
            records.append(_records(item, path))
    return KipState(start_offset=offsets.get("SPSO"), end_offset=offsets.get("SPEO"), records=tuple(records))


def _records(item: str, path: str) -> RecordsState:
    match = _RECORDS.fullmatch(item)
    if match is None:
        refuse("an SPSO, an SPEO, or records with their state", item, path)
    first, last, counted, count, uncounted = match.groups()
    state = counted or uncounted
    if state not in _STATES:
        refuse(f"a state out of {', '.join(_STATES)}", state, path)
    return RecordsState(int(first), int(last or first), _STATES[state], int(count) if count else None)


# ---- the state of a leader


def state_of(snapshot: Snapshot) -> KipState:
    """Return the state in *snapshot*; linear in the records in flight."""
    records = tuple(
        RecordsState(first, last, RecordState(state), count) for first, last, state, count in live(snapshot)
    )
    return KipState(
        start_offset=snapshot.start_offset,
        end_offset=snapshot.end_offset + 1 if records else snapshot.end_offset,
        records=records,
    )


def live(snapshot: Snapshot) -> tuple[StateBatch, ...]:
    """Return the records in flight at or above the SPSO, in ascending order; equal neighbors are merged."""
    return tuple(_merged(record for record in _cached(snapshot) if record.first_offset >= snapshot.start_offset))


def _cached(snapshot: Snapshot) -> Iterator[StateBatch]:
    """Yield each record by itself."""
    for batch in snapshot.batches:
        offset = batch.first_offset
        for size, cell in batch.runs:
            stop = offset + size if batch.is_split else batch.last_offset + 1
            state, count = snapshot.cells[cell][:2]
            yield from (StateBatch(each, each, state, count) for each in range(offset, stop))
            offset = stop


def changes(before: KipState, after: KipState) -> KipState:
    """
    Return the parts of *after* that were different *before*.

    Records that the SPSO has passed are left out: in the KIP, only the SPSO shows that.
    """
    known = before.offsets()
    changed = (
        RecordsState(offset, offset, *standing)
        for offset, standing in after.offsets().items()
        if known.get(offset) != standing
    )
    return KipState(
        start_offset=_changed(before.start_offset, after.start_offset),
        end_offset=_changed(before.end_offset, after.end_offset),
        records=tuple(_merged(changed)),
    )


def _changed(before: int | None, after: int | None) -> int | None:
    return None if after == before else after


def _merged(records: Iterable[R]) -> Iterator[R]:
    """Yield *records* with equal neighbors merged."""
    run: R | None = None
    for each in records:
        if run is not None and run[2:] == each[2:] and run.last_offset + 1 == each.first_offset:
            run = run._replace(last_offset=each.last_offset)
        else:
            if run is not None:
                yield run
            run = each
    if run is not None:
        yield run


def agrees(expected: KipState, found: KipState) -> bool:
    """
    Return whether *found* has the offsets and records of *expected*.

    A delivery count that *expected* leaves out may have any value.
    """
    wanted, got = expected.offsets(), found.offsets()
    return (
        (expected.start_offset, expected.end_offset) == (found.start_offset, found.end_offset)
        and wanted.keys() == got.keys()
        and all(
            state == got[offset][0] and count in {None, got[offset][1]} for offset, (state, count) in wanted.items()
        )
    )
