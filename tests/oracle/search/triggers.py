"""
What sets off a known divergence: for each row of ``divergences.json`` with which requests, in which states, it begins.

A trigger looks at nothing but the request and the library's state before and after it. What Kafka has answered is
judged by the row itself.
"""

from __future__ import annotations

from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sharestate.testing.search.divergences import Scene

PERSISTED: Final = frozenset({RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})
"""The record states that a share coordinator stores; ARCHIVING too where there are dead-letter queues."""


def past_a_full_window(scene: Scene) -> bool:
    """Data that was fetched at or below the end offset begins past it (B1')."""
    request = scene.request
    if scene.op != "acquire" or not request["batches"]:
        return False
    return bool(request["fetch_offset"] <= scene.before["end_offset"] < request["batches"][0][0])


def splits_what_is_released(scene: Scene) -> bool:
    """A batch whose release is being written is split by the log start, or by compacted data (B4)."""
    if scene.op not in {"acquire", "log_start"}:
        return False
    released = {
        batch[0]
        for batch in scene.before["batches"]
        if not is_split(batch) and batch[2][0] == "AVAILABLE" and "o" in batch[2][4]
    }
    return any(batch[0] in released and is_split(batch) for batch in scene.after["batches"])


def acknowledges_across_the_start(scene: Scene) -> bool:
    """An entry reaches across the start offset, and no batch begins at or below that (B5)."""
    start, batches = scene.before["start_offset"], scene.before["batches"]
    if scene.op != "acknowledge" or (batches and batches[0][0] <= start):
        return False
    return any(first < start <= last for first, last, _ in scene.request["batches"])


def starts_past_a_split_batch(scene: Scene) -> bool:
    """The last batch that begins at or below the start offset ends below it, and is split (B7)."""
    start = scene.before["start_offset"]
    below = [batch for batch in scene.before["batches"] if batch[0] <= start]
    return bool(below) and is_split(below[-1]) and below[-1][1] < start


def aborted_before_the_first_batch(scene: Scene) -> bool:
    """An aborted log batch begins before the first batch in flight (B8)."""
    request, batches = scene.request, scene.after["batches"]
    if scene.op != "acquire" or request.get("isolation") != "read_committed" or not batches:
        return False
    producers = {producer_id for producer_id, _ in request.get("aborted") or ()}
    return any(
        first < batches[0][0] and attributes["transactional"] and attributes["producer_id"] in producers
        for first, _, *more in request["batches"]
        for attributes in more
    )


def read_after_fencing(scene: Scene) -> bool:
    """The read of the initialization is answered after the share partition was fenced (B14)."""
    return scene.op == "complete" and scene.request.get("write") == "read" and scene.before["lifecycle"] == "FENCED"


def malformed_acknowledgement(scene: Scene) -> bool:
    """An entry is reversed, or has fewer types than records (8.2)."""
    if scene.op != "acknowledge":
        return False
    return any(
        first > last or not types or 1 < len(types) <= last - first for first, last, types in scene.request["batches"]
    )


def malformed_acknowledgement_that_renews(scene: Scene) -> bool:
    """An entry is malformed and one renews, perhaps the same (8.2)."""
    return malformed_acknowledgement(scene) and any(
        AcknowledgeType.RENEW in types for _, _, types in scene.request["batches"]
    )


def unusable_persisted_state(scene: Scene) -> bool:
    """The persisted batches are below the start offset, overlap, are reversed, or in a state that is never stored."""
    answer = scene.request.get("answer")
    if scene.op not in {"initialize", "complete"} or not isinstance(answer, dict) or "error" in answer:
        return False
    batches = answer.get("state_batches", ())
    start = answer.get("start_offset", 0)
    persisted = PERSISTED | {RecordState.ARCHIVING} if scene.profile.has_dead_letter_queue else PERSISTED
    reached = ([start - 1, start - 1], *batches)
    return any(
        first > last or state not in persisted or first <= before[1] or start < 0
        for before, (first, last, state, _) in pairwise(reached)
    )


def is_split(batch: Iterable[Any]) -> bool:
    """Return whether a batch of a response is kept per offset: its fourth item says so."""
    return len(list(batch)) > 3


TRIGGERS: Final[Mapping[str, Callable[[Scene], bool]]] = MappingProxyType(
    {
        "B1'": past_a_full_window,
        "B4": splits_what_is_released,
        "B5": acknowledges_across_the_start,
        "B7": starts_past_a_split_batch,
        "B8": aborted_before_the_first_batch,
        "B14": read_after_fencing,
        "8.2": malformed_acknowledgement,
        "8.2-renew": malformed_acknowledgement_that_renews,
        "orphans": unusable_persisted_state,
    }
)
"""The triggers by the rows' ids."""
