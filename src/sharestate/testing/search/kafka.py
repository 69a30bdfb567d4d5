"""
What Kafka's own class is known to do otherwise than the library: its crashes and leaks, which no profile copies.

Each row of ``KAFKA_DIVERGENCES`` begins with what sets it off. That looks at nothing but the request and the library's
state before and after it; what the peer has answered is judged by the row itself.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from sharestate.testing.search.divergences import Divergence
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sharestate.testing.search.divergences import RequestScene

_PERSISTED: Final = frozenset({RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})
"""The record states that a share coordinator stores; ARCHIVING too where there are dead-letter queues."""


def _past_a_full_window(scene: RequestScene) -> bool:
    """Data that was fetched at or below the end offset begins past it, while max_record_locks are in flight."""
    request = scene.request
    if scene.op != "acquire" or not request["batches"]:
        return False
    return bool(request["fetch_offset"] <= scene.before["end_offset"] < request["batches"][0][0])


def _splits_what_is_released(scene: RequestScene) -> bool:
    """The log start, or compacted data, splits a batch whose release is being written."""
    if scene.op not in {"acquire", "log_start"}:
        return False
    released = {
        batch[0]
        for batch in scene.before["batches"]
        if not _is_split(batch) and batch[2][0] == "AVAILABLE" and "o" in batch[2][4]
    }
    return any(batch[0] in released and _is_split(batch) for batch in scene.after["batches"])


def _acknowledges_across_the_start(scene: RequestScene) -> bool:
    """An entry reaches across the start offset, and no batch in flight begins at or below that."""
    start, batches = scene.before["start_offset"], scene.before["batches"]
    if scene.op != "acknowledge" or (batches and batches[0][0] <= start):
        return False
    return any(first < start <= last for first, last, _ in scene.request["batches"])


def _starts_past_a_split_batch(scene: RequestScene) -> bool:
    """The last batch that begins at or below the start offset ends below it, and is kept per offset."""
    start = scene.before["start_offset"]
    below = [batch for batch in scene.before["batches"] if batch[0] <= start]
    return bool(below) and _is_split(below[-1]) and below[-1][1] < start


def _aborted_before_the_first_batch(scene: RequestScene) -> bool:
    """An aborted log batch begins before the first batch in flight, and the fetch reads committed records only."""
    request, batches = scene.request, scene.after["batches"]
    if scene.op != "acquire" or request.get("isolation") != "read_committed" or not batches:
        return False
    producers = {producer_id for producer_id, _ in request.get("aborted") or ()}
    return any(
        first < batches[0][0] and attributes["transactional"] and attributes["producer_id"] in producers
        for first, _, *more in request["batches"]
        for attributes in more
    )


def _read_after_fencing(scene: RequestScene) -> bool:
    """The read of the initialization is answered after the share partition was fenced."""
    return scene.op == "complete" and scene.request.get("write") == "read" and scene.before["lifecycle"] == "FENCED"


def _malformed_acknowledgement(scene: RequestScene) -> bool:
    """An entry of an acknowledgement is reversed, or has fewer types than records."""
    if scene.op != "acknowledge":
        return False
    return any(
        first > last or not types or 1 < len(types) <= last - first for first, last, types in scene.request["batches"]
    )


def _malformed_acknowledgement_that_renews(scene: RequestScene) -> bool:
    """An acknowledgement has an entry that is malformed and one that renews, and both refuse it with the same error."""
    return _malformed_acknowledgement(scene) and any(
        AcknowledgeType.RENEW in types for _, _, types in scene.request["batches"]
    )


def _unusable_persisted_state(scene: RequestScene) -> bool:
    """The persisted batches are below the start offset, overlap, are reversed, or in a state that is never stored."""
    answer = scene.request.get("answer")
    if scene.op not in {"initialize", "complete"} or not isinstance(answer, dict) or "error" in answer:
        return False
    batches = answer.get("state_batches", ())
    start = answer.get("start_offset", 0)
    persisted = _PERSISTED | {RecordState.ARCHIVING} if scene.profile.has_dead_letter_queue else _PERSISTED
    reached = ([start - 1, start - 1], *batches)
    return any(
        first > last or state not in persisted or first <= before[1] or start < 0
        for before, (first, last, state, _) in pairwise(reached)
    )


def _is_split(batch: Iterable[Any]) -> bool:
    """Return whether a batch of a response is kept per offset: its fourth item says so."""
    _first, _last, _cell, *split = batch
    return bool(split)


KAFKA_DIVERGENCES: Final = (
    Divergence(
        id="B1'",
        peer="acquire throws when the window is full and compacted data begins past its end.",
        library="Nothing is acquired.",
        ops=["acquire"],
        is_set_off_by=_past_a_full_window,
        raises=["IllegalArgumentException"],
        library_answers={"result": {"count": 0, "acquired": []}},
        differs_in=["result"],
    ),
    Divergence(
        id="B4",
        peer="Splitting a batch forgets its write that is in flight: its records can be had at once, keep their locks, "
        "and the next acquire of one throws.",
        library="Every record of the batch keeps the write.",
        ops=["acquire", "acknowledge", "advance", "can_acquire", "complete", "next_fetch_offset", "release", "timers"],
        is_set_off_by=_splits_what_is_released,
        raises=["IllegalArgumentException", None],
        later=True,
    ),
    Divergence(
        id="B5",
        peer="acknowledge throws, and what it had begun stays begun.",
        library="The request is refused with INVALID_RECORD_STATE.",
        ops=["acknowledge"],
        is_set_off_by=_acknowledges_across_the_start,
        raises=["NullPointerException"],
        library_answers={"result": {"status": {"error": "INVALID_RECORD_STATE"}}},
        differs_in=["result", "state"],
    ),
    Divergence(
        id="B7",
        peer="The advance of the start offset throws: it does not happen, and nothing goes to the dead-letter queue.",
        library="It happens, and then the records go.",
        ops=["acknowledge", "advance", "complete", "release"],
        is_set_off_by=_starts_past_a_split_batch,
        differs_in=["events", "state"],
    ),
    Divergence(
        id="B8",
        peer="acquire throws, and the records stay locked.",
        library="The part that is in flight is archived.",
        ops=["acquire"],
        is_set_off_by=_aborted_before_the_first_batch,
        raises=["IllegalStateException"],
        library_answers={"result": {}},
        differs_in=["result", "state"],
    ),
    Divergence(
        id="B14",
        peer="The share partition becomes what the read says, as if it had not been fenced.",
        library="It stays fenced, and the initialization fails with LEADER_NOT_AVAILABLE.",
        ops=["complete"],
        is_set_off_by=_read_after_fencing,
        library_answers={"state": {"lifecycle": "FENCED"}},
        differs_in=["events", "state"],
    ),
    Divergence(
        id="8.2",
        peer="acknowledge throws and what it had begun stays begun, or it takes the part that makes sense, or it "
        "is refused for another reason.",
        library="The request is refused with INVALID_REQUEST, and nothing is changed.",
        ops=["acknowledge"],
        is_set_off_by=_malformed_acknowledgement,
        raises=["IllegalArgumentException", "IndexOutOfBoundsException", "NullPointerException", None],
        library_answers={"result": {"status": {"error": "INVALID_REQUEST"}}},
    ),
    Divergence(
        id="8.2-renew",
        peer="Records before the malformed entry are renewed: their lock expires after others with the same deadline.",
        library="Nothing is renewed, and the locks expire in the order of their creation.",
        ops=["advance"],
        is_set_off_by=_malformed_acknowledgement_that_renews,
        differs_in=["events", "state"],
        later=True,
    ),
    Divergence(
        id="orphans",
        peer="The state is taken over, or the initialization fails and leaves what it had read so far.",
        library="The initialization fails, and leaves everything as it was.",
        ops=["complete", "initialize"],
        is_set_off_by=_unusable_persisted_state,
        library_answers={"state": {"lifecycle": "FAILED"}},
    ),
)
"""The rows, for the `divergences` of `compare`; [Kafka's bugs] of the documentation has their ids."""
