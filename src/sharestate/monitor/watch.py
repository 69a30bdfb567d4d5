"""
Reading a cluster in rounds: what the state topic has got, then where logs end, names of topics and settings of groups.

In this order, the lag of a busy cluster is a little too high rather than too low.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from sharestate.monitor.checkpoint import Checkpoint
from sharestate.monitor.following import Follower
from sharestate.monitor.readings import ClusterReading, Reading, reading_of
from sharestate.state_topic.files import TOPIC, TopicRecord
from sharestate.values.records import SharePartitionKey

_ASKED_AGAIN_MS: Final = 60_000
"""How long names of topics and settings of groups are taken to be as they were, if nothing new turns up. [ms]"""


class WatchedCluster(Protocol):
    """What of a cluster is read; ``sharestate.state_topic.cluster.Cluster`` is one."""

    def state_offsets(self) -> dict[int, range]:
        """Return the offsets that each partition of the state topic has."""
        ...

    def records(self, offsets: Mapping[int, range]) -> Iterable[TopicRecord]:
        """Yield the records of the state topic at *offsets*."""
        ...

    def topic_names(self) -> dict[str, str]:
        """Return the names of topics by id."""
        ...

    def log_offsets(self, keys: list[SharePartitionKey], names: Mapping[str, str]) -> dict[SharePartitionKey, range]:
        """Return the offsets that the logs of topic partitions have."""
        ...

    def group_configs(self, group_ids: Iterable[str], *, passes_over: bool) -> dict[str, dict[str, str]]:
        """Return the settings of groups."""
        ...


class Watch:
    """
    A cluster that is read in rounds.

    A round that fails, with an error of the cluster, leaves what it has read; the next one goes on from there.

    Args:
        cluster: The cluster.
        now_ms: Returns the time. [ms since 1970]
        checkpoint: Where to go on, and what to write at the end of each round; None for nowhere.
        say: Takes a line about what an operator should know.
        watched: Returns the records it is given, with their number, and may show how far they are read.
    """

    def __init__(
        self,
        cluster: WatchedCluster,
        now_ms: Callable[[], int],
        checkpoint: Checkpoint | None = None,
        *,
        say: Callable[[str], None],
        watched: Callable[[Iterable[TopicRecord], int], Iterable[TopicRecord]] = lambda records, _: records,
    ) -> None:
        """Go on from the checkpoint, if there is one."""
        self.follower = Follower() if checkpoint is None else checkpoint.load()
        self._cluster = cluster
        self._now_ms = now_ms
        self._checkpoint = checkpoint
        self._say = say
        self._watched = watched
        self._names: dict[str, str] = {}
        self._configs: dict[str, dict[str, str]] = {}
        self._asked_ms = -_ASKED_AGAIN_MS
        self._groups: set[str] = set()

    def round(self) -> Reading:
        """
        Read what is new, and return what is known then.

        Raises:
            ExternalError: The cluster cannot be reached, refuses, or has no state topic.
            UnreadableFileError: Brokers have deleted records of it while they were read.
            StateLogError: The checkpoint cannot be written.
        """
        is_due = self._now_ms() - self._asked_ms >= _ASKED_AGAIN_MS
        if is_due:
            self._take_names()
        offsets = self._cluster.state_offsets()
        self._read(offsets)
        keys = [rebuilt.key for rebuilt, _ in self.follower.share_partitions()]
        if not is_due and not {key.topic_id for key in keys} <= self._names.keys():
            self._take_names()
        groups = {key.group_id for key in keys if key.group_id}
        if is_due or not groups <= self._groups:
            self._configs, self._groups = self._cluster.group_configs(sorted(groups), passes_over=True), groups
        logs = self._cluster.log_offsets(keys, self._names)
        self.follower.take_logs(logs)
        if is_due:
            self._asked_ms = self._now_ms()
        if self._checkpoint is not None:
            self._checkpoint.save(self.follower)
        return reading_of(self.follower, ClusterReading(offsets, logs, self._names, self._configs), self._now_ms())

    def _take_names(self) -> None:
        self._names = self._cluster.topic_names()
        state_topic = next((topic_id for topic_id, name in self._names.items() if name == TOPIC), None)
        changed = self.follower.follow(state_topic)
        if changed is not None:
            self._say(changed)

    def _read(self, offsets: Mapping[int, range]) -> None:
        missed_before = self._missed_count()
        restarts_before = self.follower.restarts
        spans = self.follower.wanted(offsets)
        if self._missed_count() > missed_before:
            missed = self._missed_count() - missed_before
            self._say(
                f"brokers have deleted {missed} records of the state topic before they were read: "
                "counters lack what those said"
            )
        if self.follower.restarts > restarts_before:
            self._say("the log of a partition of the state topic ends before what was read of it; it is read again")
        for logged in self._watched(self._cluster.records(spans), sum(map(len, spans.values()))):
            self.follower.add(logged)
        self.follower.caught_up(offsets)

    def _missed_count(self) -> int:
        return sum(followed.missed_count for followed in self.follower.partitions.values())
