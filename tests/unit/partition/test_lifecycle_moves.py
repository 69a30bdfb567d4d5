"""The life of a share partition: what moves it where, whether or not the command is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from inspect import isfunction, ismethod

import pytest

from sharestate import (
    AcknowledgementBatch,
    FetchedRecords,
    Lifecycle,
    PersistedState,
    RecordBatch,
    RecordState,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
    ShareStateError,
    StateBatch,
)
from sharestate.partition.lifecycle import Event

NEVER_STORED = PersistedState(start_offset=10, state_batches=[StateBatch(5, 9, RecordState.AVAILABLE, 1)])

EVENTS: Mapping[Event, Callable[[SharePartition], object]] = {
    Event.INITIALIZE: SharePartition.initialize,
    Event.READ_TAKEN_OVER: lambda partition: partition.read_succeeded(PersistedState()),
    Event.READ_REFUSED: lambda partition: partition.read_succeeded(NEVER_STORED),
    Event.READ_FAILED: lambda partition: partition.read_failed(15),
    Event.FENCE: SharePartition.fence,
}

WAYS: Mapping[str, tuple[Lifecycle, list[Event]]] = {
    "empty": (Lifecycle.EMPTY, []),
    "initializing": (Lifecycle.INITIALIZING, [Event.INITIALIZE]),
    "active": (Lifecycle.ACTIVE, [Event.INITIALIZE, Event.READ_TAKEN_OVER]),
    "not stored": (Lifecycle.FAILED, [Event.INITIALIZE, Event.READ_REFUSED]),
    "not read": (Lifecycle.FAILED, [Event.INITIALIZE, Event.READ_FAILED]),
    "fenced": (Lifecycle.FENCED, [Event.FENCE]),
    "fenced while it was read": (Lifecycle.FENCED, [Event.INITIALIZE, Event.FENCE]),
    "fenced when it was active": (Lifecycle.FENCED, [Event.INITIALIZE, Event.READ_TAKEN_OVER, Event.FENCE]),
}

MOVES: Mapping[tuple[Lifecycle, Event], Lifecycle] = {
    (Lifecycle.EMPTY, Event.INITIALIZE): Lifecycle.INITIALIZING,
    (Lifecycle.INITIALIZING, Event.READ_TAKEN_OVER): Lifecycle.ACTIVE,
    (Lifecycle.INITIALIZING, Event.READ_REFUSED): Lifecycle.FAILED,
    (Lifecycle.INITIALIZING, Event.READ_FAILED): Lifecycle.FAILED,
    **{(lifecycle, Event.FENCE): Lifecycle.FENCED for lifecycle in Lifecycle},
}
"""Rule 3: EMPTY is read once, fencing comes from any state, and (24.2, B14) no late answer leads out of FENCED."""

FETCHED = FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, 9)])

OTHERS: Mapping[str, Callable[[SharePartition], object]] = {
    "acknowledge": lambda partition: partition.acknowledge("m1", [AcknowledgementBatch(0, 9, (1,))], now_ms=0),
    "acquire": lambda partition: partition.acquire("m1", FETCHED, now_ms=0),
    "acquisition_outlook": lambda partition: partition.acquisition_outlook(5),
    "advance_log_start": lambda partition: partition.advance_log_start(5),
    "batch_count": SharePartition.batch_count,
    "batches": SharePartition.batches,
    "can_acquire": SharePartition.can_acquire,
    "check": SharePartition.check,
    "copy": SharePartition.copy,
    "dead_letter_answered": lambda partition: partition.dead_letter_answered(0),
    "configure": lambda partition: partition.configure(ShareConfig()),
    "expire_next": lambda partition: partition.expire_next(now_ms=0),
    "lag": lambda partition: partition.lag(10),
    "lock_count": SharePartition.lock_count,
    "next_deadline_ms": SharePartition.next_deadline_ms,
    "next_fetch_offset": SharePartition.next_fetch_offset,
    "release": lambda partition: partition.release("m1", now_ms=0),
    "restore": lambda partition: partition.restore(partition.snapshot(), profile=partition.profile),
    "snapshot": SharePartition.snapshot,
    "splittable_count": SharePartition.splittable_count,
    "write_failed": lambda partition: partition.write_failed(0, 15),
    "write_succeeded": lambda partition: partition.write_succeeded(0),
}


def lived(events: list[Event]) -> SharePartition:
    """Return a share partition to which *events* have happened."""
    partition = SharePartition(SharePartitionKey(group_id="g", topic_id="t", partition=0))
    for event in events:
        EVENTS[event](partition)
    return partition


each_way = pytest.mark.parametrize(("lifecycle", "way"), WAYS.values(), ids=WAYS)


@each_way
@pytest.mark.parametrize("event", Event)
def test_an_event_moves_it_as_kafka_does(lifecycle: Lifecycle, way: list[Event], event: Event) -> None:
    """What has no row above leaves the share partition what it is, whether the command is refused or not."""
    partition = lived(way)
    assert partition.lifecycle is lifecycle

    with suppress(ShareStateError):
        EVENTS[event](partition)

    assert partition.lifecycle is MOVES.get((lifecycle, event), lifecycle)


@each_way
@pytest.mark.parametrize("name", OTHERS)
def test_no_other_method_changes_the_lifecycle_state(lifecycle: Lifecycle, way: list[Event], name: str) -> None:
    """No other method changes how far it has come."""
    partition = lived(way)

    with suppress(ShareStateError):
        OTHERS[name](partition)

    assert partition.lifecycle is lifecycle


def test_every_method_is_accounted_for() -> None:
    """Each public method is an event or none: a new one has to be placed."""
    methods = {
        name
        for name in dir(SharePartition)
        if not name.startswith("_") and (isfunction(method := getattr(SharePartition, name)) or ismethod(method))
    }

    assert methods == OTHERS.keys() | {event.value.partition(",")[0] for event in Event}


def test_there_is_a_way_to_every_state() -> None:
    """The ways that are driven here reach every state."""
    assert {lifecycle for lifecycle, _ in WAYS.values()} == set(Lifecycle)
