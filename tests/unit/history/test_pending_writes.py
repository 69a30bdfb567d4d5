"""The writes of a replayed share partition that have no answer yet, and which of them one that was observed is."""

from __future__ import annotations

from itertools import product
from typing import Final

import pytest

from sharestate import SharePartitionKey, StateBatch, WriteShareGroupState
from sharestate.history.pending_writes import PendingWrites
from sharestate.history.replay_state import are_same, are_same_batches, content_of
from sharestate.values.requests import StateBatches, StateRun

KEY: Final = SharePartitionKey(group_id="g", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)


def test_writes_are_the_same_but_for_what_was_read_late() -> None:
    """The start offset and the complete count may have gone on; epochs and state batches have not."""
    batches = (StateBatch(0, 4, 2, 1), StateBatch(5, 5, 0, 1))
    write = (0, 5, 1, 7, batches)

    assert are_same((3, 2, 1, 7, batches), write, is_head_late=True)
    assert not are_same((3, 2, 1, 8, batches), write, is_head_late=True)
    assert not are_same((3, 2, 0, 7, batches), write, is_head_late=True)
    assert not are_same((0, 5, 1, 7, batches[:1]), write, is_head_late=True)
    assert not are_same((0, 4, 1, 7, batches), write, is_head_late=False)
    assert not are_same((0, 5, 1, 8, batches), write, is_head_late=False)


@pytest.mark.parametrize("is_head_late", [False, True])
def test_state_batches_may_come_in_any_form(is_head_late: bool) -> None:  # noqa: FBT001 - a parameter
    """One by one or column by column, in one run or several, as a tuple or a list."""
    batches = [StateBatch(0, 4, 2, 1), StateBatch(5, 5, 0, 1)]
    first, second = (StateRun.of_batches([batch]) for batch in batches)
    forms = (tuple(batches), batches, StateBatches([StateRun.of_batches(batches)]), StateBatches([first, second]))

    for one, other in product(forms, forms):
        assert are_same((0, 5, 1, 7, one), (0, 5, 1, 7, other), is_head_late=is_head_late)


def test_every_run_of_state_batches_counts() -> None:
    """Two that differ in the last run only are not the same."""
    first, second, third = (StateRun.of_batches([StateBatch(at, at, 2, 1)]) for at in range(3))

    assert are_same_batches(StateBatches([first, second]), StateBatches([first, second]))
    assert not are_same_batches(StateBatches([first, second]), StateBatches([first, third]))


def test_a_write_of_the_leader_before_is_answered_once() -> None:
    """Then it is forgotten: another one with the same content is not that leader's."""
    writes = PendingWrites()
    write = WriteShareGroupState(KEY, 3, 0, 5, 1, 7, ())
    writes.add([write])

    assert writes.abandon() == 1
    assert [writes.is_abandoned(content_of(write)) for _ in range(2)] == [True, False]
