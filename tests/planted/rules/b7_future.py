"""B7: where Kafka's advance of the start offset throws, the member waits for its answer for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharestate.conversation.scripted_answers import ScriptedAnswers
from tests.planted.putting import put

if TYPE_CHECKING:
    from sharestate.json_lines import Json
    from sharestate.partition.share_partition import SharePartition
    from sharestate.values.requests import WriteShareGroupState

_send = ScriptedAnswers.send


def throws(partition: SharePartition) -> bool:
    """Return whether Kafka's advance would throw."""
    below = [batch for batch in partition.batches() if batch.first_offset <= partition.start_offset]
    return bool(below) and below[-1].is_split and below[-1].last_offset < partition.start_offset


def send(self: ScriptedAnswers, write: WriteShareGroupState, future: int | None) -> Json:
    """Send a write, and return the status of *future*."""
    lost = future is not None and throws(self._partition)
    status = _send(self, write, future)
    return "pending" if lost and status == "ok" else status


def plant() -> None:
    """Put the old rule back."""
    put(ScriptedAnswers, "send", send)
