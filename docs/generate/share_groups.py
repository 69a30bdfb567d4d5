"""The drawing of a share group's life: where each command leads to, as the group coordinator carries it out."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from generate.drawing import Point, StateDiagram
from sharestate import ShareStateError
from sharestate.broker.groups import (
    ClusterTopic,
    GroupCoordinator,
    GroupState,
    PartitionOffset,
    ShareGroupHeartbeat,
    TopicOffsets,
    alter_offsets,
    delete_groups,
    groups_deleted,
)

GROUP: Final = "g"
TOPIC: Final = ClusterTopic(topic_id="AAECAwQFBgcICQoLDA0ODw", name="t", partition_count=1)

NONE: Final = "no group"
PLACES: Final = {
    NONE: Point(150, 50),
    GroupState.EMPTY.value: Point(450, 250),
    GroupState.STABLE.value: Point(750, 50),
}

Command = Callable[[GroupCoordinator], object]


def _heartbeat(member_id: str, epoch: int) -> Command:
    beat = ShareGroupHeartbeat(group_id=GROUP, member_id=member_id, member_epoch=epoch, topic_names=(TOPIC.name,))
    return lambda coordinator: coordinator.heartbeat(beat, now_ms=0)


def _alter(coordinator: GroupCoordinator) -> object:
    wanted = TopicOffsets(topic_name=TOPIC.name, offsets=(PartitionOffset(0, 0),))
    return alter_offsets(coordinator, GROUP, [wanted], now_ms=0)


def _fall_silent(coordinator: GroupCoordinator) -> object:
    return coordinator.expire_next(coordinator.next_deadline_ms() or 0)


def _delete(coordinator: GroupCoordinator) -> object:
    return groups_deleted(coordinator, delete_groups(coordinator, [GROUP], now_ms=0).response, {}, now_ms=0)


BEGINNINGS: Final[MappingProxyType[str, tuple[Command, ...]]] = MappingProxyType(
    {NONE: (), GroupState.EMPTY.value: (_alter,), GroupState.STABLE.value: (_heartbeat("A", 0),)}
)
"""What leads to each state."""

COMMANDS: Final[MappingProxyType[str, Command]] = MappingProxyType(
    {
        "a member joins": _heartbeat("B", 0),
        "the last member leaves": _heartbeat("A", -1),
        "the last session ends": _fall_silent,
        "offsets are altered": _alter,
        "it is deleted": _delete,
    }
)
"""What may happen to a group, by its label."""


def drawing() -> str:
    """Return the drawing."""
    grouped = defaultdict(list)
    for arrow, label in _arrows():
        grouped[arrow].append(label)
    return StateDiagram(Point(880, 290), PLACES, grouped).svg()


def _arrows() -> Iterator[tuple[tuple[str, str], str]]:
    for state, beginning in BEGINNINGS.items():
        for label, command in COMMANDS.items():
            coordinator = GroupCoordinator()
            coordinator.update_topics([TOPIC])
            for each in beginning:
                each(coordinator)
            with suppress(ShareStateError):  # what is refused leads nowhere
                command(coordinator)
            if _state_of(coordinator) != state:
                yield (state, _state_of(coordinator)), label


def _state_of(coordinator: GroupCoordinator) -> str:
    group = coordinator.state.find(GROUP)
    return NONE if group is None else group.state.value
