"""
Beginning a conversation with a persisted state, in the place of the requests that led to it.

A difference often takes records that were delivered before, or archived, and a start offset beyond some: a dozen
requests bring that about, or one initialization.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sharestate.testing.search.asked import Asked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SETTINGS: Final = frozenset({"configure", "default_answer", "default_dlq_answer"})
"""The operations whose effect no persisted state has."""

DELIVERY_STATES: Final = {"AVAILABLE": 0, "ACQUIRED": 0, "ACKNOWLEDGED": 2, "ARCHIVING": 3, "ARCHIVED": 4}
"""What a record is persisted as: one that is acquired as what the next leader makes of it."""


def starting_later(requests: Sequence[Asked], states: Sequence[dict[str, Any] | None]) -> Iterator[list[Asked]]:
    """
    Yield *requests* with an initialization in the place of the first ones, the shortest list first.

    There is none where the conversation does not begin with a persister's answer, which the peer may not look at.

    Args:
        requests: The conversation.
        states: The library's state after each of them.
    """
    if not any(each.request["op"] == "initialize" and "answer" in each.request for each in requests[:2]):
        return
    for index in range(len(requests) - 2, 1, -1):
        state = states[index]
        if state is None or state["lifecycle"] != "ACTIVE":
            continue
        settings = [each for each in requests[1 : index + 1] if each.request["op"] in SETTINGS]
        if len(settings) >= index - 1:
            continue
        answer = {"state_epoch": state["state_epoch"], "start_offset": state["start_offset"]}
        for batches in ([], persisted(state)):
            request = {"op": "initialize", "answer": {**answer, "state_batches": batches}}
            begin = Asked(requests[1].place, {**requests[1].request, **request})
            yield [requests[0], *settings, begin, *requests[index + 1 :]]


def persisted(state: dict[str, Any]) -> list[list[int]]:
    """
    Return what a persister would have of *state*, that of a response, as the batches of a read.

    >>> cell = ["ACQUIRED", 2, "m1", 100, ""]
    >>> persisted({"start_offset": 3, "batches": [[0, 4, cell], [5, 6, [[5, 5, cell], [6, 6, cell]], "per_offset"]]})
    [[3, 4, 0, 2], [5, 5, 0, 2], [6, 6, 0, 2]]
    """
    start = state["start_offset"]
    ranges: list[list[Any]] = []
    for first, last, *rest in state["batches"]:
        ranges += rest[0] if len(rest) > 1 else [[first, last, rest[0]]]
    return [
        [max(first, start), last, DELIVERY_STATES[cell[0]], cell[1]] for first, last, cell in ranges if last >= start
    ]
