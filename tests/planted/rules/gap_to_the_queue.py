"""Records that are acknowledged as gaps go to the dead-letter queue as if they were rejected."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from sharestate.partition import record_machine, writes
from sharestate.partition.record_machine import TRANSITIONS, Input
from sharestate.values.records import RecordState
from tests.planted.putting import put

RELEASE: Final = "4.4.0"

_GAP: Final = (RecordState.ACQUIRED, Input.GAP)
_REJECT: Final = (RecordState.ACQUIRED, Input.REJECT)


def plant() -> None:
    """Leave out that a gap is archived at once."""
    transitions = MappingProxyType({**TRANSITIONS, _GAP: TRANSITIONS[_REJECT]})
    put(record_machine, "TRANSITIONS", transitions)
    put(writes, "TRANSITIONS", transitions)
