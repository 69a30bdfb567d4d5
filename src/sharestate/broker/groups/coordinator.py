"""
The group coordinator's part that serves share groups: heartbeats, expiry, and which share partitions have state.

It does no I/O and reads no clock. A command says which records to write and what a persister is to do; the answer of a
persister comes in by a command of its own. Administration is in ``offsets`` and ``deletion``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from sharestate.broker.groups.assignment_order import AssignmentOrder
from sharestate.broker.groups.assignor import MAX_PARTITION
from sharestate.broker.groups.heartbeats import (
    HeartbeatResponse,
    ShareGroupHeartbeat,
    member_of,
    plan_heartbeat,
    plan_leave,
)
from sharestate.broker.groups.initialization import (
    deleted_topic_records,
    initialized_records,
    uninitialized_records,
)
from sharestate.broker.groups.profiles import LATEST_GROUPS, GroupProfile
from sharestate.broker.groups.record_order import RecordOrder
from sharestate.broker.groups.records import GroupRecord
from sharestate.broker.groups.replay import GroupTables
from sharestate.broker.groups.session_timers import SessionTimer, SessionTimers
from sharestate.broker.groups.settings import GroupCoordinatorSettings
from sharestate.broker.groups.share_group import LEFT_EPOCH, RefreshDeadline
from sharestate.broker.groups.state import CoordinatorState, GroupEffects, R_co
from sharestate.broker.groups.topics import ClusterTopic, TopicChanges
from sharestate.coordinator.wire import topic_id_bytes
from sharestate.persister.requests import InitializeStateParameters, PartitionErrorData, Result
from sharestate.values.checks import a_tuple, expect, integer, refuse, rows, text

MAX_TIME: Final = 2**62
"""The latest time, after which deadlines would not fit into 64 bits. [ms]"""

_Partitions: TypeAlias = Mapping[str, Iterable[int]]


class GroupCoordinator:
    """
    The share groups of one partition of ``__consumer_offsets``.

    >>> from sharestate.broker.groups import GroupCoordinator, ShareGroupHeartbeat
    >>> coordinator = GroupCoordinator()
    >>> join = ShareGroupHeartbeat(group_id="g", member_id="A", member_epoch=0, topic_names=("t",))
    >>> joined = coordinator.heartbeat(join, now_ms=0)
    >>> joined.response.member_epoch, [record.key.type.value for record in joined.records]
    (2, [10, 11, 13, 12, 14])

    Attributes:
        state: What it knows; for reading.
    """

    def __init__(
        self,
        profile: GroupProfile = LATEST_GROUPS,
        settings: GroupCoordinatorSettings | None = None,
        *,
        order: AssignmentOrder = AssignmentOrder.SORTED,
    ) -> None:
        """
        Start without groups.

        Args:
            profile: The rules.
            settings: The settings; None for a broker's that sets none.
            order: ``SORTED``, or ``JAVA`` for that of a broker, in assignments and in records, bit for bit.

        Raises:
            MalformedInputError: An argument is of another type.
        """
        expect(profile, GroupProfile, "profile", such_as="GROUPS_4_4")
        if expect(order, AssignmentOrder, "order") is AssignmentOrder.GIVEN:
            refuse("expected SORTED or JAVA", "order")
        self._order = RecordOrder(order is AssignmentOrder.JAVA)
        self.state = CoordinatorState(
            profile=profile,
            tables=GroupTables(profile.first_epoch, self._order),
            settings=expect(settings or GroupCoordinatorSettings(), GroupCoordinatorSettings, "settings"),
        )
        self._timers = SessionTimers()
        self._committed = GroupTables(profile.first_epoch, self._order)
        self._uncommitted: deque[GroupRecord] = deque()

    # ---- records

    def load(self, records: Iterable[GroupRecord], now_ms: int) -> None:
        """
        Replay *records* of a log, all of them committed, and start the sessions of the members that are left.

        What no record has is new: the time of sessions, when initializations were asked for, and when topics were
        looked at. Settings and topics come from elsewhere.

        Args:
            records: The records, in their order.
            now_ms: The time.

        Raises:
            MalformedInputError: An argument is of another type.
            GroupRecordOrderError: A record takes away what others still need; those before it have been replayed.
        """
        now_ms = checked_time(now_ms)
        for record in rows(records, GroupRecord, "records"):
            self.state.tables.replay(record, now_ms)
            self._committed.replay(record, now_ms)
        self._timers = SessionTimers()
        for group in self.state.tables.groups.values.values():
            for member_id in group.members.values:
                self._start_timer(group.group_id, member_id, now_ms)

    def committed(self, count: int) -> None:
        """
        Note that the next *count* of the records that commands have returned are committed; describing shows them then.

        Raises:
            MalformedInputError: There are fewer.
        """
        for _ in range(integer(count, "count", 0, len(self._uncommitted))):
            self._committed.replay(self._uncommitted.popleft(), 0)

    @property
    def uncommitted_count(self) -> int:
        """How many records are not known to be committed. [records]"""
        return len(self._uncommitted)

    @property
    def committed_tables(self) -> GroupTables:
        """The groups as of what is committed; for reading."""
        return self._committed

    def apply(self, effects: GroupEffects[R_co], now_ms: int) -> GroupEffects[R_co]:
        """Replay the records of *effects*, planned from what is known now, and return it."""
        self.state.replay(effects.records, now_ms)
        self._uncommitted.extend(effects.records)
        return effects

    # ---- members

    def heartbeat(self, request: ShareGroupHeartbeat, now_ms: int) -> GroupEffects[HeartbeatResponse]:
        """
        Answer a heartbeat of a member that joins, stays or leaves (groups 4 and 5).

        What a broker checks before is in ``heartbeat_error``.

        Raises:
            MalformedInputError: An argument is of another type or out of range.
            GroupIdNotFoundError: There is no such group, and the member does not join.
            GroupMaxSizeReachedError: The group is full, and the member is not in it.
            UnknownMemberIdError: The member is not in the group, and does not join.
            FencedMemberEpochError: The member has another epoch.
            AssignmentError: The assignor fails.

        Complexity:
            O(n log n) in the topics that the group subscribes to. Partitions and members are looked at once after a
            change of subscriptions, targets or state, and when a target assignment is made.
        """
        expect(request, ShareGroupHeartbeat, "request")
        now_ms = checked_time(now_ms)
        if request.member_epoch == LEFT_EPOCH:
            return self._leave(request, now_ms)
        group = self.state.find(request.group_id)
        plan = plan_heartbeat(self.state, request, now_ms)
        if group is not None and plan.refresh is not None:
            group.refresh = plan.refresh
        self._start_timer(request.group_id, request.member_id, now_ms)
        effects = GroupEffects(records=plan.records, response=plan.response, initialize=plan.initialize)
        return self.apply(effects, now_ms)

    def _leave(self, request: ShareGroupHeartbeat, now_ms: int) -> GroupEffects[HeartbeatResponse]:
        group = self.state.group(request.group_id)
        records = plan_leave(self.state, group, member_of(group, request.member_id))
        self._timers.stop(request.group_id, request.member_id)
        response = HeartbeatResponse(member_id=request.member_id, member_epoch=LEFT_EPOCH)
        return self.apply(GroupEffects(records=records, response=response), now_ms)

    def next_deadline_ms(self) -> int | None:
        """Return the first instant at which ``expire_next`` acts, or None if there are no members."""
        timer = self._timers.first()
        return None if timer is None else timer.deadline_ms

    def expire_next(self, now_ms: int) -> GroupEffects[SessionTimer] | None:
        """
        Take out the next member whose session has ended (groups 5.2); its timer is the response.

        Returns:
            What that comes to, or None if no session has ended.

        Raises:
            MalformedInputError: *now_ms* is no time.

        Complexity:
            As of leaving.
        """
        now_ms = checked_time(now_ms)
        timer = self._timers.first()
        if timer is None or timer.deadline_ms > now_ms:
            return None
        return self.apply(self._expiry(timer), now_ms)

    def due_together(self, now_ms: int) -> tuple[SessionTimer, ...]:
        """
        Return the timers of all members whose sessions end at the next deadline, if that has come.

        Raises:
            MalformedInputError: *now_ms* is no time.
        """
        return tuple(self._timers.due_together(checked_time(now_ms)))

    def expire_together(self, timers: Iterable[SessionTimer], now_ms: int) -> tuple[GroupEffects[SessionTimer], ...]:
        """
        Take out the members of *timers*, which are due, each as if the others were still there.

        Kafka's tests do so, whose timer runs all that is due before a record is replayed; in a broker each is a write
        of its own, so use ``expire_next``.

        Raises:
            MalformedInputError: One of the timers is not due.
        """
        now_ms = checked_time(now_ms)
        given = rows(timers, SessionTimer, "timers")
        due = set(self._timers.due_together(now_ms))
        if not due.issuperset(given) or len(set(given)) < len(given):
            refuse("expected timers that are due, each once", "timers")
        effects = tuple(self._expiry(timer) for timer in given)
        for each in effects:
            self.apply(each, now_ms)
        return effects

    def _expiry(self, timer: SessionTimer) -> GroupEffects[SessionTimer]:
        group = self.state.group(timer.group_id)
        records = plan_leave(self.state, group, member_of(group, timer.member_id))
        self._timers.stop(timer.group_id, timer.member_id)
        return GroupEffects(records=records, response=timer)

    def _start_timer(self, group_id: str, member_id: str, now_ms: int) -> None:
        self._timers.start(group_id, member_id, now_ms + self.state.settings_of(group_id).session_timeout_ms)

    # ---- settings and topics

    def configure(self, settings: GroupCoordinatorSettings, group_id: str | None = None) -> None:
        """
        Take other settings, for all groups that have none of their own, or for one group; what runs runs on.

        Raises:
            MalformedInputError: An argument is of another type.
        """
        expect(settings, GroupCoordinatorSettings, "settings")
        if group_id is None:
            self.state.settings = settings
        else:
            self.state.group_settings[text(group_id, "group_id")] = settings

    def update_topics(self, changed: Iterable[ClusterTopic] = (), deleted: Iterable[str] = ()) -> None:
        """
        Take changes of the cluster's topics; groups that subscribe to them look again at their next heartbeat.

        Args:
            changed: Topics that are new, or have more partitions or other racks.
            deleted: The ids of topics that are gone, to be given to ``forget_topics``, too.

        Raises:
            MalformedInputError: An argument is of another type, or does not fit the topics that there are.

        Complexity:
            O(n) in the changes, and in the groups that subscribe to the topics.

        Source:
            GroupMetadataManager.onMetadataUpdate (Kafka 4.3.1).
        """
        changes = TopicChanges(changed=changed, deleted=deleted)
        self.state.topics.check(changes)
        tables = self.state.tables
        for name in self.state.topics.apply(changes):
            for group_id in tables.groups_of_topics.get(name, ()):
                tables.groups.values[group_id].refresh = RefreshDeadline()

    def forget_topics(self, deleted: Iterable[str], now_ms: int) -> GroupEffects[None]:
        """
        Say of each group that has state of topics that are gone that it has none (groups 8.5).

        Args:
            deleted: The ids of the topics.
            now_ms: The time.

        Raises:
            MalformedInputError: An argument is of another type.

        Complexity:
            O(n) in the groups and the topics of each.
        """
        now_ms = checked_time(now_ms)
        records = deleted_topic_records(self.state, rows(deleted, str, "deleted"))
        return self.apply(GroupEffects(records=records, response=None), now_ms)

    # ---- the answers of a persister

    def initialized(self, group_id: str, partitions: _Partitions, now_ms: int) -> GroupEffects[None]:
        """
        Take a persister's answer that *partitions*, by topic id, have state now (groups 8.4).

        Raises:
            MalformedInputError: An argument is of another type or out of range.
        """
        now_ms = checked_time(now_ms)
        records = initialized_records(self.state, text(group_id, "group_id"), checked_partitions(partitions), now_ms)
        return self.apply(GroupEffects(records=records, response=None), now_ms)

    def uninitialized(self, group_id: str, partitions: _Partitions, now_ms: int) -> GroupEffects[None]:
        """
        Take a persister's answer that it could not initialize *partitions*, by topic id (groups 8.4).

        Raises:
            MalformedInputError: An argument is of another type or out of range.
        """
        now_ms = checked_time(now_ms)
        records = uninitialized_records(self.state, text(group_id, "group_id"), checked_partitions(partitions))
        return self.apply(GroupEffects(records=records, response=None), now_ms)

    def initialization_answered(
        self, request: InitializeStateParameters, result: Result[PartitionErrorData] | None, now_ms: int
    ) -> GroupEffects[None]:
        """
        Take a persister's answer to ``GroupEffects.initialize``: it counts only if it is good for all (groups 8.4).

        Args:
            request: What it was asked.
            result: What it has answered; None if it has failed.
            now_ms: The time.

        Raises:
            MalformedInputError: An argument is of another type.
        """
        expect(request, InitializeStateParameters, "request")
        asked = request.topics if result is None else expect(result, Result, "result").topics
        partitions = {topic.topic_id: tuple(each.partition for each in topic.partitions) for topic in asked}
        is_good = result is not None and not any(
            each.error_code for topic in result.topics for each in topic.partitions
        )
        answered = self.initialized if is_good else self.uninitialized
        return answered(request.group_id, partitions, now_ms)


def checked_time(now_ms: int) -> int:
    """Return *now_ms*, or raise MalformedInputError: it is no time that deadlines can be counted from."""
    return integer(now_ms, "now_ms", 0, MAX_TIME)


def checked_partitions(partitions: _Partitions, name: str = "partitions") -> Mapping[str, tuple[int, ...]]:
    """
    Return *partitions*, the argument *name*: numbers by topic id.

    Raises:
        MalformedInputError: A topic id is none, or a number is out of range.
    """
    anything: object = partitions
    if not isinstance(anything, Mapping):
        refuse("expected a mapping of topic ids", name)
    checked = {}
    for topic_id, numbers in partitions.items():
        topic_id_bytes(text(topic_id, name))
        where = f"{name}[{topic_id!r}]"
        checked[topic_id] = tuple(integer(number, where, 0, MAX_PARTITION) for number in a_tuple(numbers, int, where))
    return checked
