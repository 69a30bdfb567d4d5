"""What goes to the persister and comes back from there."""

import copy
import pickle
from collections.abc import Callable

import pytest
from attrs.exceptions import FrozenInstanceError

from sharestate import KIP_932, AcknowledgementBatch, MalformedInputError, PersistedState, StateBatch, StateRun
from sharestate.values.requests import StateBatches
from tests.support.scenes import Scene


def test_a_state_that_was_never_written_begins_at_nothing() -> None:
    """Without more a persisted state starts at 0, has the epoch 0 and no batches."""
    state = PersistedState()

    assert (state.start_offset, state.state_epoch, state.state_batches) == (0, 0, ())


def test_state_batches_may_come_in_any_iterable() -> None:
    """They are kept as a tuple, so that states can be compared and hashed."""
    batch = StateBatch(0, 4, 2, 1)
    states = {PersistedState(state_batches=[batch]), PersistedState(state_batches=iter([batch]))}

    assert len(states) == 1
    assert states.pop().state_batches == ((0, 4, 2, 1),)


@pytest.mark.parametrize(
    ("batch", "field"),
    [
        (StateBatch(0, 2**63 - 1, 0, 1), "last_offset"),
        (StateBatch(2**63 - 1, 0, 0, 1), "first_offset"),
        (StateBatch(-(2**63) - 1, 0, 0, 1), "first_offset"),
        (StateBatch(0, 4, 128, 1), "delivery_state"),
        (StateBatch(0, 4, -129, 1), "delivery_state"),
        (StateBatch(0, 4, 0, 2**15), "delivery_count"),
        (StateBatch(0, 4, 0, -(2**15) - 1), "delivery_count"),
    ],
)
def test_a_state_has_what_the_wire_can_carry(batch: StateBatch, field: str) -> None:
    """A state has 8 bits, a delivery count 16, and after the last offset comes another one (ReadShareGroupState)."""
    PersistedState(state_batches=[StateBatch(0, 2**63 - 2, 127, 2**15 - 1)])

    with pytest.raises(MalformedInputError, match="expected an integer within") as refused:
        PersistedState(state_batches=[StateBatch(0, 4, 0, 1), batch])
    assert refused.value.field == f"state_batches[1].{field}"


def test_a_state_is_frozen() -> None:
    """What was read does not change."""
    with pytest.raises(FrozenInstanceError):
        PersistedState().start_offset = 5  # type: ignore[misc]


def run_of(first: int, states: list[int]) -> StateRun:
    """Return the entries of single records from *first* on, delivered once."""
    return StateRun.of_records(range(first, first + len(states)), states, [1] * len(states))


def test_single_records_become_state_batches() -> None:
    """Each offset gets a batch of its own, in order."""
    made = list(run_of(5, [2, 0, 4]).batches())

    assert made == [StateBatch(5, 5, 2, 1), StateBatch(6, 6, 0, 1), StateBatch(7, 7, 4, 1)]
    assert all(type(batch) is StateBatch for batch in made)


def test_the_sequence_of_runs_is_like_the_tuple_of_their_batches() -> None:
    """Length, items, order, equality, hash and text are those of the tuple."""
    whole = StateBatch(0, 4, 2, 1)
    batches = StateBatches([StateRun.of_batches([whole]), run_of(5, [2, 0])])
    expected = (whole, StateBatch(5, 5, 2, 1), StateBatch(6, 6, 0, 1))

    assert (len(batches), tuple(batches), batches[0], batches[1:]) == (3, expected, whole, expected[1:])
    assert (bool(batches), bool(StateBatches([])), bool(StateBatches([run_of(5, [])]))) == (True, False, False)
    assert batches == expected
    assert expected == batches
    assert batches == StateBatches([StateRun.of_batches(expected)])
    assert batches != expected[1:]
    assert (hash(batches), repr(batches)) == (hash(expected), repr(expected))


@pytest.mark.parametrize("size", [1, 2])
def test_a_run_has_the_columns_of_its_batches(size: int) -> None:
    """Each column has one item for each batch, whether there is one of them or more."""
    batches = [StateBatch(0, 4, 2, 1), StateBatch(7, 7, 4, 3)][:size]
    run = StateRun.of_batches(batches)

    assert run == StateRun((0, 7)[:size], (4, 7)[:size], (2, 4)[:size], (1, 3)[:size])
    assert list(run.batches()) == batches
    assert type(run) is StateRun


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])  # noqa: S301 - our own
def test_the_sequence_of_runs_can_be_copied(copied: Callable[[StateBatches], StateBatches]) -> None:
    """A copy has the same runs and is equal."""
    batches = StateBatches([run_of(5, [2, 0])])

    assert copied(batches) == batches
    assert len(copied(batches).runs) == 1


def test_the_runs_of_a_sequence_cannot_be_replaced() -> None:
    """A write is a value: its entries stay what they are."""
    with pytest.raises(AttributeError):
        StateBatches([run_of(5, [2, 0])]).runs = ()  # type: ignore[misc]


def test_a_write_has_its_batches_column_by_column() -> None:
    """A write of a split batch has one run for each part of the request, a write of whole batches one in all."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9][10-19]", cut=5)
    (whole,) = scene.partition.acknowledge("m1", [AcknowledgementBatch(0, 9, (1,))], now_ms=0).writes
    (split,) = scene.partition.acknowledge(
        "m1", [AcknowledgementBatch(10, 12, (1,)), AcknowledgementBatch(13, 14, (1, 2))], now_ms=0
    ).writes
    (one,) = scene.partition.acknowledge("m1", [AcknowledgementBatch(15, 15, (3,))], now_ms=0).writes

    assert whole.runs == (((0, 5), (4, 9), (2, 2), (1, 1)),)
    assert one.runs == (((15,), (15,), (4,), (1,)),)
    assert [(list(run.first_offsets), list(run.delivery_states)) for run in split.runs] == [
        ([10, 11, 12], [2, 2, 2]),
        ([13, 14], [2, 0]),
    ]
    assert tuple(batch for run in split.runs for batch in run.batches()) == split.state_batches


def test_a_write_without_batches_has_no_runs() -> None:
    """A new start offset alone has no entries."""
    scene = Scene(profile=KIP_932).load()
    scene.acquire("m1", 0, "[0-9]")
    (write,) = scene.partition.acknowledge("m1", [AcknowledgementBatch(0, 9, (1,))], now_ms=0).writes

    assert (write.start_offset, write.state_batches, write.runs) == (10, (), ())
