"""A conversation with a group coordinator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from attrs import evolve

from sharestate.broker.groups import (
    AssignmentOrder,
    ClusterTopic,
    GroupCoordinator,
    GroupCoordinatorSettings,
    GroupEffects,
    GroupProfile,
    PartitionOffset,
    ShareGroupHeartbeat,
    TopicOffsets,
    describe_groups,
)
from sharestate.broker.groups.deletion import group_tombstones, plan_state_deletion
from sharestate.broker.groups.offset_alteration import plan_alteration
from sharestate.broker.groups.offset_deletion import deleted_offset_records, plan_offset_deletion
from sharestate.broker.groups.records import GroupRecord, GroupRecordType
from sharestate.broker.groups.share_group import LEFT_EPOCH
from sharestate.broker.groups.state import expect_empty
from sharestate.conversation.groups.grammar import read_request
from sharestate.conversation.groups.mock_timer import MockTimer
from sharestate.conversation.groups.to_json import (
    described_text,
    error_name,
    group_record_json,
    groups_json,
    initialize_json,
    numbers_json,
)
from sharestate.conversation.server import LineServer
from sharestate.conversation.to_json import error_json
from sharestate.error_codes import ErrorCode
from sharestate.errors import MalformedInputError, ShareStateError
from sharestate.json_lines import Json

BEGIN_MS: Final = 1000
"""The time at which a conversation begins (GroupDriver's clock). [ms]"""

CLIENT_ID: Final = "client"
CLIENT_HOST: Final = "localhost/127.0.0.1"
"""The client of every member (GroupDriver's request context)."""

MAX_SERVED_GROUPS: Final = 2**10
"""The most groups of a conversation. [groups]"""

MAX_SERVED_TOPICS: Final = 2**10
"""The most topics of a conversation. [topics]"""

MAX_ALL_PARTITIONS: Final = 2**16
"""The most partitions that all topics of a conversation may have. [partitions]"""

MAX_LOG: Final = 2**18
"""The most records of a conversation, which a reload replays. [records]"""

_COST_OF_RECORDS: Final = 48
"""What it costs to write or load a character of a record's value, of which a partition has five. [characters]"""

_COST_OF_LOADED: Final = 512
"""What it costs to load a record, however short: 10 µs. [characters]"""

_COST_OF_MEMBER: Final = 512
"""What it costs to assign partitions to a member: 10 µs. [characters]"""

_NO_GROUP: Final = MappingProxyType(
    {
        "raised": {
            "error": ErrorCode.UNKNOWN_SERVER_ERROR.name,
            "exception": "NullPointerException",
            "message": None,
        }
    }
)
"""What Kafka makes of a persister's answer for a group that is gone; like here, it changes nothing (groups 8.4)."""


class GroupConversation(LineServer):
    """One group coordinator under one profile, in the order of a broker."""

    def __init__(self, profile: GroupProfile) -> None:
        """Start without a coordinator, which ``open`` makes."""
        self._profile = profile
        self._coordinator: GroupCoordinator | None = None
        self._now_ms = BEGIN_MS
        self._timers = MockTimer()
        self._group_ids: set[str] = set()
        self._records: list[GroupRecord] = []
        self._log: list[GroupRecord] = []
        self._log_size = 0
        """The size of the values in the log. [characters of base64]"""

    @property
    def coordinator(self) -> GroupCoordinator:
        """
        The coordinator; for reading.

        Raises:
            MalformedInputError: None is open yet.
        """
        if self._coordinator is None:
            message = "no group coordinator is open"
            raise MalformedInputError(message, "op")
        return self._coordinator

    def _answer(self, value: Json) -> Json:
        request = read_request(value)
        self._records = []
        if request.op == "open":
            result = self._open(**request.fields)
        else:
            coordinator = self.coordinator
            self._note_group(request.fields.get("group"))
            result = self._result(coordinator, self._HANDLERS[request.op], request.fields)
        if self._coordinator is not None:
            self._coordinator.committed(self._coordinator.uncommitted_count)
        records = [group_record_json(record) for record in self._records]
        self._count_cost(records)
        return {"result": result, "records": records, "state": None if request.quiet else self._state_json()}

    def _count_cost(self, records: list[Json]) -> None:
        size = sum(len(record["raw"][1] or "") for record in records)
        self._log_size += size
        metadata = GroupRecordType.TARGET_ASSIGNMENT_METADATA
        assigned = {record.key.group_id for record in self._records if record.key.type is metadata}
        members = sum(len(group.members.values) for group in map(self.coordinator.state.find, assigned) if group)
        self.cost += _COST_OF_RECORDS * size + _COST_OF_MEMBER * members

    def _state_json(self) -> Json:
        coordinator = self._coordinator
        if coordinator is None:
            return None
        return {"now": self._now_ms, "groups": groups_json(coordinator.state.tables, self._group_ids)}

    def _note_group(self, group_id: str | None) -> None:
        if group_id is not None:
            if len(self._group_ids) >= MAX_SERVED_GROUPS and group_id not in self._group_ids:
                message = f"a conversation has at most {MAX_SERVED_GROUPS} groups"
                raise MalformedInputError(message, "group")
            self._group_ids.add(group_id)

    def _result(
        self, coordinator: GroupCoordinator, handler: Callable[..., Json], fields: Mapping[str, object]
    ) -> Json:
        if len(self._log) >= MAX_LOG:
            message = f"a conversation has at most {MAX_LOG} records"
            raise MalformedInputError(message, "op")
        try:
            return handler(self, coordinator, **fields)
        except MalformedInputError:
            raise
        except ShareStateError as error:
            return {"raised": error_json(error)}

    def _keep_records(self, effects: GroupEffects[object]) -> None:
        self._records += effects.records
        self._log += effects.records

    def _open(self, *, config: GroupCoordinatorSettings, topics: Mapping[str, tuple[str, int]]) -> Json:
        coordinator = GroupCoordinator(self._profile, config, order=AssignmentOrder.JAVA)
        coordinator.update_topics(_topics(coordinator, topics))
        self._coordinator = coordinator
        self._now_ms = BEGIN_MS
        self._timers = MockTimer()
        self._group_ids = set()
        self._log = []
        self._log_size = 0

    # ---- members

    def _heartbeat(  # noqa: PLR0913 - the fields of a request
        self,
        coordinator: GroupCoordinator,
        *,
        group: str,
        member: str,
        epoch: int,
        topics: tuple[str, ...] | None,
        rack: str | None,
    ) -> Json:
        request = ShareGroupHeartbeat(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            rack_id=rack,
            topic_names=topics,
            client_id=CLIENT_ID,
            client_host=CLIENT_HOST,
        )
        effects = coordinator.heartbeat(request, self._now_ms)
        self._keep_records(effects)
        if epoch == LEFT_EPOCH:
            self._timers.cancel((group, member))
        else:
            timeout_ms = coordinator.state.settings_of(group).session_timeout_ms
            self._timers.schedule((group, member), self._now_ms + timeout_ms)
        response = effects.response
        return {
            "error": ErrorCode.NONE.name,
            "member": response.member_id,
            "epoch": response.member_epoch,
            "interval": response.heartbeat_interval_ms,
            "assignment": None if response.assignment is None else numbers_json(response.assignment),
            "initialize": initialize_json(effects.initialize),
        }

    def _advance(self, coordinator: GroupCoordinator, *, ms: int) -> Json:
        end = self._now_ms + ms
        expired: list[Json] = []
        while (deadline := coordinator.next_deadline_ms()) is not None and deadline <= end:
            due = coordinator.due_together(deadline)
            order = self._timers.due(deadline)
            for effects in coordinator.expire_together(sorted(due, key=lambda timer: order.index(timer[2:])), deadline):
                self._keep_records(effects)
                expired.append(f"session-timeout-{effects.response.group_id}-{effects.response.member_id}")
        self._now_ms = end
        return expired

    def _tasks(self, _coordinator: GroupCoordinator) -> Json:
        return []

    # ---- state of share partitions

    def _initialized(self, coordinator: GroupCoordinator, *, group: str, topics: Mapping[str, tuple[int, ...]]) -> Json:
        if topics and coordinator.state.find(group) is None:
            return dict(_NO_GROUP)
        self._keep_records(coordinator.initialized(group, topics, self._now_ms))
        return None

    def _uninitialized(
        self, coordinator: GroupCoordinator, *, group: str, topics: Mapping[str, tuple[int, ...]]
    ) -> Json:
        self._keep_records(coordinator.uninitialized(group, topics, self._now_ms))

    def _metadata(
        self,
        coordinator: GroupCoordinator,
        *,
        topics: Mapping[str, tuple[str, int]],
        delete: tuple[str, ...],
        cleanup: bool,
    ) -> Json:
        known = coordinator.state.topics.by_name
        for index, name in enumerate(delete):
            if name not in known:
                message = "no topic has this name"
                raise MalformedInputError(message, f"delete[{index}]")
        deleted = [known[name].topic_id for name in delete]
        coordinator.update_topics(_topics(coordinator, topics), deleted)
        if cleanup:
            self._keep_records(coordinator.forget_topics(deleted, self._now_ms))

    # ---- administration

    def _alter(
        self, coordinator: GroupCoordinator, *, group: str, topics: Mapping[str, tuple[PartitionOffset, ...]]
    ) -> Json:
        asked = [TopicOffsets(topic_name=name, offsets=offsets) for name, offsets in topics.items()]
        plan = plan_alteration(coordinator.state, group, asked, self._now_ms)
        self._keep_records(coordinator.apply(plan, self._now_ms))
        altered = plan.response
        return {
            "topics": {
                topic.topic_name: [[number, error_name(code)] for number, code in topic.errors]
                for topic in altered.topics
            },
            "initialize": {
                topic_id: [[number, altered.state_epoch, offset] for number, offset in sorted(offsets.items())]
                for topic_id, offsets in altered.offsets.items()
            },
        }

    def _delete_offsets(self, coordinator: GroupCoordinator, *, group: str, topics: tuple[str, ...]) -> Json:
        plan = plan_offset_deletion(coordinator.state, group, topics)
        self._keep_records(coordinator.apply(plan, self._now_ms))
        errors = [[name, error_name(code)] for name, code in plan.response.errors]
        return {"errors": errors, "delete": numbers_json(plan.response.asked)}

    def _deleted_offsets(self, coordinator: GroupCoordinator, *, group: str, topics: Mapping[str, str]) -> Json:
        records = deleted_offset_records(coordinator.state, group, topics)
        self._keep_records(coordinator.apply(GroupEffects(records=records, response=None), self._now_ms))
        if not records:
            return []
        order = coordinator.state.tables.order.of_topics(topics)
        return [[topics[topic_id], ErrorCode.NONE.name] for topic_id in order]

    def _delete_state(self, coordinator: GroupCoordinator, *, group: str) -> Json:
        plan = plan_state_deletion(coordinator.state, group)
        self._keep_records(coordinator.apply(plan, self._now_ms))
        return numbers_json(plan.response) or None

    def _delete_group(self, coordinator: GroupCoordinator, *, group: str) -> Json:
        found = coordinator.state.group(group)
        expect_empty(found)
        records = group_tombstones(found)
        self._keep_records(coordinator.apply(GroupEffects(records=records, response=None), self._now_ms))

    def _describe(self, coordinator: GroupCoordinator, *, group: str) -> Json:
        return [described_text(each) for each in describe_groups(coordinator, [group])]

    def _reload(self, coordinator: GroupCoordinator) -> Json:
        fresh = GroupCoordinator(self._profile, coordinator.state.settings, order=AssignmentOrder.JAVA)
        fresh.update_topics(coordinator.state.topics.by_id.values())
        fresh.load(self._log, self._now_ms)
        self.cost += _COST_OF_LOADED * len(self._log) + _COST_OF_RECORDS * self._log_size
        self._coordinator = fresh
        self._timers = MockTimer()
        tables = fresh.state.tables
        for group_id in tables.order.of_keys(tables.groups):
            deadline = self._now_ms + fresh.state.settings_of(group_id).session_timeout_ms
            for member_id in tables.order.of_keys(tables.groups.values[group_id].members):
                self._timers.schedule((group_id, member_id), deadline)

    def _state(self, _coordinator: GroupCoordinator) -> Json:
        return None

    _HANDLERS: ClassVar[Mapping[str, Callable[..., Json]]] = MappingProxyType(
        {
            "heartbeat": _heartbeat,
            "initialized": _initialized,
            "uninitialized": _uninitialized,
            "metadata": _metadata,
            "advance": _advance,
            "tasks": _tasks,
            "alter": _alter,
            "delete_offsets": _delete_offsets,
            "deleted_offsets": _deleted_offsets,
            "delete_state": _delete_state,
            "delete_group": _delete_group,
            "describe": _describe,
            "reload": _reload,
            "state": _state,
        }
    )
    """The handler of each operation but ``open``."""


def _topics(coordinator: GroupCoordinator, topics: Mapping[str, tuple[str, int]]) -> tuple[ClusterTopic, ...]:
    """Return the topics that are new or grow; a number of partitions that is not higher changes nothing."""
    known = coordinator.state.topics.by_id
    if len(known) + len(topics) > MAX_SERVED_TOPICS:
        message = f"a conversation has at most {MAX_SERVED_TOPICS} topics"
        raise MalformedInputError(message, "topics")
    changed = []
    for name, (topic_id, count) in topics.items():
        old = known.get(topic_id)
        if old is None:
            changed.append(ClusterTopic(topic_id=topic_id, name=name, partition_count=count))
        elif old.partition_count < count:
            changed.append(evolve(old, partition_count=count))
    counts = {topic.topic_id: topic.partition_count for topic in (*known.values(), *changed)}
    if sum(counts.values()) > MAX_ALL_PARTITIONS:
        message = f"the topics of a conversation have at most {MAX_ALL_PARTITIONS} partitions"
        raise MalformedInputError(message, "topics")
    return tuple(changed)
