"""
The commands that every record goes through: their arguments are judged, the time is set, and the rules are asked.

``SharePartition`` has their documentation. They are functions, which the compiled library has compiled; what a caller
may get wrong is an ``object`` here, since compiled code takes any other annotation for true.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sharestate.errors import RequestRefusedError, TimeReversedError
from sharestate.partition import acknowledge as acknowledge_
from sharestate.partition import acquire as acquire_
from sharestate.partition import commit
from sharestate.partition.acknowledgement_form import acknowledgements
from sharestate.partition.state import PartitionState
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.checks import MAX_INT64, expect, integer, text
from sharestate.values.effects import NOTHING, Effects
from sharestate.values.fetched_records import FetchedRecords
from sharestate.values.records import AcquireMode

_HIGH: Final = MAX_INT64  # names of this module: compiled code looks up those of others each time
_FETCHED: Final = FetchedRecords
_MODE: Final = AcquireMode


def acquire(  # noqa: PLR0913 - what a fetch request says
    state: PartitionState,
    member_id: object,
    fetched: FetchedRecords,
    now_ms: object,
    max_records: object,
    batch_size: object,
    mode: AcquireMode,
) -> Effects:
    """Acquire for a member what it may have of the records that were fetched."""
    if type(member_id) is not str:
        member_id = text(member_id, "member_id")
    if type(fetched) is not _FETCHED or type(mode) is not _MODE:
        expect(fetched, FetchedRecords, "fetched")
        expect(mode, AcquireMode, "mode")
    if type(max_records) is not int or not 0 <= max_records <= _HIGH:
        max_records = integer(max_records, "max_records")
    if type(batch_size) is not int or not 0 < batch_size <= _HIGH:
        batch_size = integer(batch_size, "batch_size", 1)
    set_time(state, now_ms)
    try:
        effects = acquire_.acquire(state, member_id, fetched, max_records, batch_size, mode)
    except RequestRefusedError as error:
        raise _refused(state, error) from None
    return effects if state.recorder is None else with_transitions(state, effects)


def acknowledge(
    state: PartitionState, member_id: object, batches: Iterable[AcknowledgementBatch], now_ms: object
) -> Effects:
    """Acknowledge records that a member holds."""
    if type(member_id) is not str:
        member_id = text(member_id, "member_id")
    requests = acknowledgements(batches)
    set_time(state, now_ms)
    try:
        effects = acknowledge_.acknowledge(state, member_id, requests)
    except RequestRefusedError as error:
        raise _refused(state, error) from None
    return effects if state.recorder is None else with_transitions(state, effects)


def write_succeeded(state: PartitionState, number: object, advances: object) -> Effects:
    """Report that a write has succeeded."""
    if type(number) is not int or number not in state.writes:
        number = integer(number, "number")
    if type(advances) is not bool:
        advances = expect(advances, bool, "advances")
    effects = commit.write_succeeded(state, number, advances)
    return effects if state.recorder is None else with_transitions(state, effects)


def set_time(state: PartitionState, now_ms: object) -> None:
    """
    Note the time of a command.

    Raises:
        MalformedInputError: It is no time.
        TimeReversedError: It is before that of an earlier command.
    """
    if type(now_ms) is not int or not state.now_ms <= now_ms <= _HIGH:
        now_ms = _accepted_time(now_ms, state.now_ms)
    state.now_ms = now_ms
    if state.recorder is not None:
        state.recorder.at_ms = now_ms


def _accepted_time(now_ms: object, last_ms: int) -> int:
    """Return a time that is of a subclass of int; refuse one that is malformed or in the past."""
    now_ms = integer(now_ms, "now_ms", 0)
    if now_ms < last_ms:
        message = f"the time goes backwards: {now_ms} after {last_ms}"
        raise TimeReversedError(message, "now_ms")
    return now_ms


def with_transitions(state: PartitionState, effects: Effects) -> Effects:
    """Return *effects* with the transitions that the command has recorded, if the user has asked for them."""
    return effects if state.recorder is None else effects._replace(transitions=state.recorder.take())


def _refused(state: PartitionState, error: RequestRefusedError) -> RequestRefusedError:
    transitions = with_transitions(state, NOTHING).transitions
    return error.with_transitions(tuple(transitions)) if transitions else error
