"""
What a group coordinator's commands cost, with few members and partitions and with many: ``python -m bench.groups``.

Each figure is CPU time for one command, the least of several rounds; beside it is its ratio to the same one in the
smallest group. A heartbeat takes the same time in any group, and so does a member that comes and goes while the target
assignment may not be made anew; making it takes what there is to assign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count, cycle
from typing import Final, NamedTuple

from bench.clock import cpu_time
from bench.tables import table
from sharestate.broker.groups import (
    ClusterTopic,
    GroupCoordinator,
    GroupCoordinatorSettings,
    HeartbeatResponse,
    ShareGroupHeartbeat,
)


class Size(NamedTuple):
    """
    How large a group is.

    Attributes:
        members: Its members; one of them comes and goes.
        partitions: The partitions of its topics, of all of them together.
    """

    members: int
    partitions: int


SIZES: Final = tuple(Size(members, partitions) for partitions in (100, 1_000) for members in (20, 200, 1_000))
TOPIC_IDS: Final = (
    "AAECAwQFBgcICQoLDA0ODw",
    "-_-_-_-_-_-_-_-_-_-_-A",
    "IoNTqcc65nJltKVVhKBPPQ",
    "KHnhHEAbRvOK4NGrXOcIGQ",
)
TOPICS: Final = {f"topic-{number}": topic_id for number, topic_id in enumerate(TOPIC_IDS)}
SETTINGS: Final = GroupCoordinatorSettings(max_size=1_000)
"""As many members as a broker may be told to allow (``group.share.max.size``, ShareGroupConfig)."""

INTERVAL_MS: Final = 1_000
"""Between two assignments (``group.share.assignment.interval.ms``, GroupCoordinatorConfig, Kafka 4.4.0). [ms]"""

TIMES: Final = 20
"""How often a command is done for one figure."""

ROUNDS: Final = 5
LEAVE_EPOCH: Final = -1
"""With which a member leaves."""


class Group:
    """
    A group with its coordinator, whose members have what they are to have.

    Attributes:
        coordinator: The coordinator.
        now_ms: The time. [ms]
    """

    def __init__(self, size: Size) -> None:
        """Have so many members join, and be given so many partitions."""
        self.coordinator = GroupCoordinator(settings=SETTINGS)
        self.now_ms = INTERVAL_MS
        numbers = range(size.partitions // len(TOPICS))
        self.coordinator.update_topics(
            ClusterTopic(topic_id=topic_id, name=name, partition_count=len(numbers))
            for name, topic_id in TOPICS.items()
        )
        member_ids = [f"member-{number}" for number in range(size.members - 1)]
        for member_id in member_ids:
            self.join(member_id)
        self.coordinator.initialized("g", dict.fromkeys(TOPIC_IDS, numbers), self.now_ms)
        self.now_ms += INTERVAL_MS
        # The first round makes the assignment, the second one finds that all members have it.
        epochs = dict.fromkeys(member_ids, 0)
        for _ in range(2):
            epochs = {member_id: self._beat(member_id, epoch).member_epoch for member_id, epoch in epochs.items()}
        # As many as a small group has: what is in the processor's cache is not what is measured.
        self._heartbeats = cycle(
            ShareGroupHeartbeat(group_id="g", member_id=member_id, member_epoch=epochs[member_id])
            for member_id in member_ids[: min(SIZES).members - 1]
        )
        self._newcomers = (f"newcomer-{number}" for number in count())

    def _beat(self, member_id: str, epoch: int, topic_names: tuple[str, ...] | None = None) -> HeartbeatResponse:
        request = ShareGroupHeartbeat(group_id="g", member_id=member_id, member_epoch=epoch, topic_names=topic_names)
        return self.coordinator.heartbeat(request, self.now_ms).response

    def join(self, member_id: str) -> HeartbeatResponse:
        """Have a member join that subscribes to all topics."""
        return self._beat(member_id, 0, tuple(TOPICS))

    def heartbeat(self) -> HeartbeatResponse:
        """Have the next member say that it is there; nothing changes."""
        return self.coordinator.heartbeat(next(self._heartbeats), self.now_ms).response

    def join_and_leave(self) -> None:
        """Have one more member come and go, while no assignment may be made."""
        member_id = next(self._newcomers)
        self.join(member_id)
        self._beat(member_id, LEAVE_EPOCH)

    def assignment(self) -> None:
        """Have one more member come when an assignment may be made, and go."""
        self.now_ms += INTERVAL_MS
        self.join_and_leave()


COMMANDS: Final[Mapping[str, Callable[[Group], object]]] = {
    "heartbeat": Group.heartbeat,
    "join and leave": Group.join_and_leave,
    "join, assign and leave": Group.assignment,
}
"""What is timed; heartbeats come first, as the others leave the group without the assignment that it is to have."""


def microseconds(size: Size, rounds: int) -> dict[str, float]:
    """Return the least CPU time of each command in a group of *size*, by its name. [µs]"""
    group = Group(size)
    return {
        name: min(cpu_time([partial(command, group)] * TIMES) for _ in range(rounds)) * 1e6 / TIMES
        for name, command in COMMANDS.items()
    }


def report(rounds: int = ROUNDS) -> Iterator[str]:
    """Yield the lines of a table."""
    measured = {size: microseconds(size, rounds) for size in SIZES}
    smallest = measured[SIZES[0]]
    rows = [
        (
            f"{size.members:,}",
            f"{size.partitions:,}",
            *(cell for name, time in times.items() for cell in (f"{time:.1f}", f"{time / smallest[name]:.2f}")),
        )
        for size, times in measured.items()
    ]
    headings = (heading for name in COMMANDS for heading in (f"{name}, µs", "ratio"))
    yield from table(("members", "partitions", *headings), rows)


if __name__ == "__main__":
    print("\n".join(report()))  # noqa: T201 - what it is for
