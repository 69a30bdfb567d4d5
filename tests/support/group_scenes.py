"""Shorthand for share groups in tests: a coordinator with one topic, and who does what."""

from __future__ import annotations

from typing import Final

from sharestate.broker.groups import (
    GROUPS_4_4,
    ClusterTopic,
    GroupCoordinator,
    GroupCoordinatorSettings,
    GroupEffects,
    GroupProfile,
    HeartbeatResponse,
    ShareGroupHeartbeat,
)

T1: Final = "AAECAwQFBgcICQoLDA0ODw"
T2: Final = "s2cR6zkGp8hgPXHUCeelTQ"
"""Ids of topics."""

NO_INTERVAL: Final = GroupCoordinatorSettings(assignment_interval_ms=0)
"""Settings under which each epoch is assigned at once."""


def coordinator_of(
    profile: GroupProfile = GROUPS_4_4, settings: GroupCoordinatorSettings = NO_INTERVAL, partitions: int = 2
) -> GroupCoordinator:
    """Return a coordinator in a cluster with the topic t1."""
    coordinator = GroupCoordinator(profile, settings)
    coordinator.update_topics([ClusterTopic(topic_id=T1, name="t1", partition_count=partitions)])
    return coordinator


def beat(
    coordinator: GroupCoordinator,
    member: str = "A",
    epoch: int = 0,
    topics: tuple[str, ...] | None = None,
    now_ms: int = 1000,
) -> GroupEffects[HeartbeatResponse]:
    """Send a heartbeat to the group g; who joins subscribes to t1 unless *topics* says otherwise."""
    names = ("t1",) if topics is None and not epoch else topics
    request = ShareGroupHeartbeat(group_id="g", member_id=member, member_epoch=epoch, topic_names=names)
    return coordinator.heartbeat(request, now_ms)


def types_of(effects: GroupEffects[object]) -> list[int]:
    """Return the types of the records, negative for tombstones."""
    return [record.key.type * (-1 if record.value is None else 1) for record in effects.records]


def with_initialized_member(profile: GroupProfile = GROUPS_4_4) -> GroupCoordinator:
    """Return a coordinator with the member A of g, at epoch 3 with both partitions of t1."""
    coordinator = coordinator_of(profile)
    beat(coordinator)
    coordinator.initialized("g", {T1: [0, 1]}, 1000)
    beat(coordinator, epoch=coordinator.state.group("g").epoch)
    return coordinator
