"""One share coordinator of a conversation, with all that the library leaves to its caller: logs, topics and a clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Final

from sharestate.conversation.coordinator.grammar import Appending, Encoded, Entry
from sharestate.conversation.coordinator.served_shard import Named, Pending, ServedShard, ShardOperation
from sharestate.conversation.coordinator.to_json import entry_json, raised_json, raw_json, record_json, shard_json
from sharestate.coordinator.placement import java_hash, partition_for
from sharestate.coordinator.profiles import CoordinatorConfig, CoordinatorProfile
from sharestate.coordinator.records import StateRecord, decode_record
from sharestate.coordinator.shard import FAILURES, CoordinatorShard, Outcome, malformed_key
from sharestate.error_messages import ERROR_MESSAGES
from sharestate.errors import ErrorCode, MalformedInputError, RecordFormatError, ShareStateError
from sharestate.json_checks import MAX_INT64
from sharestate.json_lines import MAX_LINE, Json
from sharestate.values.records import SharePartitionKey

MAX_LOG: Final = MAX_LINE
"""The size at which a coordinator's log takes no more records. [bytes]"""

_UNABLE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "initialize": "Unable to initialize share group state: ",
        "read": "Unable to read share group state: ",
        "write": "Unable to write share group state: ",
        "delete": "Unable to delete share group state: ",
        "summary": "Unable to read share group state summary: ",
    }
)
"""The beginning of the text of a failure, by operation (ShareCoordinatorService, Kafka 4.3.1)."""

_LOGGING: Final = frozenset({"cold", "initialize", "read", "write"})
"""The operations that write more than tombstones."""


