"""A shard of the share coordinator whose records are logged as they come, and what tests ask it for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from sharestate import SharePartitionKey, StateBatch
from sharestate.coordinator import (
    COORDINATOR_4_3,
    CoordinatorConfig,
    CoordinatorProfile,
    CoordinatorShard,
    Outcome,
    StoredState,
)

TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
KEY = SharePartitionKey(group_id="g", topic_id=TOPIC_ID, partition=0)
OTHER = SharePartitionKey(group_id="g", topic_id="AAAAAAAAAAEAAAAAAAAAAQ", partition=0)


class Coordinator:
    """A shard whose records are logged as they come."""

    def __init__(
        self,
        profile: CoordinatorProfile = COORDINATOR_4_3,
        *,
        updates_per_snapshot: int = 500,
        has_partition: Callable[[SharePartitionKey], bool] = lambda _: True,
    ) -> None:
        """Make one that stores nothing."""
        config = CoordinatorConfig(updates_per_snapshot=updates_per_snapshot, cold_snapshot_interval_ms=100)
        self.shard = CoordinatorShard(profile, config, has_partition=has_partition)
        self.now_ms = 1000
        self.offsets = count()

    def log(self, outcome: Outcome) -> Outcome:
        """Log the records of *outcome*."""
        for record in outcome.records:
            self.shard.replay(next(self.offsets), record)
        self.shard.commit()
        return outcome

    def begin(self, key: SharePartitionKey = KEY, *, state_epoch: int = 1, start_offset: int = 10) -> Outcome:
        """Initialize a share partition."""
        return self.log(
            self.shard.initialize(key, state_epoch=state_epoch, start_offset=start_offset, now_ms=self.now_ms)
        )

    def read(self, leader_epoch: int) -> Outcome:
        """Read the share partition."""
        return self.log(self.shard.read(KEY, leader_epoch=leader_epoch, now_ms=self.now_ms))

    def write(
        self, *rows: tuple[int, int, int, int], start: int = -1, complete: int = -1, leader: int = 5, state: int = 1
    ) -> Outcome:
        """Write state batches."""
        return self.log(
            self.shard.write(
                KEY,
                state_epoch=state,
                leader_epoch=leader,
                start_offset=start,
                state_batches=[StateBatch(*row) for row in rows],
                delivery_complete_count=complete,
                now_ms=self.now_ms,
            )
        )

    @property
    def state(self) -> StoredState:
        """What is stored of the share partition."""
        return self.shard.states[KEY]


def led(profile: CoordinatorProfile = COORDINATOR_4_3, **options: Any) -> Coordinator:  # noqa: ANN401 - as Coordinator's
    """Return a coordinator with a share partition that starts at 10 and was read with leader epoch 5."""
    coordinator = Coordinator(profile, **options)
    coordinator.begin()
    coordinator.read(5)
    return coordinator
