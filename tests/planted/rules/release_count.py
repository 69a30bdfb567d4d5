"""Closing a session takes back the delivery, and never archives by count."""

from __future__ import annotations

from types import MappingProxyType

from sharestate.partition import record_machine
from sharestate.partition.record_machine import TRANSITIONS, Input, Rule
from sharestate.values.records import RecordState
from tests.planted.putting import put

CLOSED = (RecordState.ACQUIRED, Input.SESSION_CLOSE)


def plant() -> None:
    """Put the old rule back."""
    put(
        record_machine,
        "TRANSITIONS",
        MappingProxyType({**TRANSITIONS, CLOSED: Rule(RecordState.AVAILABLE, delivery=-1)}),
    )
