"""A cluster in memory that a monitor watches: logs of the state topic, log ends, names and settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from sharestate import SharePartitionKey, StateBatch
from sharestate.coordinator import ShareSnapshot, ShareUpdate, StateRecord, encode_record
from sharestate.coordinator.records import RecordType
from sharestate.errors import UnreadableFileError
from sharestate.state_topic import TopicRecord

ORDERS: Final = "AAECAwQFBgcICQoLDA0ODw"
STATE_TOPIC_ID: Final = "_____________________w"
KEY: Final = SharePartitionKey(group_id="g", topic_id=ORDERS, partition=0)


def snapshot(start: int = 0, *batches: tuple[int, int, int, int], epoch: int = 0, **fields: int) -> ShareSnapshot:
    """Return a snapshot; the count is that of its terminal records unless it is given."""
    given = tuple(StateBatch(*batch) for batch in batches)
    defaults = {"state_epoch": 1, "leader_epoch": 0, "create_timestamp_ms": 0, "write_timestamp_ms": 0}
    done = sum(last - first + 1 for first, last, state, _ in given if state in {2, 4})
    numbers: dict[str, Any] = {"delivery_complete_count": done if start >= 0 else -1, **defaults, **fields}
    return ShareSnapshot(
        snapshot_epoch=epoch,
        start_offset=start,
        state_batches=given,
        **numbers,
    )


def update(start: int, *batches: tuple[int, int, int, int], complete: int, leader_epoch: int = 0) -> ShareUpdate:
    """Return an update."""
    return ShareUpdate(
        snapshot_epoch=0,
        leader_epoch=leader_epoch,
        start_offset=start,
        state_batches=tuple(StateBatch(*batch) for batch in batches),
        delivery_complete_count=complete,
    )


class WatchedCluster:
    """
    The cluster.

    Attributes:
        starts: Where the logs of the state topic begin, by partition.
        logs: Their records, those included that are deleted.
        topic_id: The id of the state topic.
        names: The names of other topics.
        ends: The offsets that the logs of topic partitions have, by topic and partition.
        configs: The settings of groups.
        error: What every question is answered with; None for an answer.
        asked: What was asked, in order.
    """

    def __init__(self) -> None:
        """Start with two partitions of the state topic, and one topic."""
        self.starts = {0: 0, 1: 0}
        self.logs: dict[int, list[tuple[bytes, bytes | None]]] = {0: [], 1: []}
        self.topic_id = STATE_TOPIC_ID
        self.names = {ORDERS: "orders"}
        self.ends = {("orders", 0): range(100), ("orders", 1): range(100)}
        self.configs: dict[str, dict[str, str]] = {}
        self.error: Exception | None = None
        self.asked: list[str] = []

    def write(
        self, value: ShareSnapshot | ShareUpdate | None, key: SharePartitionKey = KEY, state_partition: int = 0
    ) -> None:
        """Write a record of the state topic; without a value a tombstone."""
        of_type = RecordType.SHARE_UPDATE if isinstance(value, ShareUpdate) else RecordType.SHARE_SNAPSHOT
        self.logs[state_partition].append(encode_record(StateRecord(key, value, of_type)))

    # ---- what a monitor asks

    def state_offsets(self) -> dict[int, range]:
        """Return the offsets that each partition of the state topic has."""
        self._asked("state offsets")
        return {number: range(self.starts[number], len(log)) for number, log in self.logs.items()}

    def records(self, offsets: Mapping[int, range]) -> Iterator[TopicRecord]:
        """Yield the records of the state topic at *offsets*; each comes a second after the one before."""
        self._asked("records")
        for number, span in offsets.items():
            for offset in span:
                if offset < self.starts[number]:
                    message = "deleted"
                    raise UnreadableFileError(message, "cluster")
                key, value = self.logs[number][offset]
                yield TopicRecord("cluster", None, None, number, offset, 1000 * offset, key, value)

    def topic_names(self) -> dict[str, str]:
        """Return the names of topics by id."""
        self._asked("names")
        return self.names | {self.topic_id: "__share_group_state"}

    def log_offsets(self, keys: list[SharePartitionKey], names: Mapping[str, str]) -> dict[SharePartitionKey, range]:
        """Return the offsets that the logs of topic partitions have."""
        self._asked("log offsets")
        places = {key: (names.get(key.topic_id, ""), key.partition) for key in keys}
        return {key: self.ends[place] for key, place in places.items() if place in self.ends}

    def group_configs(self, group_ids: Iterable[str], *, passes_over: bool) -> dict[str, dict[str, str]]:
        """Return the settings of groups."""
        assert passes_over
        self._asked("configs")
        return {group_id: self.configs[group_id] for group_id in group_ids if group_id in self.configs}

    def _asked(self, what: str) -> None:
        self.asked.append(what)
        if self.error is not None:
            raise self.error
