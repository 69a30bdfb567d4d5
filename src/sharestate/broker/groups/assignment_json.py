"""
What the assignor is given, and what has come of it, as JSON: in files, and in lines of the line protocol.

A file is an object with the version of its form, topics, members, and the partitions that may be assigned:
``{"assignment": 1, "topics": {"orders": 3}, "members": [{"id": "A", "topics": ["orders"]}]}``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from attrs import frozen

from sharestate.broker.groups.assignment_changes import AssignmentChanges
from sharestate.broker.groups.assignment_order import AssignmentOrder, TopicPartition
from sharestate.broker.groups.assignor import (
    MAX_PARTITION,
    PartitionsByTopic,
    SubscribedMember,
    SubscriptionType,
    TargetAssignment,
    assign,
)
from sharestate.input_errors import MalformedInputError
from sharestate.json_checks import (
    Check,
    Field,
    T,
    a_list,
    an_object,
    integer,
    list_of,
    nullable,
    record,
    refuse,
    text,
    version,
)
from sharestate.json_lines import Json

ASSIGNMENT_VERSION: Final = 1
"""The version of the form of files that is read, and of the report that is written."""

MAX_MEMBERS: Final = 16_384
"""The most members of a group; brokers allow 1,000 (``group.share.max.size``). [members]"""

MAX_SUBSCRIPTIONS: Final = 2**18
"""The most topics of all members' subscriptions: as many as a thousand members have with 262 each. [topics]"""

MAX_PARTITIONS: Final = 2**18
"""The most partitions of all topics; a cluster of Kafka has some hundred thousand. [partitions]"""

MAX_NAME: Final = 256
"""The largest length of the id of a member, or of the name of a topic, which may have 249. [characters]"""

_partition: Final = integer(0, MAX_PARTITION)
_partitions: Final = list_of(_partition)


@frozen(kw_only=True)
class AssignmentInput:
    """
    What the assignor is given.

    Attributes:
        members: The members, with their subscriptions and their partitions before.
        topics: The number of partitions of each topic.
        initialized: The partitions that may be assigned, by topic; None for all.
    """

    members: tuple[SubscribedMember, ...]
    topics: Mapping[str, int]
    initialized: Mapping[str, Collection[int]] | None = None

    def assign(
        self,
        order: AssignmentOrder = AssignmentOrder.SORTED,
        subscription_type: SubscriptionType | None = None,
    ) -> TargetAssignment:
        """
        Return what the function ``assign`` makes of this.

        Raises:
            MalformedInputError: The order is Java's, and a topic is not given by its id.
            AssignmentError: The assignor fails.
        """
        return assign(self.members, self.topics, self.initialized, order=order, subscription_type=subscription_type)


def a_name(value: Json, path: str) -> str:
    """Check the id of a member, or the id or name of a topic."""
    name = text(value, path)
    return name if len(name) <= MAX_NAME else refuse(f"at most {MAX_NAME} characters", value, path)


def _by_topic(topic: Check[str], check: Check[T]) -> Check[dict[str, T]]:
    """Return the check for an object with a value for each topic."""
    return lambda value, path: {
        topic(name, path): check(each, f"{path}.{name}") for name, each in an_object(value, path).items()
    }


def _counts(topic: Check[str]) -> Check[Mapping[str, int]]:
    """Return the check for the numbers of topics' partitions."""
    by_topic = _by_topic(topic, _partition)

    def check(value: Json, path: str) -> Mapping[str, int]:
        counts = by_topic(value, path)
        if sum(counts.values()) > MAX_PARTITIONS:
            message = f"more than {MAX_PARTITIONS} partitions"
            raise MalformedInputError(message, path)
        return counts

    return check


def _member(*, id: str, topics: tuple[str, ...], target: PartitionsByTopic) -> SubscribedMember:  # noqa: A002 - the name in files
    return SubscribedMember(member_id=id, topic_ids=topics, target=target)


def _members(topic: Check[str]) -> Check[tuple[SubscribedMember, ...]]:
    """Return the check for the members of a group, each of which comes once."""
    all_of_them = list_of(
        record(
            {
                "id": Field(a_name),
                "topics": Field(list_of(topic)),
                "target": Field(_by_topic(topic, _partitions), default={}),
            },
            _member,
        )
    )

    def check(value: Json, path: str) -> tuple[SubscribedMember, ...]:
        if len(a_list(value, path)) > MAX_MEMBERS:
            message = f"more than {MAX_MEMBERS} members"
            raise MalformedInputError(message, path)
        seen: set[str] = set()
        members = all_of_them(value, path)
        if sum(len(member.topic_ids) for member in members) > MAX_SUBSCRIPTIONS:
            message = f"more than {MAX_SUBSCRIPTIONS} topics in the subscriptions"
            raise MalformedInputError(message, path)
        for index, member in enumerate(members):
            if member.member_id in seen:
                refuse("the id of no other member", member.member_id, f"{path}[{index}].id")
            seen.add(member.member_id)
        return members

    return check


def input_fields(topic: Check[str]) -> Mapping[str, Field]:
    """Return the fields of what the assignor is given, with topics that pass the check *topic*."""
    return {
        "topics": Field(_counts(topic)),
        "members": Field(_members(topic)),
        "initialized": Field(nullable(_by_topic(topic, _partitions)), default=None),
    }


_file: Final = record(
    {"assignment": Field(version(ASSIGNMENT_VERSION)), **input_fields(a_name)},
    lambda assignment, **fields: AssignmentInput(**fields),  # noqa: ARG005 - the version has been checked
)


def read_assignment_input(value: Json) -> AssignmentInput:
    """
    Return what *value*, the JSON of a file, gives to the assignor.

    Raises:
        MalformedInputError: It has not the form of version 1, or is larger than MAX_MEMBERS, MAX_SUBSCRIPTIONS and
            MAX_PARTITIONS allow; ``field`` is the path of the wrong part.
    """
    return _file(value, "")


def partitions_json(partitions: Mapping[str, Collection[int]]) -> Json:
    """Return partitions by topic."""
    return {topic_id: list(numbers) for topic_id, numbers in partitions.items()}


def _grouped(partitions: Collection[TopicPartition]) -> Json:
    by_topic: dict[str, list[int]] = {}
    for topic_id, number in partitions:
        by_topic.setdefault(topic_id, []).append(number)
    return by_topic


def changes_json(changes: AssignmentChanges) -> Json:
    """Return who gets what, what moves and what is under-shared."""
    return {
        "assignment": ASSIGNMENT_VERSION,
        "type": changes.subscription_type.value,
        "members": [
            {
                "id": each.member_id,
                "partitions": partitions_json(each.partitions),
                "gained": _grouped(each.gained),
                "lost": _grouped(each.lost),
                "has": each.has,
                "capacity": each.capacity,
            }
            for each in changes.members
        ],
        "under_shared": [
            {"topic": each.topic_id, "partition": each.partition, "members": each.members, "sharing": each.sharing}
            for each in changes.under_shared
        ],
    }
