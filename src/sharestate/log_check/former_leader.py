"""What a share partition still writes after its broker has dropped it."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from sharestate.partition.share_partition import SharePartition
from sharestate.values.effects import Effects
from sharestate.values.requests import WriteShareGroupState


@frozen
class FormerLeader:
    """
    A share partition that its broker has dropped, as its group had no session left, and that others go on to hold.

    The next member to come makes the broker lead a new one, with the state that it reads. What the first one was
    to release is written after that, and its locks go on to expire: both leaders have the same epochs, so it is taken.

    Source:
        SharePartitionManager, the listener of sessions; SharePartition.releaseAcquisitionLockOnTimeout (Kafka 4.4.0).
        Seen in runs of 4.4.0: ten locks expired a second after the next leader had read the state, and what a lost
        member had was released 3 ms after that.
    """

    partition: SharePartition
    """The share partition, which nothing is done to any more."""

    now_ms: int
    """The time of its last command. [ms]"""

    releases_until_us: int
    """Until when what it has released may be written: as long as a write waits to be sent. [µs since 1970]"""

    def writes(self, at_us: int) -> Iterator[tuple[FormerLeader, WriteShareGroupState]]:
        """Yield what it may write at a time, each with what becomes of it: a lock expires, or a member is released."""
        now_ms = max(self.now_ms, at_us // 1000)
        expiring = self.partition.copy()
        effects: Effects | None = Effects()
        while effects is not None and not effects.writes:
            effects = expiring.expire_next(now_ms=now_ms)
        if effects is not None:
            yield evolve(self, partition=expiring, now_ms=now_ms), effects.writes[0]
        if at_us > self.releases_until_us:
            return
        members = {run.member_id: None for batch in self.partition.batches() for run in batch.runs if run.member_id}
        for member_id in members:
            released = self.partition.copy()
            effects = released.release(member_id, now_ms=now_ms)
            if effects.writes:
                yield evolve(self, partition=released, now_ms=now_ms), effects.writes[0]
