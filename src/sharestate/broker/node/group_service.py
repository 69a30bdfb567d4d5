"""
The group coordinator of a node: heartbeats and administration, with the persister that has the state.

What it writes is committed at once. An answer that needs the persister waits for it.

Source:
    GroupCoordinatorService (Kafka 4.4).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeAlias, TypeVar

from sharestate.broker.groups import (
    LATEST_GROUPS,
    AlteredOffsets,
    ClusterTopic,
    GroupCoordinator,
    GroupDeletion,
    GroupEffects,
    GroupOperation,
    OffsetDeletion,
    OffsetDescription,
    ShareGroupHeartbeat,
    administration_error,
    alter_offsets,
    delete_groups,
    delete_offsets,
    describe_groups,
    describe_offsets,
    described_offsets,
    groups_deleted,
    heartbeat_error,
    offsets_altered,
    offsets_deleted,
)
from sharestate.broker.groups.profiles import ALL_GROUPS
from sharestate.broker.groups.records import GroupRecord, GroupRecordKey
from sharestate.broker.node.group_requests import (
    AlterShareGroupOffsetsRequest,
    DeleteGroupsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    GroupRequest,
    GroupResponse,
    ShareGroupDescribeRequest,
)
from sharestate.broker.node.log_service import LogService
from sharestate.broker.node.node_config import NodeConfig
from sharestate.errors import ErrorCode, MalformedInputError, ShareStateError
from sharestate.persister.requests import DeleteStateParameters, InitializeStateParameters, Parameters, Result

R = TypeVar("R")

TakeResult: TypeAlias = Callable[[Future[Any], int], None]
"""Takes what a persister has answered, and the time."""

Ask: TypeAlias = Callable[[Parameters[Any, Any], TakeResult], None]
"""Sends a request to a persister."""


class GroupService:
    """
    The share groups of a node.

    Args:
        config: The node's settings.
        logs: The topics and logs of the node.
        ask: Sends a request to the persister.
        answer: Takes the number of a request and its answer.

    Attributes:
        coordinator: The group coordinator, to look at.
    """

    def __init__(
        self,
        config: NodeConfig,
        logs: LogService,
        ask: Ask,
        answer: Callable[[int, GroupResponse], None],
    ) -> None:
        """Begin without groups."""
        # The KIP says nothing of the coordinator's bugs.
        self._profile = ALL_GROUPS.get(config.profile.name, LATEST_GROUPS.healed)
        self._order = config.assignment_order
        self._logs = logs
        self._ask = ask
        self._answer = answer
        self._records: dict[GroupRecordKey, GroupRecord] = {}
        self.coordinator = GroupCoordinator(self._profile, config.group.coordinator, order=self._order)

    def take(self, number: int, request: GroupRequest, now_ms: int) -> None:
        """
        Take *request*; its answer comes now, or when the persister has answered (node 10).

        Raises:
            MalformedInputError: A part of it is of the wrong type or out of bounds; nothing was changed.
        """
        try:
            match request:
                case ShareGroupHeartbeat():
                    self._heartbeat(number, request, now_ms)
                case ShareGroupDescribeRequest():
                    self._answer(number, GroupResponse(result=describe_groups(self.coordinator, request.group_ids)))
                case DescribeShareGroupOffsetsRequest():
                    self._describe_offsets(number, request)
                case AlterShareGroupOffsetsRequest():
                    self._alter_offsets(number, request, now_ms)
                case DeleteShareGroupOffsetsRequest():
                    self._delete_offsets(number, request, now_ms)
                case DeleteGroupsRequest():
                    self._delete_groups(number, request, now_ms)
        except MalformedInputError:
            raise
        except ShareStateError as refusal:
            self._answer(number, GroupResponse(refusal.code, refusal.message))

    def next_deadline_ms(self) -> int | None:
        """Return when the next member is taken out because it is silent; None if there are no members. [ms]"""
        return self.coordinator.next_deadline_ms()

    def expire_next(self, now_ms: int) -> bool:
        """Take out the member that has been silent longest; return False if none has been for too long."""
        effects = self.coordinator.expire_next(now_ms)
        if effects is not None:
            self._commit(effects)
        return effects is not None

    def update_topics(self, now_ms: int) -> None:
        """
        Bring the coordinator's topics up to date.

        Complexity:
            O(n) in the topics.
        """
        known, topics = self.coordinator.state.topics.by_id, self._logs.topics
        changed = [
            ClusterTopic(topic_id=topic.topic_id, name=topic.name, partition_count=topic.partition_count)
            for topic in topics
            if topic.topic_id not in known or known[topic.topic_id].partition_count != topic.partition_count
        ]
        deleted = [topic_id for topic_id in known if topics.by_id(topic_id) is None]
        self.coordinator.update_topics(changed, deleted)
        if deleted:
            self._commit(self.coordinator.forget_topics(deleted, now_ms))

    def restart(self, now_ms: int) -> None:
        """Begin again with what was written, and the settings and topics that the cluster knows."""
        before = self.coordinator.state
        self.coordinator = GroupCoordinator(self._profile, before.settings, order=self._order)
        for group_id, settings in before.group_settings.items():
            self.coordinator.configure(settings, group_id)
        self.update_topics(now_ms)
        self.coordinator.load(self._records.values(), now_ms)

    # ---- by request

    def _heartbeat(self, number: int, request: ShareGroupHeartbeat, now_ms: int) -> None:
        if (error := heartbeat_error(request)) is not None:
            self._answer(number, GroupResponse(error.error_code, error.message))
            return
        effects = self.coordinator.heartbeat(request, now_ms)
        self._answer(number, GroupResponse(result=self._commit(effects)))
        if effects.initialize is not None:
            self._ask(effects.initialize, partial(self._take_initialization, effects.initialize))

    def _take_initialization(self, request: InitializeStateParameters, future: Future[Any], now_ms: int) -> None:
        self._commit(self.coordinator.initialization_answered(request, _result(future), now_ms))

    def _describe_offsets(self, number: int, request: DescribeShareGroupOffsetsRequest) -> None:
        if self._is_refused(number, GroupOperation.DESCRIBE_OFFSETS, request.group_id):
            return
        description = describe_offsets(self.coordinator, request.group_id, request.topics)
        if description.request is None:
            result = described_offsets(description, None)
            self._answer(number, GroupResponse(result=result))
        else:
            self._ask(description.request, partial(self._take_summary, number, description))

    def _take_summary(self, number: int, description: OffsetDescription, future: Future[Any], _: int) -> None:
        summary = _result(future)
        if summary is None:
            self._answer(number, GroupResponse(ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        ends = {
            (topic.topic_id, each.partition): log.high_watermark
            for topic in summary.topics
            for each in topic.partitions
            if (log := self._logs.log(topic.topic_id, each.partition)) is not None
        }
        result = described_offsets(description, summary, ends)
        self._answer(number, GroupResponse(result=result))

    def _alter_offsets(self, number: int, request: AlterShareGroupOffsetsRequest, now_ms: int) -> None:
        if self._is_refused(number, GroupOperation.ALTER_OFFSETS, request.group_id):
            return
        effects = alter_offsets(self.coordinator, request.group_id, request.topics, now_ms)
        altered = self._commit(effects)
        if effects.initialize is None:
            self._answer(number, GroupResponse(result=altered))
        else:
            self._ask(effects.initialize, partial(self._take_alteration, number, altered, effects.initialize))

    def _take_alteration(
        self,
        number: int,
        altered: AlteredOffsets,
        request: InitializeStateParameters,
        future: Future[Any],
        now_ms: int,
    ) -> None:
        effects = offsets_altered(self.coordinator, altered, request, _result(future), now_ms)
        self._answer(number, GroupResponse(result=self._commit(effects)))

    def _delete_offsets(self, number: int, request: DeleteShareGroupOffsetsRequest, now_ms: int) -> None:
        if self._is_refused(number, GroupOperation.DELETE_OFFSETS, request.group_id):
            return
        effects = delete_offsets(self.coordinator, request.group_id, request.topic_names, now_ms)
        deletion = self._commit(effects)
        if not effects.delete:
            self._answer(number, GroupResponse(result=deletion))
        for asked in effects.delete:  # there is one, for there is one group
            self._ask(asked, partial(self._take_offset_deletion, number, deletion, asked))

    def _take_offset_deletion(
        self, number: int, deletion: OffsetDeletion, request: DeleteStateParameters, future: Future[Any], now_ms: int
    ) -> None:
        effects = offsets_deleted(self.coordinator, deletion, request, _result(future), now_ms)
        self._answer(number, GroupResponse(result=self._commit(effects)))

    def _delete_groups(self, number: int, request: DeleteGroupsRequest, now_ms: int) -> None:
        effects = delete_groups(self.coordinator, request.group_ids, now_ms)
        deletion = self._commit(effects)
        results: dict[str, Result[Any] | None] = {}
        take = partial(self._take_group_deletion, number, deletion, results, len(effects.delete))
        for asked in effects.delete:
            self._ask(asked, partial(take, asked.group_id))
        if not effects.delete:
            self._end_group_deletion(number, deletion, results, now_ms)

    def _take_group_deletion(  # noqa: PLR0913 - what is known before the answer comes
        self,
        number: int,
        deletion: GroupDeletion,
        results: dict[str, Result[Any] | None],
        count: int,
        group_id: str,
        future: Future[Any],
        now_ms: int,
    ) -> None:
        results[group_id] = _result(future)
        if len(results) == count:
            self._end_group_deletion(number, deletion, results, now_ms)

    def _end_group_deletion(
        self, number: int, deletion: GroupDeletion, results: dict[str, Result[Any] | None], now_ms: int
    ) -> None:
        effects = groups_deleted(self.coordinator, deletion, results, now_ms)
        self._answer(number, GroupResponse(result=self._commit(effects)))

    # ---- inside

    def _is_refused(self, number: int, operation: GroupOperation, group_id: str) -> bool:
        code = administration_error(operation, group_id)
        if code:
            self._answer(number, GroupResponse(code))
        return bool(code)

    def _commit(self, effects: GroupEffects[R]) -> R:
        """Keep the records of *effects* as a compacted log would, and return its response."""
        for record in effects.records:
            self._records.pop(record.key, None)
            if record.value is not None:
                self._records[record.key] = record
        self.coordinator.committed(len(effects.records))
        return effects.response


def _result(future: Future[Any]) -> Result[Any] | None:
    """Return what a persister has answered; None if it has failed."""
    return None if future.cancelled() or future.exception() is not None else future.result()
