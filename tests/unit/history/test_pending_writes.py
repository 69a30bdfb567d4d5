"""The writes of a replayed share partition that have no answer yet, and which of them one that was observed is."""

from __future__ import annotations

from typing import Final

from sharestate import SharePartitionKey, StateBatch, WriteShareGroupState
from sharestate.history.pending_writes import PendingWrites
from sharestate.history.replay_state import are_same, content_of

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


def test_a_write_of_the_leader_before_is_answered_once() -> None:
    """Then it is forgotten: another one with the same content is not that leader's."""
    writes = PendingWrites()
    write = WriteShareGroupState(KEY, 3, 0, 5, 1, 7, ())
    writes.add([write])

    assert writes.abandon() == 1
    assert [writes.is_abandoned(content_of(write)) for _ in range(2)] == [True, False]
