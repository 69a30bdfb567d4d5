"""What the last column of each table holds: who writes it, and how the KIP prints it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import evolve, frozen

from sharestate.kip932 import control_records
from sharestate.kip932.control_records import share_checkpoint, share_delta
from sharestate.kip932.notation import read_control_record, read_keyed_record, read_request
from sharestate.kip932.record_keys import state_records
from sharestate.kip932.write_requests import write_request
from sharestate.values.profiles import KIP_932, Profile
from sharestate.values.requests import UNINITIALIZED_START_OFFSET
from sharestate.values.write_policies import KipWritePolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sharestate.json_checks import Check
    from sharestate.json_lines import Json
    from sharestate.kip932.performing import Step
    from sharestate.kip932.tables import Row

CONTROL_RECORDS: Final = evolve(
    KIP_932, name="kip-932-control-records", write_policy=KipWritePolicy(has_short_form=False)
)
"""The KIP's older design: a delta has no start offset, so every change is written."""


Performed: TypeAlias = "tuple[Row, Step]"
"""A row, and what its commands have led to."""

_Written: TypeAlias = "Iterator[tuple[Json, ...]]"


def _requests(rows: Sequence[Performed]) -> _Written:
    for _, step in rows:
        yield tuple(write_request(*write) for write in step.writes)


def _control_records(rows: Sequence[Performed]) -> _Written:
    """Yield the records for each row: a write that sets the start offset is a checkpoint, any other one a delta."""
    epoch = control_records.FIRST_EPOCH - 1
    for row, step in rows:
        written = []
        for key, write in step.writes:
            if write.start_offset != UNINITIALIZED_START_OFFSET:
                epoch += 1
                written.append(share_checkpoint(step.snapshot, epoch=epoch))
            else:
                written.append(share_delta(key, write, epoch=epoch))
        if row.takes_checkpoint:
            epoch += 1
            written.append(share_checkpoint(step.snapshot, epoch=epoch))
        yield tuple(written)


def _checkpoints(rows: Sequence[Performed]) -> _Written:
    epoch = control_records.FIRST_EPOCH - 1
    for row, step in rows:
        epoch += row.takes_checkpoint
        yield (share_checkpoint(step.snapshot, epoch=epoch),) if row.takes_checkpoint else ()


def _state_records(rows: Sequence[Performed]) -> _Written:
    records = state_records(write for _, step in rows for _, write in step.writes)
    for _, step in rows:
        yield tuple(next(records).to_json() for _ in step.writes)


@frozen
class Form:
    """What the last column of a table holds."""

    noun: str
    """What it is called; in the plural with an s."""

    profile: Profile
    """The profile under which a leader writes it."""

    read: Check[Json]
    """Reads it as the KIP prints it."""

    written: Callable[[Sequence[Performed]], _Written]
    """Yields it for each row that was performed."""


FORMS: Final[Mapping[str, Form]] = MappingProxyType(
    {
        "write": Form("request", KIP_932, read_request, _requests),
        "control": Form("record", CONTROL_RECORDS, read_control_record, _control_records),
        "checkpoint": Form("record", CONTROL_RECORDS, read_control_record, _checkpoints),
        "keys": Form("record", KIP_932, read_keyed_record, _state_records),
    }
)
"""The form of each table."""
