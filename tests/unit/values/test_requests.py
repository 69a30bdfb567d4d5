"""What goes to the persister and comes back from there."""

import pytest
from attrs.exceptions import FrozenInstanceError

from sharestate import MalformedInputError, PersistedState, StateBatch
from sharestate.values.requests import state_batches


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
        (StateBatch(0, 4, 128, 1), "state"),
        (StateBatch(0, 4, -129, 1), "state"),
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


def test_single_records_become_state_batches() -> None:
    """Each offset gets a batch of its own, in order."""
    made = list(state_batches(range(5, 8), [2, 0, 4], [1, 1, 3]))

    assert made == [StateBatch(5, 5, 2, 1), StateBatch(6, 6, 0, 1), StateBatch(7, 7, 4, 3)]
    assert all(type(batch) is StateBatch for batch in made)