class ServedCoordinator:
    """
    A share coordinator that answers the requests of a conversation.

    Attributes:
        cost: What its requests have cost beside their responses. [characters]
    """

    def __init__(
        self,
        profile: CoordinatorProfile,
        *,
        partitions: int,
        now: int,
        config: Mapping[str, int],
        topics: Mapping[str, int] | None,
    ) -> None:
        """Open a coordinator with empty logs under *profile*."""
        self._profile = profile
        self._config = CoordinatorConfig(
            updates_per_snapshot=config["updates_per_snapshot"], cold_snapshot_interval_ms=config["cold_interval_ms"]
        )
        self._now_ms = now
        self._topics = None if topics is None else dict(topics)
        self._shards = [ServedShard(index, self, self._shard) for index in range(partitions)]
        self._numbers = 0
        self.cost = 0
        self._begin()

    def _shard(self) -> CoordinatorShard:
        return CoordinatorShard(self._profile, self._config, has_partition=self._has_partition)

    def _has_partition(self, key: SharePartitionKey) -> bool:
        return key.partition < (self._topics or {}).get(key.topic_id, 0)

    def _begin(self) -> None:
        self._records: list[Json] = []
        self._events: list[Json] = []
        self._touched: set[int] = set()
        self._named: set[Named] = set()
        self._answers: dict[Pending, Json] = {}

    # ---- requests

    def run(self, op: str, fields: Mapping[str, Any]) -> Json:
        """
        Return the result of a request.

        Raises:
            MalformedInputError: It names a shard that there is not, or asks for too much; nothing was changed.
        """
        if op in _LOGGING and sum(shard.size for shard in self._shards) > MAX_LOG:
            message = f"the log is full: a coordinator's has at most {MAX_LOG} bytes"
            raise MalformedInputError(message, "")
        self._begin()
        return self._run_entries(op, **fields) if op in _UNABLE else self._HANDLERS[op](self, **fields)

    def response(self, result: Json, *, quiet: bool, is_whole: bool = False) -> Json:
        """Return the response with *result* and, unless *quiet*, the state of what was asked or of everything."""
        return {
            "result": result,
            "records": self._records,
            "events": self._events,
            "state": None if quiet else self._state_json(is_whole=is_whole),
        }

    def _state_json(self, *, is_whole: bool) -> Json:
        shards = [shard.state(self._named) for shard in self._shards if is_whole or shard.index in self._touched]
        return {"now": self._now_ms, "topics": self._topics, "shards": shards} if is_whole else shards

    # ---- requests for share partitions

    def _run_entries(self, op: str, *, group: str, entries: Sequence[Entry], append: Appending) -> Json:
        self._expect_room(group, entries)
        return [self._run_entry(op, group, entry, append) for entry in entries]

    def _expect_room(self, group: str, entries: Sequence[Entry]) -> None:
        counts: Counter[tuple[str, int]] = Counter()
        for entry in entries:
            if entry.topic is not None and entry.partition >= 0:
                counts[entry.topic, entry.partition] += len(entry.batches)
        for (topic, partition), count in counts.items():
            if count:
                key = SharePartitionKey(group_id=group, topic_id=topic, partition=partition)
                self._shard_of(group, topic, partition).expect_room(key, count, "entries")

    def _shard_of(self, group: str, topic: str | None, partition: int) -> ServedShard:
        index = 0 if topic is None else partition_for(f"{group}:{topic}:{partition}", len(self._shards))
        return self._shards[index]

    def _run_entry(self, op: str, group: str, entry: Entry, append: Appending) -> Json:
        topic, partition = entry.topic, entry.partition
        shard = self._shard_of(group, topic, partition)
        self._touched.add(shard.index)
        if topic is not None:
            self._named.add((group, topic, partition))

        def run() -> Outcome:
            return malformed_key(topic, partition) or self._ask(op, shard.shard, group, entry)

        def failure(code: ErrorCode, message: str | None) -> Json:
            if message is None:
                message = ERROR_MESSAGES.get(code, self._profile.fenced_state_epoch_message)
            return entry_json(op, topic, partition, Outcome(FAILURES.get(code, code), f"{_UNABLE[op]}{message}"))

        return shard.run(ShardOperation(run, partial(entry_json, op, topic, partition), failure), append)

    def _ask(self, op: str, shard: CoordinatorShard, group: str, entry: Entry) -> Outcome:
        key = SharePartitionKey(group_id=group, topic_id=str(entry.topic), partition=entry.partition)
        match op:
            case "initialize":
                return shard.initialize(
                    key, state_epoch=entry.state_epoch, start_offset=entry.start_offset, now_ms=self._now_ms
                )
            case "read":
                return shard.read(key, leader_epoch=entry.leader_epoch, now_ms=self._now_ms)
            case "write":
                return shard.write(
                    key,
                    state_epoch=entry.state_epoch,
                    leader_epoch=entry.leader_epoch,
                    start_offset=entry.start_offset,
                    state_batches=entry.batches,
                    delivery_complete_count=entry.complete,
                    now_ms=self._now_ms,
                )
            case "delete":
                return shard.delete(key)
            case _:
                return shard.summarize(key)

    # ---- requests for shards

    def _expect_shard(self, shard: int | None) -> None:
        if shard is not None and shard >= len(self._shards):
            message = f"there are {len(self._shards)} shards, counted from 0"
            raise MalformedInputError(message, "shard")

    def _meant(self, shard: int | None) -> Sequence[ServedShard]:
        """Return the shards that a request is for: all of them if it names none."""
        self._expect_shard(shard)
        meant = self._shards if shard is None else [self._shards[shard]]
        self._touched.update(each.index for each in meant)
        return meant

    def _run_job(
        self,
        shard: int | None,
        append: Appending,
        run: Callable[[CoordinatorShard], Outcome],
        answer: Callable[[ServedShard, Outcome], Json] = lambda shard, _: shard_json(shard.index),
    ) -> Json:
        """Run an operation of whole shards."""

        def failure(index: int, code: ErrorCode, _message: str | None) -> Json:
            return shard_json(index, FAILURES.get(code, code))

        return [
            each.run(
                ShardOperation(partial(run, each.shard), partial(answer, each), partial(failure, each.index)), append
            )
            for each in self._meant(shard)
        ]

    def _metadata(
        self,
        *,
        topics: Mapping[str, int],
        delete: Collection[str],
        cleanup: bool,
        shard: int | None,
        append: Appending,
    ) -> Json:
        self._expect_shard(shard)
        known = {**(self._topics or {}), **topics}
        self._topics = {topic: count for topic, count in known.items() if topic not in delete}
        if not delete or not cleanup:
            return None
        return self._run_job(shard, append, lambda each: each.delete_topics(delete))

    def _cold(self, *, shard: int | None, append: Appending) -> Json:
        return self._run_job(shard, append, lambda each: each.snapshot_cold(now_ms=self._now_ms))

    def _redundant(self, *, shard: int | None, append: Appending) -> Json:
        return self._look(shard, append, _redundant_json)

    def _prune(self, *, shard: int | None, fails: bool, append: Appending) -> Json:
        return self._look(shard, append, partial(_pruned_json, fails=fails))

    def _look(self, shard: int | None, append: Appending, answer: Callable[[ServedShard, int | None], Json]) -> Json:
        """Look for the redundant offset of shards, and answer with what it was, however late."""
        offsets = {each.index: each.shard.redundant_offset() for each in self._meant(shard)}
        return self._run_job(shard, append, lambda _: Outcome(), lambda each, _: answer(each, offsets[each.index]))

    def _flush(self, *, shard: int | None, append: Appending) -> Json:
        return self._each(shard, lambda each: each.flush(append))

    def _commit(self, *, shard: int | None, upto: int) -> Json:
        return self._each(shard, lambda each: each.commit(upto))

    def _each(self, shard: int | None, run: Callable[[ServedShard], None]) -> Json:
        meant = self._meant(shard)
        for each in meant:
            run(each)
        return [shard_json(each.index) for each in meant]

    def _restart(self, *, shard: int | None, keep: int | str) -> Json:
        results = []
        for each in self._meant(shard):
            self.cost += each.cost_of_loading
            if keep != "written":
                each.truncate(keep if isinstance(keep, int) else each.committed)
            results.append(each.load())
        return results

    def _fold(self, *, shard: int, records: Sequence[Encoded], start: int) -> Json:
        (meant,) = self._meant(shard)
        meant.put_log(records, start)
        self.cost += meant.cost_of_loading
        return meant.load()

    def _replay(self, *, shard: int | None, offset: int, record: StateRecord | Encoded) -> Json:
        meant = self._meant(shard)
        try:
            given = state_record(record)
        except RecordFormatError as error:
            return raised_json(error)
        batches = () if given.value is None else given.value.state_batches
        for each in meant:
            each.expect_room(given.key, len(batches), "record")
        try:
            for each in meant:
                each.shard.replay(offset, given)
        except ShareStateError as error:
            return raised_json(error)
        return [shard_json(each.index) for each in meant]

    def _log(self, *, shard: int | None) -> Json:
        return [
            {
                "shard": each.index,
                "records": [{"offset": offset, **raw_json(key, value)} for offset, key, value in each.log],
            }
            for each in self._meant(shard)
        ]

    # ---- other requests

    def _advance(self, *, ms: int) -> int:
        if ms > MAX_INT64 - self._now_ms:
            message = "the clock ends at 2^63-1 ms"
            raise MalformedInputError(message, "ms")
        self._now_ms += ms
        return self._now_ms

    def _timeout(self, *, pending: int) -> bool:
        shard = next((shard for shard in self._shards if shard.time_out(pending)), None)
        if shard is not None:
            self._touched.add(shard.index)
        return shard is not None

    def _state(self) -> None:
        """Do nothing: the response shows the state anyway."""

    def _route(self, *, group: str, topic: str, partition: int, partitions: int | None) -> Json:
        text = f"{group}:{topic}:{partition}"
        count = len(self._shards) if partitions is None else partitions
        return {"coordinator_key": text, "hash": java_hash(text), "shard": partition_for(text, count)}

    _HANDLERS: ClassVar[Mapping[str, Callable[..., Json]]] = MappingProxyType(
        {
            "metadata": _metadata,
            "cold": _cold,
            "redundant": _redundant,
            "prune": _prune,
            "flush": _flush,
            "commit": _commit,
            "restart": _restart,
            "fold": _fold,
            "replay": _replay,
            "log": _log,
            "advance": _advance,
            "timeout": _timeout,
            "state": _state,
            "route": _route,
        }
    )
    """The handler of each operation but those for share partitions; it takes the fields by name."""

    # ---- what shards tell

    def show_record(self, shard: int, offset: int, record: StateRecord, encoded: tuple[bytes, bytes | None]) -> None:
        """Show a record that *shard* has produced; *offset* is -1 if it is not replayed."""
        self._records.append({"shard": shard, "offset": offset, **record_json(record), **raw_json(*encoded)})

    def answer(self, pending: Pending, result: Json) -> None:
        """Answer an operation, of this request or of an earlier one."""
        if pending.number is None:
            self._answers[pending] = result
        else:
            self._events.append(["done", pending.number, result])

    def answered(self, pending: Pending) -> Json:
        """Return the answer to an operation of this request, or its number if there is none yet."""
        if pending in self._answers:
            return self._answers.pop(pending)
        pending.number = self._numbers
        self._numbers += 1
        return {"pending": pending.number}


def _redundant_json(shard: ServedShard, offset: int | None) -> Json:
    return {**shard_json(shard.index), "redundant": offset}


def _pruned_json(shard: ServedShard, offset: int | None, *, fails: bool) -> Json:
    """Delete the records below *offset*, or fail to."""
    result = {**_redundant_json(shard, offset), "deleted": None}
    if offset is None or offset == shard.pruned:
        return result
    if fails:
        return result | shard_json(shard.index, ErrorCode.UNKNOWN_SERVER_ERROR)
    shard.pruned = offset
    return result | {"deleted": shard.delete_before(offset)}


def state_record(given: StateRecord | Encoded) -> StateRecord:
    """
    Return a record that a request has given.

    Raises:
        RecordFormatError: It was given as bytes that are no record.
    """
    return given if isinstance(given, StateRecord) else decode_record(given.key, given.value)
