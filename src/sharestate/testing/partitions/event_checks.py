"""The events of a share partition's program in JSON: which there are, and what their arguments may be."""

from __future__ import annotations

from typing import Final

from sharestate.json_checks import Field, boolean, integer, list_of, one_of, record, row, text
from sharestate.json_lines import Json
from sharestate.testing.partitions.events import (
    ANSWERS,
    KINDS,
    LETTER_ANSWERS,
    SMALL,
    PartitionSettings,
    ReadState,
)
from sharestate.testing.partitions.log import ABORT, COMMIT, LOGS
from sharestate.testing.program_files import EventChecks

_offset: Final = integer(0)
_number: Final = integer(0)
_positive: Final = integer(1)


def _name(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_settings: Final = record(
    {
        "delivery_count_limit": Field(_positive),
        "lock_duration_ms": Field(_positive),
        "max_record_locks": Field(_positive),
        "batch_size": Field(_positive),
        "acquire_mode": Field(one_of(_name(*SMALL["acquire_mode"]))),
        "isolation_level": Field(one_of(_name(*SMALL["isolation_level"]))),
        "has_dead_letter_queue": Field(boolean),
    },
    PartitionSettings,
)

_state: Final = record(
    {
        "start_offset": Field(_offset),
        "batches": Field(list_of(row(_offset, _offset, integer(0, 4), _number, make=lambda *items: items))),
    },
    ReadState,
)

_log_batch: Final = row(_offset, _offset, _number, one_of(_name(ABORT, COMMIT)), make=lambda *items: items, required=2)


def _setting(value: Json, path: str) -> int | bool | str:
    """Check the value of a setting; which one it is decides whether it fits."""
    return value if isinstance(value, (bool, str)) else _positive(value, path)


EVENT_CHECKS: Final[EventChecks] = {
    "partition_starts": (_settings, one_of(_name(*LOGS)), _state),
    "member_acquires": (
        text,
        _offset,
        list_of(_log_batch),
        list_of(row(_number, _offset, make=lambda *items: items)),
        _positive,
    ),
    "member_acknowledges": (
        text,
        list_of(row(_offset, _offset, list_of(one_of(_name(*KINDS))), make=lambda *items: items)),
    ),
    "member_acknowledges_all": (text, one_of(_name(*KINDS))),
    "member_leaves": (text,),
    "time_passes": (_number,),
    "log_start_moves": (_offset,),
    "group_is_configured": (one_of(_name(*SMALL)), _setting),
    "log_is_compacted": (_offset,),
    "write_is_answered": (_number, one_of(_name(*ANSWERS))),
    "write_is_answered_again": (_number, one_of(_name(*ANSWERS))),
    "dead_letter_is_answered": (_number, one_of(_name(*LETTER_ANSWERS))),
    "dead_letter_is_answered_again": (_number, one_of(_name(*LETTER_ANSWERS))),
    "leader_fails_over": (list_of(_number),),
}
"""The checks of the arguments of each event."""
