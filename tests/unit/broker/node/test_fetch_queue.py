"""Fetches that wait are found by what they wait for, and by their deadlines (node 7)."""

from __future__ import annotations

import pytest

from sharestate import SharePartitionKey
from sharestate.broker.node.fetch_queue import LogKey, WaitingFetches

ORDERS = LogKey("t", 0)
OF_GROUP = SharePartitionKey(group_id="g", topic_id="t", partition=0)


def test_fetches_are_found_by_each_of_their_keys() -> None:
    """In the order of their arrival, until they are removed."""
    waiting = WaitingFetches[str]()
    waiting.add(2, "two", deadline_ms=10, keys=[ORDERS, OF_GROUP])
    waiting.add(1, "one", deadline_ms=20, keys=[ORDERS])
    assert (waiting.watching(ORDERS), waiting.watching(OF_GROUP)) == ((2, 1), (2,))
    assert (list(waiting), len(waiting), 2 in waiting, waiting[1]) == ([2, 1], 2, True, "one")

    assert waiting.remove(2) == "two"
    assert (waiting.watching(ORDERS), waiting.watching(OF_GROUP), 2 in waiting) == ((1,), (), False)


def test_a_key_may_be_named_twice() -> None:
    """A fetch waits for it once."""
    waiting = WaitingFetches[str]()
    waiting.add(1, "one", deadline_ms=10, keys=[ORDERS, OF_GROUP, ORDERS])

    assert waiting.watching(ORDERS) == (1,)
    assert waiting.remove(1) == "one"
    assert (waiting.watching(ORDERS), len(waiting)) == ((), 0)


@pytest.mark.parametrize(("now_ms", "due"), [(9, None), (10, 2), (99, 2)])
def test_the_earliest_deadline_is_first(now_ms: int, due: int | None) -> None:
    """A fetch is due at its deadline; of two with the same one that with the lower number is first."""
    waiting = WaitingFetches[str]()
    assert (waiting.next_deadline_ms(), waiting.due(now_ms)) == (None, None)
    waiting.add(3, "three", deadline_ms=10, keys=[])
    waiting.add(2, "two", deadline_ms=10, keys=[])
    waiting.add(1, "one", deadline_ms=20, keys=[])

    assert (waiting.next_deadline_ms(), waiting.due(now_ms)) == (10, due)
