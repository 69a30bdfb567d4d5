"""All that a group coordinator knows, and what a command has it do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Generic, TypeVar

from attrs import define, field, frozen

from sharestate.broker.groups.profiles import GroupProfile
from sharestate.broker.groups.records import GroupRecord, GroupRecordKey, GroupRecordType, GroupRecordValue
from sharestate.broker.groups.replay import GroupTables
from sharestate.broker.groups.settings import GroupCoordinatorSettings
from sharestate.broker.groups.share_group import ShareGroup, StatePartitions
from sharestate.broker.groups.topics import ClusterTopics
from sharestate.errors import GroupIdNotFoundError, GroupNotEmptyError
from sharestate.persister.requests import DeleteStateParameters, InitializeStateParameters

R_co = TypeVar("R_co", covariant=True)


NOT_EMPTY: Final = "The group is not empty."
"""The text of NON_EMPTY_GROUP (Errors, Kafka 4.3.1)."""


@frozen(kw_only=True)
class GroupEffects(Generic[R_co]):
    """
    What a command comes to.

    Attributes:
        records: The records to append to the group's partition of ``__consumer_offsets``, as one batch. The coordinator
            has replayed them.
        response: The answer, to be given once the records are committed.
        initialize: What a persister is then to initialize, for which the answer does not wait.
        delete: The state that a persister is then to delete, one request for each group, before the answer is made.
    """

    records: tuple[GroupRecord, ...] = ()
    response: R_co
    initialize: InitializeStateParameters | None = None
    delete: tuple[DeleteStateParameters, ...] = ()


@define(kw_only=True)
class CoordinatorState:
    """
    What a group coordinator knows.

    Attributes:
        profile: Its rules.
        tables: The groups, folded from their records.
        settings: Its settings.
        group_settings: Those of groups that have some of their own.
        topics: The topics of the cluster. They come from elsewhere, so they are in no record.
    """

    profile: GroupProfile
    tables: GroupTables
    settings: GroupCoordinatorSettings
    group_settings: dict[str, GroupCoordinatorSettings] = field(factory=dict)
    topics: ClusterTopics = field(factory=ClusterTopics)

    def settings_of(self, group_id: str) -> GroupCoordinatorSettings:
        """Return the settings of a group."""
        return self.group_settings.get(group_id, self.settings)

    def find(self, group_id: str) -> ShareGroup | None:
        """Return a group, or None."""
        return self.tables.groups.values.get(group_id)

    def group(self, group_id: str) -> ShareGroup:
        """
        Return a group.

        Raises:
            GroupIdNotFoundError: There is none with this id.
        """
        group = self.find(group_id)
        if group is None:
            message = f"Group {group_id} not found."
            raise GroupIdNotFoundError(message)
        return group

    def state_partitions(self, group_id: str) -> StatePartitions | None:
        """Return what is known of a group's state at the share coordinator; None before the first record of it."""
        return self.tables.state_partitions.values.get(group_id)

    def replay(self, records: Iterable[GroupRecord], now_ms: int) -> None:
        """Change what *records* say."""
        for record in records:
            self.tables.replay(record, now_ms)


def group_record(
    type_: GroupRecordType, group_id: str, value: GroupRecordValue | None, member_id: str | None = None
) -> GroupRecord:
    """Return the record of a group, or of a member of it; a tombstone if *value* is None."""
    return GroupRecord(GroupRecordKey(type_, group_id, member_id), value)


def expect_empty(group: ShareGroup) -> None:
    """
    Check that a group has no members.

    Raises:
        GroupNotEmptyError: It has some.
    """
    if group.members.values:
        raise GroupNotEmptyError(NOT_EMPTY)
